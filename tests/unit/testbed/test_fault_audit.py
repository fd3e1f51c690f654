"""The audit after faults: it finds nothing wrong with a job that went well, and each promise that was broken."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
import pytest_asyncio

from pai_backend.engine.kubernetes import naming
from pai_backend.model.ids import PortLease
from pai_backend.model.job import Job, NewEvent, Phase, Retries, State, TaskExit
from pai_backend.protocol import read_document
from pai_backend.store.keyring import KeyFile
from pai_backend.store.sql import Store
from pai_backend.testing.builders import make_job
from tests.kubernetes.cluster.kubectl import Json
from tests.kubernetes.faults import audit
from tests.kubernetes.faults.audit import broken
from tests.kubernetes.faults.jobs import Wanted, bad, patient
from tests.kubernetes.faults.product import Site

pytestmark = pytest.mark.asyncio

NOW = datetime(2026, 11, 22, tzinfo=UTC)
WANTED = bad("short")  # ends with code 7
RIGHT = TaskExit(code=7, at=NOW)
LOST = TaskExit(reason="lost", at=NOW)
NO_RETRIES = Retries()


class World:
    """What the audit looks at: lines that commands wrote, and objects of the cluster."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.objects: dict[str, list[Json]] = {}
        self.kubectl = self

    def lines(self) -> list[str]:
        return self.written

    async def get(self, kind: str, *_: str) -> Json:
        return {"items": self.objects.get(kind, [])}


@pytest_asyncio.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = Store(f"sqlite:///{tmp_path / 'pai.sqlite'}", KeyFile(tmp_path / "secret.key"))
    await opened.open()
    yield opened
    await opened.aclose()


def told(attempt: int, exit_: TaskExit) -> NewEvent:
    """The end of a run, as it is told."""
    return NewEvent("task.state", {"attempt": attempt, "phase": "ended", "exit": exit_.model_dump(mode="json")})


STORY = (NewEvent("job.submitted"), told(0, RIGHT), NewEvent("job.exit"))


async def ended(
    store: Store,
    world: World,
    events: Sequence[NewEvent] = STORY,
    exit_: TaskExit = RIGHT,
    attempt: int = 0,
    retries: Retries = NO_RETRIES,
) -> Job:
    """A job whose last run, of that number, has ended so."""
    document = WANTED.document()
    spec = read_document(document).spec
    job = make_job(WANTED.name, spec=spec, state=State.FAILED, phase=Phase.ENDED, attempt=attempt)
    (task,) = job.tasks
    over = {"state": State.FAILED, "phase": Phase.ENDED, "exit": exit_, "forgotten": True}
    job = job.model_copy(update={"tasks": (task.model_copy(update=over),), "retries": retries})
    world.written.append(f"{WANTED.name} {task.uid}")
    return await store.jobs.submit(job, document, "job.json", "application/json", events)


async def found(store: Store, world: World, *wanted: Wanted) -> list[str]:
    return await broken(store, cast(Site, world), wanted or (WANTED,))


async def test_nothing_is_wrong_with_a_job_that_went_well(store: Store) -> None:
    await ended(store, world := World())
    assert await found(store, world) == []


async def test_a_job_that_was_taken_and_is_gone_is_lost(store: Store) -> None:
    assert await found(store, World(), patient("gone")) == ["gone was acknowledged and is lost"]


async def test_a_command_that_ran_twice_is_found_and_one_that_never_ran(store: Store) -> None:
    job = await ended(store, world := World())
    world.written *= 2
    assert await found(store, world) == [f"short {job.tasks[0].uid} ran 2 times"]
    world.written.clear()
    assert await found(store, world) == ["short ended without having run"]


@pytest.mark.parametrize(
    "exit_",
    [
        TaskExit(code=0, at=NOW),
        TaskExit(signal=9, reason="signalled", at=NOW),
        TaskExit(code=7, reason="lost", at=NOW),
    ],
)
async def test_a_wrong_exit_is_found(store: Store, exit_: TaskExit) -> None:
    await ended(store, world := World(), [STORY[0], told(0, exit_), STORY[2]], exit_)
    assert [line for line in await found(store, world) if "ended otherwise than it should" in line]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (STORY[:2], "short: 0 times job.exit, not 1"),
        ((*STORY, STORY[2]), "short: 2 times job.exit, not 1"),
        ((*STORY, NewEvent("job.retry")), "short: 1 times job.retry, not 0"),
        ((STORY[0], STORY[2]), "short: its event log tells the ends of runs [] of 1"),
        ((STORY[0], told(0, LOST), STORY[2]), "short: its event log has another end than the job"),
    ],
)
async def test_a_story_that_is_not_what_happened_is_found(
    store: Store, events: Sequence[NewEvent], expected: str
) -> None:
    await ended(store, world := World(), events)
    (line,) = await found(store, world)
    assert line.startswith(expected)


async def test_a_retry_that_was_charged_or_not_expected_is_found(store: Store) -> None:
    retried = (STORY[0], told(0, LOST), NewEvent("job.retry"), told(1, RIGHT), STORY[2])
    await ended(store, world := World(), retried, attempt=1, retries=Retries(user=1))
    many, charged = await found(store, world)
    assert many.startswith("short was run 2 times, not 1")
    assert charged.startswith("short was charged for what was not its fault")


async def test_a_port_that_is_still_leased_is_found(store: Store) -> None:
    job = await ended(store, world := World())
    lease = await store.leadership.acquire("audit", 60.0, NOW)
    assert lease is not None
    leak = PortLease("carol", 20_001, f"{job.uid}-0-0")
    await store.jobs.save(job, seen=job, epoch=lease.epoch, events=[], at=NOW, lease=[leak])
    assert await found(store, world) == [f"port 20001 is still leased to {job.uid}-0-0"]


def thing(kind: str, owner: str = "", **more: Any) -> Json:
    """An object of ours."""
    about: Json = {"name": "it", "uid": f"uid-of-{kind}", "annotations": {}, "labels": {}}
    return {"kind": kind, "metadata": about | ({"ownerReferences": [{"uid": owner}]} if owner else {}), **more}


async def test_objects_that_are_left_over_are_found(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await ended(store, world := World())
    monkeypatch.setattr(audit, "LIMIT_S", 0.0)
    world.objects = {"pods": [thing("Pod")]}
    (pod,) = await found(store, world)
    assert pod.startswith("pod it is left over")
    mark, full, unmarked = (thing("Secret", owner="uid-of-ConfigMap") for _ in range(3))
    mark["metadata"]["annotations"][naming.FORGOTTEN] = full["metadata"]["annotations"][naming.FORGOTTEN] = "now"
    full["data"] = {"command.gz": "eA=="}
    shared = {"configmaps": [thing("ConfigMap")], "networkpolicies": [thing("NetworkPolicy", owner="uid-of-ConfigMap")]}
    policy, holder = thing("NetworkPolicy"), thing("ConfigMap")
    policy["metadata"]["labels"][naming.COMPONENT] = "policy"
    holder["metadata"]["labels"][naming.COMPONENT] = "holder"
    world.objects = {"networkpolicies": [policy], "configmaps": [holder]}
    assert await found(store, world) == []
    world.objects = {"secrets": [mark], **shared}
    assert await found(store, world) == []
    for secret in (unmarked, full):
        world.objects = {"secrets": [secret], **shared}
        (left,) = await found(store, world)
        assert left.startswith("secret it is left over")
    world.objects = shared
    assert await found(store, world) == ["ConfigMap it belongs to no task", "NetworkPolicy it belongs to no task"]
