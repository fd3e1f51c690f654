"""Pods as the API has them, made of as little as a reading needs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.objects import Object

T0 = datetime(2026, 11, 21, 20, 0, 0, tzinfo=UTC)
UID = "j0123456789abcdef-0-3-1"

MakePod = Callable[..., Object]


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def stamp(seconds: float) -> str:
    return at(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.fixture
def make_pod() -> MakePod:
    """Makes the pod of worker 3 on carol, made at T0; ``task`` is the state of its container, others as given."""

    def make(
        task: Object | None = None,
        *,
        inits: dict[str, Object] | None = None,
        conditions: list[Object] | None = None,
        node: str = "carol",
        annotations: dict[str, str] | None = None,
        deleted: float | None = None,
        ready: bool = True,
        **status: object,
    ) -> Object:
        meta: Object = {
            "name": UID,
            "creationTimestamp": stamp(0),
            "annotations": {naming.TASK: UID, **(annotations or {})},
        }
        if deleted is not None:
            meta["deletionTimestamp"] = stamp(deleted)
        found: Object = {"phase": "Pending", "conditions": conditions or [], **status}
        if node:
            found["startTime"] = stamp(1)
        if task is not None:
            found["containerStatuses"] = [{"name": "task", "image": "image:1", "ready": ready, "state": task}]
        if inits:
            found["initContainerStatuses"] = [{"name": name, "state": state} for name, state in inits.items()]
        return {"metadata": meta, "spec": {"nodeName": node} if node else {}, "status": found}

    return make


def waiting(reason: str, message: str = "") -> Object:
    return {"waiting": {"reason": reason, "message": message}}


def running(since: float = 5) -> Object:
    return {"running": {"startedAt": stamp(since)}}


def terminated(code: int, reason: str = "Error", message: str = "", since: float = 5, until: float = 9) -> Object:
    times = {"startedAt": stamp(since), "finishedAt": stamp(until)}
    return {"terminated": {"exitCode": code, "reason": reason, "message": message, **times}}
