"""Which requests a start and a forgetting make, in which order, and what is left when one of them is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

import pytest
from pydantic import SecretStr

from pai_backend.engine.base import EngineError, StartRefused
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.client import Ask
from pai_backend.engine.kubernetes.cluster_time import ClusterTime
from pai_backend.engine.kubernetes.ending import TOMBSTONE, Ender
from pai_backend.engine.kubernetes.failures import refusal
from pai_backend.engine.kubernetes.marks import marks_of
from pai_backend.engine.kubernetes.objects import Object, metadata
from pai_backend.engine.kubernetes.places import Places
from pai_backend.engine.kubernetes.starting import Starter
from pai_backend.model.ids import TaskUid
from pai_backend.model.plan import RegistryLogin
from pai_backend.model.pod_settings import PodSettings

from .pods.conftest import MakePlan, make_plan, settings

__all__ = ["make_plan", "settings"]

pytestmark = pytest.mark.asyncio


class Server:
    """Keeps objects as an API server does, as far as is asked here; remembers what it was asked, in order."""

    time = ClusterTime()

    def __init__(self, refuse: str = "") -> None:
        self.asked: list[str] = []
        self.objects: dict[str, Object] = {}
        self._refuse = refuse  # the collection in which nothing may be created
        self._version = 0

    async def send(self, ask: Ask) -> bytes:
        path = PurePosixPath(ask.request.path)
        kind = path.name if ask.method == "POST" else path.parent.name
        self.asked.append(f"{ask.method} {kind}")
        if ask.method == "POST":
            return self._create(ask, str(path), kind)
        found = self.objects.get(str(path))
        if found is None:
            raise self._refusal(ask, 404, "NotFound")
        if ask.method == "DELETE":
            metadata(found)["deletionTimestamp"] = "2026-11-21T00:00:00Z"
            if not metadata(found).get("finalizers"):
                del self.objects[str(path)]
        elif ask.method == "PATCH":
            assert isinstance(ask.body, dict)
            self._patch(ask, found, ask.body)
        return json.dumps(found).encode()

    def _create(self, ask: Ask, path: str, kind: str) -> bytes:
        if kind == self._refuse:
            raise self._refusal(ask, 422, "Invalid")
        made = json.loads(json.dumps(ask.body))
        if f"{path}/{metadata(made)['name']}" in self.objects:
            raise self._refusal(ask, 409, "AlreadyExists")
        metadata(made).update(uid=f"uid-of-{kind}", resourceVersion=self._next())
        self.objects[f"{path}/{metadata(made)['name']}"] = made
        return json.dumps(made).encode()

    def _patch(self, ask: Ask, found: Object, body: dict[str, Any]) -> None:
        about = dict(body["metadata"])
        if about.pop("resourceVersion", metadata(found)["resourceVersion"]) != metadata(found)["resourceVersion"]:
            raise self._refusal(ask, 409, "Conflict")
        metadata(found).setdefault("annotations", {}).update(about.pop("annotations", {}))
        metadata(found).update(about, resourceVersion=self._next())
        found |= {name: value for name, value in body.items() if name != "metadata"}
        for name in [name for name, value in found.items() if value is None]:
            del found[name]

    def _next(self) -> str:
        self._version += 1
        return str(self._version)

    @staticmethod
    def _refusal(ask: Ask, status: int, reason: str) -> Exception:
        body = json.dumps({"kind": "Status", "reason": reason, "message": reason}).encode()
        return refusal(ask.request, status, body, None, datetime.now(UTC))

    def stream(self, ask: Ask) -> Any:
        raise AssertionError("nothing is watched here")

    async def renew_credentials(self) -> bool:
        return False

    def named(self, kind: str) -> list[str]:
        """Names of the objects of a kind."""
        return [PurePosixPath(path).name for path in self.objects if PurePosixPath(path).parent.name == kind]


def starter(server: Server, settings: PodSettings, *nodes: str) -> Starter:
    return Starter(Calls(server), Places("team"), "lab", settings, lambda name: name in nodes)


async def test_a_node_that_is_known_is_not_asked_for_and_the_pod_comes_last(
    make_plan: MakePlan, settings: PodSettings
) -> None:
    server = Server()
    await starter(server, settings, "carol").start(make_plan())
    assert server.asked[0] == "POST configmaps"
    assert sorted(server.asked[1:3]) == ["POST networkpolicies", "POST secrets"]
    assert server.asked[3:] == ["POST pods", "PATCH secrets"]


async def test_what_another_task_of_the_attempt_has_made_is_not_asked_for_but_for_its_owner(
    make_plan: MakePlan, settings: PodSettings
) -> None:
    server = Server()
    await starter(server, settings, "carol").start(make_plan(job_tasks=2))
    server.asked.clear()
    other = make_plan(job_tasks=2, uid=TaskUid("j0123456789abcdef-0-4-1"), index=4)
    await starter(server, settings, "carol").start(other)
    assert server.asked[:2] == ["POST configmaps", "GET configmaps"]
    assert sorted(server.asked[2:4]) == ["POST networkpolicies", "POST secrets"]
    assert server.asked[4:] == ["POST pods", "PATCH secrets"]


async def test_a_node_that_nobody_has_told_of_is_asked_for(make_plan: MakePlan, settings: PodSettings) -> None:
    server = Server()
    with pytest.raises(StartRefused, match="no node 'carol'"):
        await starter(server, settings, "dan").start(make_plan())
    assert server.asked == ["GET nodes"]


async def test_nothing_runs_unprotected_where_the_policy_is_refused(make_plan: MakePlan, settings: PodSettings) -> None:
    server = Server(refuse="networkpolicies")
    with pytest.raises(EngineError):
        await starter(server, settings, "carol").start(make_plan())
    assert server.named("pods") == []


async def test_a_task_that_is_refused_for_good_is_forgotten_so_that_its_attempt_goes_with_it(
    make_plan: MakePlan, settings: PodSettings
) -> None:
    server = Server(refuse="pods")
    with pytest.raises(StartRefused):
        await starter(server, settings, "carol").start(make_plan())
    await assert_nothing_is_left(server, make_plan().uid)


async def test_an_attempt_of_a_plan_that_cannot_be_built_goes_too(make_plan: MakePlan, settings: PodSettings) -> None:
    server = Server()
    with pytest.raises(StartRefused, match="cannot be given to a process"):
        await starter(server, settings, "carol").start(make_plan(env={"A=B": ""}))
    assert server.named("pods") == []
    await assert_nothing_is_left(server, make_plan().uid)


async def assert_nothing_is_left(server: Server, uid: TaskUid) -> None:
    """The controller forgets what was refused for good, and the attempt is swept when that is long ago."""
    await Ender(Calls(server), Places("team"), "lab").forget(uid, ended=True, keep=kept)
    (secret,) = [each for path, each in server.objects.items() if "/secrets/" in path]
    assert "data" not in secret
    marks = marks_of(secret)
    assert marks is not None
    assert marks.forgotten is not None
    await Ender(Calls(server), Places("team"), "lab").sweep([marks], marks.forgotten + 2 * TOMBSTONE)
    assert server.named("configmaps") == []


class Sleepers(Server):
    """Another controller starts, ends and forgets the task just before our pod is made."""

    def _create(self, ask: Ask, path: str, kind: str) -> bytes:
        if kind == "pods":
            (secret,) = [each for path, each in self.objects.items() if "/secrets/" in path]
            metadata(secret)["annotations"] |= {naming.STARTED: "theirs", naming.FORGOTTEN: "2026-11-21T00:00:00Z"}
        return super()._create(ask, path, kind)


async def test_a_pod_that_comes_after_its_task_was_forgotten_is_taken_away_again(
    make_plan: MakePlan, settings: PodSettings
) -> None:
    server = Sleepers()
    await starter(server, settings, "carol").start(make_plan())
    (pod,) = [each for path, each in server.objects.items() if "/pods/" in path]
    assert "deletionTimestamp" in metadata(pod)
    assert metadata(pod)["finalizers"] is None


async def kept(uid: TaskUid) -> bool:
    return True


@pytest.mark.parametrize("login", [False, True])
async def test_forgetting_asks_no_more_than_it_must(make_plan: MakePlan, settings: PodSettings, login: bool) -> None:
    server = Server()
    given = RegistryLogin(username="u", password=SecretStr("p"), registry_uri="registry.example") if login else None
    plan = make_plan(image_login=given)
    await starter(server, settings, "carol").start(plan)
    assert (naming.login_name(plan.uid) in server.named("secrets")) is login
    server.asked.clear()
    await Ender(Calls(server), Places("team"), "lab").forget(plan.uid, ended=True, keep=kept)
    # The log apart, which goes past these calls.
    expected = ["GET pods", "GET secrets", "PATCH secrets", "DELETE pods", "PATCH pods"]
    assert server.asked == [*expected[:3], *(["DELETE secrets"] if login else []), *expected[3:]]
    (pod,) = [each for path, each in server.objects.items() if "/pods/" in path]
    assert metadata(pod)["finalizers"] is None
    assert naming.login_name(plan.uid) not in server.named("secrets")
