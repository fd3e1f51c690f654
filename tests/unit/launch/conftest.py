"""Jobs as the controller has them when it starts their tasks: read from documents, placed, ports leased."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pai_backend.model.ids import JobUid, task_uid
from pai_backend.model.job import Job, Task
from pai_backend.model.node import Placement
from pai_backend.protocol import read_document

DOCUMENTS = Path(__file__).parents[2] / "data" / "documents"
UID = JobUid("j0123456789abcdef")
MakeJob = Callable[..., Job]


def placed(source: bytes) -> Job:
    """The job of a document; task n of all is on 10.0.0.n and has the ports from 20000 + 100 n on."""
    spec = read_document(source).spec
    tasks: list[Task] = []
    for role_number, role in enumerate(spec.task_roles):
        for index in range(role.instances):
            number = len(tasks) + 1
            port = 20000 + 100 * number
            ports = {}
            for group in role.ports:
                ports[group.label] = tuple(range(port, port + group.count))
                port += group.count
            placement = Placement(node=f"n{number}", address=f"10.0.0.{number}", machine=f"m{number}", ports=ports)
            uid = task_uid(UID, role_number, index, 0)
            tasks.append(Task(uid=uid, role=role.name, index=index, attempt=0, placement=placement))
    return Job(
        uid=UID,
        name=spec.name,
        user="alice",
        alias="a",
        spec=spec,
        tasks=tuple(tasks),
        submitted_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


@pytest.fixture
def document_job() -> Callable[[str], Job]:
    """The job of one of the documents under tests/data."""
    return lambda name: placed((DOCUMENTS / name).read_bytes())


@pytest.fixture
def make_job() -> MakeJob:
    """A job from fields; each role gets what is left out."""

    def make(*roles: dict[str, Any], **fields: Any) -> Job:
        base = {"taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0, "command": "true"}
        document = {"jobName": "demo", "image": "i", "taskRoles": [base | role for role in roles]} | fields
        return placed(json.dumps(document).encode())

    return make
