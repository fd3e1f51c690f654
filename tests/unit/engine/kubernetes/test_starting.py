"""Which requests a start and a forgetting make, in which order, and what is left when one of them is refused."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

import pytest
from pydantic import SecretStr

from pai_backend.engine.base import EngineError, StartForbidden, StartRefused
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.client import Ask
from pai_backend.engine.kubernetes.cluster_time import ClusterTime
from pai_backend.engine.kubernetes.ending import TOMBSTONE, Ender
from pai_backend.engine.kubernetes.failures import refusal
from pai_backend.engine.kubernetes.late_pods import LatePods
from pai_backend.engine.kubernetes.marks import marks_of
from pai_backend.engine.kubernetes.objects import Object, metadata, slim_pod
from pai_backend.engine.kubernetes.places import ApiPaths, ResourceKind
from pai_backend.engine.kubernetes.pods.job import network_policy
from pai_backend.engine.kubernetes.pods.owner import PodOwner
from pai_backend.engine.kubernetes.policies import SURE_S, Policies
from pai_backend.engine.kubernetes.starting import GateSupport, Starter
from pai_backend.model.ids import TaskUid
from pai_backend.model.job import TaskExit
from pai_backend.model.plan import RegistryLogin, TaskPlan
from pai_backend.model.pod_choice import PodChoice
from pai_backend.model.pod_settings import PodSettings

from .pods.conftest import MakePlan, make_plan, settings

__all__ = ["make_plan", "settings"]

pytestmark = pytest.mark.asyncio

ENDED = TaskExit(code=0, at=datetime(2026, 11, 1, tzinfo=UTC))


class Server:
    """Keeps objects as an API server does, as far as is asked here; remembers what it was asked, in order."""

    time = ClusterTime()

    def __init__(self, refuse: str = "") -> None:
        self.asked: list[str] = []
        self.objects: dict[str, Object] = {}
        self._refuse = refuse  # the collection in which nothing may be created
        self._version = 0
        self._told: list[str] = []  # names of pods that there are events of
        self.ignored = ""  # a field of pods that it does not know

    async def send(self, ask: Ask) -> bytes:
        path = PurePosixPath(ask.request.path)
        kind = path.name if ask.method == "POST" else path.parent.name
        if path.name == "events":
            return json.dumps(
                {"items": [each for each in self._told if each in dict(ask.query)["fieldSelector"]]}
            ).encode()
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
        made.get("spec", {}).pop(self.ignored, None)
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

    def remove(self, kind: str) -> None:
        """Let all objects of a kind be gone."""
        self.objects = {path: each for path, each in self.objects.items() if f"/{kind}/" not in path}

    def tell_of_pod(self, name: str) -> None:
        """Have an event of a pod of that name."""
        self._told.append(name)

    def named(self, kind: str) -> list[str]:
        """Names of the objects of a kind."""
        return [PurePosixPath(path).name for path in self.objects if PurePosixPath(path).parent.name == kind]


def starter(server: Server, settings: PodSettings, *nodes: str) -> Starter:
    calls = Calls(server)
    return Starter(calls, ApiPaths("team"), "lab", settings, Policies(calls), lambda name: name in nodes)


async def test_a_node_that_is_known_is_not_asked_for_and_the_pod_comes_last(
    make_plan: MakePlan, settings: PodSettings
) -> None:
    server = Server()
    await starter(server, settings, "carol").start(make_plan(job_tasks=2))
    assert server.asked[0] == "POST configmaps"
    assert sorted(server.asked[1:3]) == ["POST networkpolicies", "POST secrets"]
    assert server.asked[3:] == ["POST pods"]


async def test_a_job_of_one_task_is_a_secret_that_owns_a_pod(make_plan: MakePlan, settings: PodSettings) -> None:
    """So that deleting it deletes all; the policy is shared with all others of its kind."""
    server = Server()
    given = RegistryLogin(username="u", password=SecretStr("p"), registry_uri="registry.example")
    starts = starter(server, settings, "carol")
    await starts.start(make_plan(image_login=given))
    assert sorted(server.asked[:2]) == ["POST networkpolicies", "POST secrets"]
    assert server.asked[2:] == ["POST secrets", "POST pods"]
    name, login = naming.task_name(make_plan().uid), naming.login_name(make_plan().uid)
    places = ApiPaths("team")
    owners = [
        metadata(server.objects[place])["ownerReferences"]
        for place in (places.one(ResourceKind.POD, name), places.one(ResourceKind.SECRET, login))
    ]
    expected = {"apiVersion": "v1", "kind": "Secret", "name": name, "uid": "uid-of-secrets"}
    assert owners == [[{**expected, "controller": True, "blockOwnerDeletion": False}]] * 2
    assert "ownerReferences" not in metadata(server.objects[places.one(ResourceKind.SECRET, name)])
    server.asked.clear()
    await starts.start(make_plan(uid=TaskUid("j0123456789abcdee-0-0-0")))
    assert server.asked == ["POST secrets", "POST pods"]


async def test_a_task_whose_secret_is_being_deleted_waits(make_plan: MakePlan, settings: PodSettings) -> None:
    server = Server()
    await cut_off_before_the_pod(server, make_plan(), settings)
    (secret,) = [each for path, each in server.objects.items() if "/secrets/" in path]
    metadata(secret)["deletionTimestamp"] = "2026-11-22T00:00:00Z"
    with pytest.raises(EngineError, match="is being deleted"):
        await starter(server, settings, "carol").start(make_plan())
    assert server.named("pods") == []


@pytest.mark.parametrize("mark", [naming.STOP, naming.FORGOTTEN])
async def test_a_task_that_was_stopped_is_done_also_while_its_secret_is_deleted(
    make_plan: MakePlan, settings: PodSettings, mark: str
) -> None:
    server = Server()
    await cut_off_before_the_pod(server, make_plan(), settings)
    (secret,) = [each for path, each in server.objects.items() if "/secrets/" in path]
    metadata(secret)["deletionTimestamp"] = metadata(secret)["annotations"][mark] = "2026-11-22T00:00:00Z"
    await starter(server, settings, "carol").start(make_plan())
    assert server.named("pods") == []


async def test_many_tasks_that_begin_together_make_sure_of_their_policy_once_a_minute(
    make_plan: MakePlan, settings: PodSettings
) -> None:
    server, now = Server(), 0.0
    calls = Calls(server)
    policies = Policies(calls, lambda: now)
    body = network_policy(make_plan(), PodOwner("team", "t", "", "lab"), settings)
    assert body is not None
    await asyncio.gather(*(policies.ensure(body, ApiPaths("team")) for _ in range(20)))
    await policies.ensure(body, ApiPaths("other"))
    assert server.asked == ["POST networkpolicies"] * 2
    now = SURE_S + 1
    server.remove("networkpolicies")
    await policies.ensure(body, ApiPaths("team"))
    await policies.ensure(body, ApiPaths("team"))
    assert len(server.asked) == 3
    assert server.named("networkpolicies") == [metadata(body)["name"]]


async def test_a_policy_that_was_refused_is_asked_for_again(make_plan: MakePlan, settings: PodSettings) -> None:
    server = Server(refuse="networkpolicies")
    starts = starter(server, settings, "carol")
    for _ in range(2):
        with pytest.raises(EngineError):
            await starts.start(make_plan())
    assert server.asked.count("POST networkpolicies") == 2


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
    assert server.asked[4:] == ["POST pods"]


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


@pytest.mark.parametrize("tasks", [1, 2])
async def test_a_task_that_is_refused_for_good_is_forgotten_so_that_its_attempt_goes_with_it(
    make_plan: MakePlan, settings: PodSettings, tasks: int
) -> None:
    server = Server(refuse="pods")
    with pytest.raises(StartRefused):
        await starter(server, settings, "carol").start(make_plan(job_tasks=tasks))
    await assert_nothing_is_left(server, make_plan().uid)


@pytest.mark.parametrize("tasks", [1, 2])
async def test_an_attempt_of_a_plan_that_cannot_be_built_goes_too(
    make_plan: MakePlan, settings: PodSettings, tasks: int
) -> None:
    server = Server()
    with pytest.raises(StartRefused, match="cannot be given to a process"):
        await starter(server, settings, "carol").start(make_plan(env={"A=B": ""}, job_tasks=tasks))
    assert server.named("pods") == []
    await assert_nothing_is_left(server, make_plan().uid)


async def assert_nothing_is_left(server: Server, uid: TaskUid) -> None:
    """The controller forgets what was refused for good, and what owns its attempt is swept when that is long ago."""
    await Ender(Calls(server), ApiPaths("team"), "lab").forget(uid, ended=ENDED, keep=kept)
    (secret,) = [each for path, each in server.objects.items() if "/secrets/" in path]
    assert "data" not in secret
    marks = marks_of(secret)
    assert marks is not None
    assert marks.forgotten is not None
    await Ender(Calls(server), ApiPaths("team"), "lab").sweep([marks], marks.forgotten + 2 * TOMBSTONE)
    assert server.named("configmaps" if marks.owner is not None else "secrets") == []


async def cut_off_before_the_pod(server: Server, plan: TaskPlan, settings: PodSettings) -> None:
    """What a controller leaves that is killed between Secret and pod."""
    await starter(server, settings, "carol").start(plan)
    server.remove("pods")
    server.asked.clear()


async def test_a_start_that_was_cut_off_before_the_pod_goes_on(make_plan: MakePlan, settings: PodSettings) -> None:
    server = Server()
    await cut_off_before_the_pod(server, make_plan(), settings)
    await starter(server, settings, "carol").start(make_plan())
    assert server.named("pods") == [naming.task_name(make_plan().uid)]


async def test_a_task_of_whose_pod_events_tell_is_not_started_a_second_time(
    make_plan: MakePlan, settings: PodSettings
) -> None:
    server = Server()
    await cut_off_before_the_pod(server, make_plan(), settings)
    server.tell_of_pod(naming.task_name(make_plan().uid))
    await starter(server, settings, "carol").start(make_plan())
    assert server.named("pods") == []
    ender = Ender(Calls(server), ApiPaths("team"), "lab")
    assert await ender.stop(make_plan().uid, 1) is None


async def test_a_start_that_is_repeated_finds_its_pod(make_plan: MakePlan, settings: PodSettings) -> None:
    server = Server()
    for _ in range(2):
        await starter(server, settings, "carol").start(make_plan())
    assert server.asked.count("POST pods") == 1


@pytest.mark.parametrize(("mark", "may_run"), [(naming.FORGOTTEN, False), (naming.STOP, True)])
async def test_a_pod_that_comes_after_its_task_was_stopped_or_forgotten_is_ended(
    make_plan: MakePlan, settings: PodSettings, mark: str, may_run: bool
) -> None:
    """A controller that slept makes it; the one that watches now settles it."""
    server = Server()
    await starter(server, settings, "carol").start(make_plan())
    (secret,) = [each for path, each in server.objects.items() if "/secrets/" in path]
    (pod,) = [each for path, each in server.objects.items() if "/pods/" in path]
    metadata(secret)["annotations"][mark] = "2026-11-21T00:00:00Z"
    assert await LatePods(Calls(server)).settle(make_plan().uid, pod) is may_run
    assert "deletionTimestamp" in metadata(pod)
    assert (metadata(pod)["finalizers"] is None) is not may_run


async def test_a_pod_of_a_task_that_goes_on_is_left_alone(make_plan: MakePlan, settings: PodSettings) -> None:
    server = Server()
    await starter(server, settings, "carol").start(make_plan())
    (pod,) = [each for path, each in server.objects.items() if "/pods/" in path]
    before = json.dumps(pod)
    late = LatePods(Calls(server))
    assert await late.settle(make_plan().uid, pod)
    assert json.dumps(pod) == before
    late.expect(make_plan().uid)
    assert (late.came(make_plan().uid), late.came(make_plan().uid)) == (True, False)


async def test_a_pod_that_is_known_is_not_asked_for_when_its_task_is_forgotten(
    make_plan: MakePlan, settings: PodSettings
) -> None:
    server = Server()
    await starter(server, settings, "carol").start(make_plan())
    (pod,) = [slim_pod(each) for path, each in server.objects.items() if "/pods/" in path]
    server.asked.clear()
    ender = Ender(Calls(server), ApiPaths("team"), "lab")
    await ender.forget(make_plan().uid, ended=ENDED, keep=kept, pod=pod)
    assert server.asked == ["PATCH secrets", "DELETE pods", "PATCH pods"]


async def test_a_cluster_that_ignores_gates_is_told_of_once(
    make_plan: MakePlan, settings: PodSettings, caplog: pytest.LogCaptureFixture
) -> None:
    """Kubernetes before 1.27: pods are made without them, and start as they always did."""
    server, gates = Server(), GateSupport()
    calls = Calls(server)
    for ignores in (False, True, True):
        server.ignored = "schedulingGates" if ignores else ""
        starts = Starter(calls, ApiPaths("team"), "lab", settings, Policies(calls), lambda _: True, gates)
        await starts.start(make_plan(uid=f"j0123456789abcde{len(server.objects) % 10}-0-3-1", job_tasks=2, gang=2))
        assert len(caplog.records) <= ignores
    assert "ignores scheduling gates" in caplog.text


async def test_a_secret_that_is_no_tasks_is_not_touched(make_plan: MakePlan, settings: PodSettings) -> None:
    server, name = Server(), naming.task_name(make_plan().uid)
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"theirs": "AA=="}}
    await Calls(server).create(ApiPaths("team").all(ResourceKind.SECRET), body)
    with pytest.raises(StartRefused, match="does not belong"):
        await starter(server, settings, "carol").start(make_plan())
    await Ender(Calls(server), ApiPaths("team"), "lab").forget(make_plan().uid, ended=ENDED, keep=kept)
    (secret,) = [each for path, each in server.objects.items() if "/secrets/" in path]
    assert secret["data"] == {"theirs": "AA=="}
    assert "annotations" not in metadata(secret)


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
    await Ender(Calls(server), ApiPaths("team"), "lab").forget(plan.uid, ended=ENDED, keep=kept)
    # The log apart, which goes past these calls.
    expected = ["GET pods", "PATCH secrets", "DELETE pods", "PATCH pods"]
    assert server.asked == [*expected[:2], *(["DELETE secrets"] if login else []), *expected[2:]]
    (pod,) = [each for path, each in server.objects.items() if "/pods/" in path]
    assert metadata(pod)["finalizers"] is None
    assert naming.login_name(plan.uid) not in server.named("secrets")


async def test_a_secret_that_a_document_chooses_and_is_not_there_is_told_before_a_pod_is_made(
    make_plan: MakePlan, settings: PodSettings
) -> None:
    """A kubelet would fetch the image without, and fail after minutes. What is forgotten goes by the task's mark."""
    server = Server()
    given = PodSettings.model_validate({**settings.model_dump(), "allowed": {"image_pull_secrets": ["theirs"]}})
    plan = make_plan(pods=PodChoice(image_pull_secrets=("theirs",)))
    with pytest.raises(StartForbidden, match="there is no Secret theirs in the namespace team"):
        await starter(server, given, "carol").start(plan)
    assert server.named("pods") == []
    assert server.named("secrets") == [naming.task_name(plan.uid)]
    server.objects[ApiPaths("team").one(ResourceKind.SECRET, "theirs")] = {"metadata": {"name": "theirs"}}
    other = plan.model_copy(update={"uid": TaskUid("j0123456789abcdee-0-0-0")})
    await starter(server, given, "carol").start(other)
    assert server.named("pods") == [naming.task_name(other.uid)]
