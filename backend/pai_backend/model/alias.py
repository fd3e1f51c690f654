"""Stable DNS-safe names of jobs, tasks and services (architecture §2, §8).

A job alias is fixed at submit; names of its tasks and services are functions of it:
``<job>--<role>-<index>`` and ``<job>--<label>`` (the first task that has the label) or
``<job>--<role>-<index>--<label>``. No part contains ``--`` itself, so a name splits one way only,
and the parts are bounded so that the longest name is one DNS label (63, RFC 1035 §2.3.4).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from pai_backend.model.ids import is_job_uid
from pai_backend.model.spec import JobSpec

JOB_MAX = 24
ROLE_MAX = 16  # plus "-" and up to 4 digits of index
LABEL_MAX = 14
_UNSAFE = re.compile(r"[^a-z0-9]+", re.ASCII)


def slug(text: str, limit: int) -> str:
    """``text`` as ``[a-z0-9-]`` of at most ``limit`` characters; never empty, never with ``--``.

    Text that had to be cut gets a short hash of the original, so that different texts stay different.
    """
    plain = _UNSAFE.sub("-", text.lower()).strip("-")
    if plain and len(plain) <= limit:
        return plain
    digest = hashlib.sha256(text.encode()).hexdigest()[:6]
    return f"{plain[: limit - 7].rstrip('-')}-{digest}".strip("-")


def job_alias(name: str, suffix: str = "") -> str:
    """The alias for a job of that name; ``suffix`` is added when the plain one is taken. Never a uid of a job."""
    if not suffix:
        plain = slug(name, JOB_MAX)
        return f"{plain[:-1]}-{plain[-1]}" if is_job_uid(plain) else plain
    return f"{slug(name, JOB_MAX - len(suffix) - 1)}-{suffix}"


def _unique(texts: list[str], limit: int) -> dict[str, str]:
    """Text -> slug, made different by a hash where two texts share a slug."""
    plain = {text: slug(text, limit) for text in texts}
    counts: dict[str, int] = {}
    for value in plain.values():
        counts[value] = counts.get(value, 0) + 1
    return {
        text: value
        if counts[value] == 1
        else f"{value[: limit - 7].rstrip('-')}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
        for text, value in plain.items()
    }


@dataclass(frozen=True)
class Target:
    """What a name means inside a job: a task, and a port label when it names a service."""

    role: str
    index: int
    label: str | None = None


def role_slugs(spec: JobSpec) -> dict[str, str]:
    """Role name -> slug, distinct within the job."""
    return _unique([role.name for role in spec.task_roles], ROLE_MAX)


def label_slugs(spec: JobSpec) -> dict[str, str]:
    """Port label -> slug, distinct within the job."""
    labels = dict.fromkeys(port.label for role in spec.task_roles for port in role.ports)
    return _unique(list(labels), LABEL_MAX)


def task_alias(alias: str, spec: JobSpec, role: str, index: int) -> str:
    """The name of one task."""
    return f"{alias}--{role_slugs(spec)[role]}-{index}"


def service_alias(alias: str, spec: JobSpec, role: str, index: int, label: str) -> str:
    """The name of one service; the short form when it is the first task with that label.

    A label that reads like a task's name (``worker-0``) has the long form only: the short one is the task.
    """
    name = label_slugs(spec)[label]
    first = next(r for r in spec.task_roles if any(p.label == label for p in r.ports))
    if role == first.name and index == 0 and _task(name, spec) is None:
        return f"{alias}--{name}"
    return f"{task_alias(alias, spec, role, index)}--{name}"


def split(name: str) -> tuple[str, str]:
    """(job alias, rest) of any name; the rest is empty for a job alias itself."""
    job, _, rest = name.partition("--")
    return job, rest


def resolve(rest: str, spec: JobSpec) -> Target | None:
    """What the part after ``<job>--`` means in this job; ``""`` means its first task. None: nothing."""
    first = spec.task_roles[0]
    if not rest:
        return Target(first.name, 0)
    head, _, tail = rest.partition("--")
    labels = {value: label for label, value in label_slugs(spec).items()}
    task = _task(head, spec)
    if task is not None and not tail:
        return task
    if task is not None and tail in labels:
        return Target(task.role, task.index, labels[tail])
    if task is None and not tail and head in labels:
        label = labels[head]
        owner = next(r for r in spec.task_roles if any(p.label == label for p in r.ports))
        return Target(owner.name, 0, label)
    return None


def _task(text: str, spec: JobSpec) -> Target | None:
    role_slug, _, number = text.rpartition("-")
    if not (number.isascii() and number.isdigit()):
        return None
    for role in spec.task_roles:
        if role_slugs(spec)[role.name] == role_slug and int(number) < role.instances:
            return Target(role.name, int(number))
    return None
