"""What is swept of tasks that were forgotten, and what marks on their Secrets mean."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pai_backend.engine.base import EngineError
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.client import Ask
from pai_backend.engine.kubernetes.cluster_time import ClusterTime
from pai_backend.engine.kubernetes.ending import TOMBSTONE, Ender, erase
from pai_backend.engine.kubernetes.marks import Marks, marks_of, never_started, rfc3339, tombstone
from pai_backend.engine.kubernetes.places import ApiPaths
from pai_backend.model.ids import TaskUid

NOW = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
OLD, NEW = NOW - TOMBSTONE - timedelta(seconds=1), NOW - TOMBSTONE + timedelta(seconds=1)
OWNER = ("j1-a0", "u-1")


class Server:
    """Takes every request, and remembers what it deleted."""

    time = ClusterTime()

    def __init__(self) -> None:
        self.deleted: list[str] = []

    async def send(self, ask: Ask) -> bytes:
        assert ask.method == "DELETE"
        self.deleted.append(ask.request.path.rsplit("/", 1)[1])
        return b"{}"

    def stream(self, ask: Ask) -> Any:
        raise AssertionError("nothing is watched here")

    async def renew_credentials(self) -> bool:
        return False


def marks(uid: str, forgotten: datetime | None, owner: tuple[str, str] | None = OWNER) -> Marks:
    return Marks(TaskUid(uid), forgotten=forgotten, owner=owner)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("secrets", "deleted"),
    [
        ([marks("a", OLD), marks("b", OLD)], ["j1-a0"]),
        ([marks("a", OLD), marks("b", NEW)], []),
        ([marks("a", OLD), marks("b", None)], []),
        ([marks("a", OLD, None), marks("b", NEW, None), marks("c", None, None)], ["a"]),
        ([], []),
    ],
)
async def test_an_attempt_is_swept_once_all_its_tasks_were_forgotten_long_ago(
    secrets: list[Marks], deleted: list[str]
) -> None:
    server = Server()
    await Ender(Calls(server), ApiPaths("n"), "i").sweep(secrets, NOW)
    assert server.deleted == deleted


@pytest.mark.asyncio
async def test_all_marks_of_a_deleted_job_go_at_once() -> None:
    server = Server()
    await erase(Calls(server), [marks("a", NEW), marks("b", NEW, None)])
    assert server.deleted == ["a", "j1-a0", "b"]


@pytest.mark.asyncio
async def test_a_job_with_a_task_that_is_not_forgotten_keeps_all_its_marks() -> None:
    server = Server()
    with pytest.raises(EngineError, match="task b is not forgotten"):
        await erase(Calls(server), [marks("a", NEW), marks("b", None)])
    assert server.deleted == []


def test_a_tombstone_is_read_as_what_it_is() -> None:
    read = marks_of(tombstone(TaskUid("j1-0-0-0"), "i", "n", rfc3339(NOW)))
    assert read is not None
    assert (read.uid, read.stop, read.forgotten, read.owner) == (
        "j1-0-0-0",
        "2026-11-21T20:00:00Z",
        None,
        None,
    )
    assert read.final
    exit_ = never_started(read, NOW + timedelta(days=1)).exit
    assert exit_ is not None
    assert (exit_.reason, exit_.at) == ("stopped", NOW)


def test_a_mark_that_nobody_can_read_counts_all_the_same() -> None:
    secret = tombstone(TaskUid("j1-0-0-0"), "i", "n", "no time")
    secret["metadata"]["annotations"][naming.FORGOTTEN] = "long ago"
    read = marks_of(secret)
    assert read is not None
    assert read.forgotten is not None
    exit_ = never_started(read, NOW).exit
    assert exit_ is not None
    assert exit_.at == NOW


def test_a_secret_of_somebody_else_has_no_marks() -> None:
    assert marks_of({"metadata": {"name": "other"}}) is None
