"""The addresses of a task's services, as variables of the task. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from pai_backend.launch.room import entry_bytes
from pai_backend.launch.spelling import qizhi_twins, second_spellings
from pai_backend.model.alias import service_alias
from pai_backend.model.job import Job, Task
from pai_backend.model.spec import Dialect

FAMILY = "PAI_SERVICE_*"
FAMILY_BYTES = 65_536
"""Beside ``room.TOTAL_BYTES``; enough for 200 labels."""
NOT_SERVICES = frozenset({"ssh"})


@dataclass(frozen=True)
class ServiceSite:
    """Where services are found."""

    domain: str
    base_url: Callable[[], str | None]
    """Where users reach the api; None while that is unknown."""


def service_variables(job: Job, task: Task, site: ServiceSite) -> dict[str, str] | None:
    """Base path and own address of each service of ``task``, under every spelling; None when they take too much room.

    The own address is left out while the api's is unknown. The path is that below the api: a relay in front of it adds
    its own, which differs by visitor and is in ``X-Forwarded-Prefix`` of each request.
    """
    base = site.base_url()
    parts = urlsplit(base or "")
    netloc = f"{site.domain}:{parts.port}" if parts.port else site.domain
    table: dict[str, str] = {}
    for label in [port.label for port in job.spec.role(task.role).ports if not port.implicit]:
        if label in NOT_SERVICES:
            continue
        alias = service_alias(job.alias, job.spec, task.role, task.index, label)
        table[f"PAI_SERVICE_BASE_PATH_{label}"] = f"{parts.path.rstrip('/')}/s/{alias}/"
        if base is not None:
            table[f"PAI_SERVICE_URL_{label}"] = f"{parts.scheme}://{alias}.{netloc}/"
    if job.spec.dialect is Dialect.QIZHI:
        table |= qizhi_twins(table)
    table = {**second_spellings(table), **table}
    return table if sum(entry_bytes(*item) for item in table.items()) <= FAMILY_BYTES else None
