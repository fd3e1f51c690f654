"""Which namespace a task is in, and what is left out of those of others."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.client import Ask
from pai_backend.engine.kubernetes.cluster_time import ClusterTime
from pai_backend.engine.kubernetes.ending import Ender
from pai_backend.engine.kubernetes.failures import ApiForbidden, refusal
from pai_backend.engine.kubernetes.handover import Change, Handover, ObjectGone, ResourceListed, Seen
from pai_backend.engine.kubernetes.mirrors import Mirrors, of_tasks
from pai_backend.engine.kubernetes.namespaces import Namespaces, is_missing, unknown
from pai_backend.engine.kubernetes.objects import Object, namespace_of
from pai_backend.engine.kubernetes.places import EVERYWHERE, ApiPaths, ResourceKind
from pai_backend.engine.providers import JobOwner
from pai_backend.model.cluster_settings import NamespacePer
from pai_backend.model.ids import JobUid, TaskUid
from pai_backend.model.job import TaskExit

pytestmark = pytest.mark.asyncio

ENDED = TaskExit(code=0, at=datetime(2026, 11, 1, tzinfo=UTC))

JOB, OTHER = JobUid("j1"), JobUid("j2")


class Server:
    """An API server with these namespaces, in which whoever asks has no other right than to see which there are."""

    time = ClusterTime()

    def __init__(self, *names: str, tells: bool = True) -> None:
        self.names, self._tells = names, tells

    async def send(self, ask: Ask) -> bytes:
        inner, _, name = ask.request.path.removeprefix("/api/v1/namespaces").strip("/").partition("/")
        if name or not self._tells:
            raise self._no(ask, 403)
        if inner and inner not in self.names:
            raise self._no(ask, 404)
        found = [{"metadata": {"name": each, "uid": each}} for each in self.names]
        return json.dumps(found[self.names.index(inner)] if inner else {"items": found, "metadata": {}}).encode()

    def _no(self, ask: Ask, status: int) -> Exception:
        return refusal(ask.request, status, b"", None, datetime.now(UTC))

    def stream(self, ask: Ask) -> Any:
        raise AssertionError("nothing is watched here")

    async def renew_credentials(self) -> bool:
        return False


async def test_one_namespace_needs_no_store_and_no_rights_elsewhere() -> None:
    one = Namespaces("pai", NamespacePer.CLUSTER, unknown)
    assert await one.of_job(JOB) == one.watched == ApiPaths("pai")
    assert await one.all(Calls(Server(tells=False))) == [ApiPaths("pai")]
    assert one.watched.all(ResourceKind.POD) == "/api/v1/namespaces/pai/pods"


async def test_a_job_is_where_its_owner_is_and_that_is_asked_once() -> None:
    asked: list[JobUid] = []

    async def owner_of(job: JobUid) -> JobOwner | None:
        asked.append(job)
        return JobOwner("alice", "vision") if job == JOB else None

    for per, expected in ((NamespacePer.USER, "pai-alice"), (NamespacePer.VIRTUAL_CLUSTER, "pai-vision")):
        asked.clear()
        each = Namespaces("pai", per, owner_of)
        assert [await each.of_job(JOB), await each.of_job(JOB)] == [ApiPaths(expected)] * 2
        assert asked == [JOB]
        assert await each.of_job(OTHER) == ApiPaths("pai")  # where nothing is found of it
        assert each.watched == EVERYWHERE
        assert each.watched.all(ResourceKind.POD) == "/api/v1/pods"


async def test_only_namespaces_of_the_same_beginning_are_ours() -> None:
    ours = Namespaces("pai", NamespacePer.USER, unknown)
    names = ("default", "pai", "pai-alice", "paint-bob", "pai-carol")
    assert await ours.all(Calls(Server(*names))) == [ApiPaths("pai-alice"), ApiPaths("pai-carol")]


async def test_what_others_have_elsewhere_is_neither_told_nor_kept() -> None:
    """One that has the same name as a backend, in the same cluster."""
    handover = Handover()
    mirrors = Mirrors(
        Calls(Server()),
        of_tasks(EVERYWHERE, "local", others=False),
        lambda found: Namespaces("pai", NamespacePer.USER, unknown).has(namespace_of(found)),
    )

    def pod(uid: str, namespace: str) -> Object:
        return {"metadata": {"uid": uid, "namespace": namespace, "name": uid}, "status": {"phase": "Running"}}

    ours, node = pod("a", "pai-alice"), {"metadata": {"uid": "n", "name": "carol"}}
    told: list[Change] = [
        Seen("pods", ours),
        Seen("nodes", node),
        ObjectGone("pods", ours, witnessed=True),
        ResourceListed("pods"),
    ]
    handover.put([Seen("pods", pod("b", "other-alice")), told[0], told[1]])
    assert await mirrors.take(handover) == told[:2]
    handover.put([told[2], told[3], ObjectGone("pods", pod("b", "other-alice"), witnessed=True)])
    assert await mirrors.take(handover) == told[2:]
    assert mirrors.slim(pod("b", "other-alice")).keys() == {"metadata"}
    assert mirrors.slim(ours)["status"] == {"phase": "Running"}


@pytest.mark.parametrize(("server", "missing"), [(Server("pai-bob"), True), (Server("pai"), False)])
async def test_a_namespace_is_missing_when_the_server_says_so(server: Server, missing: bool) -> None:
    assert await is_missing(Calls(server), "pai") is missing
    assert not await is_missing(Calls(Server(tells=False)), "pai")


async def test_a_task_without_its_namespace_can_be_stopped_and_forgotten() -> None:
    """Its server says of a namespace that is not there that one may do nothing in it."""
    ender, uid = Ender(Calls(Server()), ApiPaths("pai-absent"), "local"), TaskUid("j1-0-0-0")

    async def keep(_: TaskUid) -> None:
        raise AssertionError("there is no log to keep")

    stopped = await ender.stop(uid, 1.0)
    assert stopped is not None
    assert (stopped.uid, bool(stopped.stop)) == (uid, True)
    await ender.forget(uid, ended=ENDED, keep=keep)
    there = Ender(Calls(Server("pai-closed")), ApiPaths("pai-closed"), "local")
    for act in (there.stop(uid, 1.0), there.forget(uid, ended=ENDED, keep=keep)):
        with pytest.raises(ApiForbidden):
            await act
