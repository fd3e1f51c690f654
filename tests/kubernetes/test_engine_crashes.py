"""The Kubernetes engine when it, or somebody else, breaks off in the middle: nothing runs twice, nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pydantic import SecretStr

from pai_backend.engine.base import TaskPlan, TaskState
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.access import Access
from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.client import connect
from pai_backend.engine.kubernetes.engine import EngineOptions, KubernetesEngine
from pai_backend.engine.kubernetes.failures import Unreachable
from pai_backend.engine.kubernetes.objects import Object
from pai_backend.engine.kubernetes.places import ApiPaths
from pai_backend.engine.kubernetes.policies import Policies
from pai_backend.engine.kubernetes.starting import Starter
from pai_backend.model.ids import JobUid, task_uid
from pai_backend.model.job import Causer
from pai_backend.model.node import Placement
from pai_backend.model.plan import RegistryLogin
from pai_backend.model.pod_settings import PodSettings
from pai_backend.testing.engine_contract import watching
from tests.kubernetes.cluster.kubectl import Kubectl
from tests.kubernetes.fixtures import Kubernetes

pytestmark = pytest.mark.asyncio

JOB = JobUid("j0123456789abcdef")
INSTANCE = "crashes"


class Site:
    """Engines of one backend, one after the other."""

    def __init__(self, access: Access, pods: PodSettings, image: str, place: Path) -> None:
        self.access, self.pods, self._image, self._place = access, pods, image, place
        self._made: list[KubernetesEngine] = []

    def engine(self) -> KubernetesEngine:
        made = KubernetesEngine(self.access, EngineOptions(INSTANCE, self.pods, self._place))
        self._made.append(made)
        return made

    def plan(self, command: str) -> TaskPlan:
        return TaskPlan(
            uid=task_uid(JOB, 0, 0, 0),
            job_name="crashes",
            user="alice",
            role="worker",
            index=0,
            image=self._image,
            command=command,
            env={},
            placement=Placement(node="carol", address="worker-0", machine="carol"),
            cpus=0,
        )

    async def start_until(self, plan: TaskPlan, verb: str, part: str) -> None:
        """Start a task as a backend does that is killed just before such a request, or after it (created)."""
        client = await connect(self.access)
        try:
            calls = CutOff(client, verb, part)
            starter = Starter(calls, ApiPaths(client.namespace), INSTANCE, self.pods, Policies(calls))
            with pytest.raises(Unreachable):
                await starter.start(plan)
        finally:
            await client.aclose()

    @asynccontextmanager
    async def sleeper(self, plan: TaskPlan) -> AsyncIterator[Callable[[], Awaitable[None]]]:
        """Another backend, which falls asleep in a start just before it makes the pod; call it to wake it up."""
        client = await connect(self.access)
        try:
            calls = Sleeper(client)
            starter = Starter(calls, ApiPaths(client.namespace), INSTANCE, self.pods, Policies(calls))
            starting = asyncio.create_task(starter.start(plan))
            await calls.sleeps.wait()

            async def wake() -> None:
                calls.wakes.set()
                await starting

            yield wake
        finally:
            await client.aclose()

    async def aclose(self) -> None:
        for each in self._made:
            await each.aclose()


class CutOff(Calls):
    """Calls of a backend that does not live to make a certain one, or to hear its answer."""

    def __init__(self, client: Any, verb: str, part: str) -> None:
        super().__init__(client)
        self._verb, self._part = verb, part

    async def create(self, path: str, body: Object, **options: Any) -> Object:
        self._die("create", path)
        made = await super().create(path, body, **options)
        self._die("created", path)
        return made

    def _die(self, verb: str, path: str) -> None:
        if verb == self._verb and self._part in path:
            raise Unreachable("killed", sent=False)


class Sleeper(Calls):
    """Calls of a backend that sleeps before it makes a pod."""

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self.sleeps, self.wakes = asyncio.Event(), asyncio.Event()

    async def create(self, path: str, body: Object, **options: Any) -> Object:
        if path.endswith("/pods"):
            self.sleeps.set()
            await self.wakes.wait()
        return await super().create(path, body, **options)


@pytest_asyncio.fixture
async def site(kubernetes: Kubernetes, namespace: Kubectl, runtime_image: str, tmp_path: Path) -> AsyncIterator[Site]:
    pods = PodSettings(runtime_image=runtime_image, grace_s=2, cpu_limits=False)
    access = Access(kubernetes.kubeconfig, namespace=namespace.namespace)
    made = Site(access, pods, kubernetes.python, tmp_path / "logs")
    yield made
    await made.aclose()


async def test_a_start_that_was_cut_off_before_the_pod_is_done_when_it_is_repeated(
    site: Site, namespace: Kubectl
) -> None:
    plan = site.plan("exit 6")
    await site.start_until(plan, "create", "/pods")
    engine = site.engine()
    async with watching(engine) as watch:
        assert watch.of(plan.uid) == []
        await engine.start(plan)
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    assert ended.code == 6


async def test_a_start_that_was_cut_off_after_the_pod_is_found(site: Site, namespace: Kubectl) -> None:
    plan = site.plan("sleep 1000")
    await site.start_until(plan, "created", "/pods")
    engine = site.engine()
    async with watching(engine) as watch:
        assert watch.of(plan.uid)
        await engine.start(plan)
        await watch.state(plan.uid, TaskState.RUNNING)
        assert len((await namespace.get("pods"))["items"]) == 1
        await engine.stop(plan.uid, 1.0)
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
    assert ended is not None
    assert ended.reason == "stopped"


async def test_a_stop_in_the_middle_of_a_start_wins(site: Site, namespace: Kubectl) -> None:
    """The Secret is there, the pod is not yet: the start that goes on makes none."""
    plan = site.plan("echo ran")
    await site.start_until(plan, "create", "/pods")
    engine = site.engine()
    async with watching(engine) as watch:
        await engine.stop(plan.uid, 1.0)
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
        assert ended is not None
        assert ended.reason == "stopped"
        await engine.start(plan)
    assert (await namespace.get("pods"))["items"] == []
    async with watching(site.engine()) as watch:
        assert [seen.state for seen in watch.of(plan.uid)] == [TaskState.EXITED]


@pytest.mark.parametrize("forgets", [True, False], ids=["forgotten", "stopped"])
async def test_a_pod_that_comes_when_its_task_was_given_up_is_ended_by_whoever_watches(
    site: Site, namespace: Kubectl, forgets: bool
) -> None:
    plan = site.plan("sleep 1000")
    engine = site.engine()
    async with watching(engine) as watch, site.sleeper(plan) as wake:
        await engine.stop(plan.uid, 1.0)
        assert await watch.state(plan.uid, TaskState.EXITED)
        if forgets:
            await engine.forget(plan.uid)
        await wake()
        if not forgets:
            await namespace.until_phase(naming.task_name(plan.uid), "Failed")
            await engine.forget(plan.uid)
        await namespace("wait", "--for=delete", f"pod/{naming.task_name(plan.uid)}", "--timeout=60s")
        assert [seen.state for seen in watch.of(plan.uid)] == [TaskState.EXITED]


async def test_a_pod_that_was_removed_while_nobody_watched_has_vanished_and_is_not_run_again(
    site: Site, namespace: Kubectl
) -> None:
    plan = site.plan("sleep 1000")
    engine = site.engine()
    async with watching(engine) as watch:
        await engine.start(plan)
        await watch.state(plan.uid, TaskState.RUNNING)
    await engine.aclose()
    name = naming.task_name(plan.uid)
    await namespace("delete", "pod", name, "--wait=false", "--grace-period=1")
    await namespace("patch", "pod", name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    await namespace("wait", "--for=delete", f"pod/{name}", "--timeout=60s")
    again = site.engine()
    async with watching(again) as watch:
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
        assert ended is not None
        assert (ended.reason, ended.causer) == ("vanished", Causer.PLATFORM)
        await again.start(plan)
    assert (await namespace.get("pods"))["items"] == []


async def test_nothing_but_a_mark_without_secrets_is_left_of_a_forgotten_task(site: Site, namespace: Kubectl) -> None:
    plan = site.plan("true")
    engine = site.engine()
    async with watching(engine) as watch:
        await engine.start(plan)
        await watch.state(plan.uid, TaskState.EXITED)
        await engine.forget(plan.uid)
    await namespace("wait", "--for=delete", f"pod/{naming.task_name(plan.uid)}", "--timeout=60s")
    secrets = (await namespace.get("secrets"))["items"]
    assert [each["metadata"]["name"] for each in secrets] == [naming.task_name(plan.uid)]
    assert "data" not in secrets[0]


async def test_one_deletion_collects_all_of_a_job_with_one_task(site: Site, namespace: Kubectl) -> None:
    """Its Secret owns the pod, and the Secret that its image is fetched with; the pod stays until its exit is kept."""
    login = RegistryLogin(username="u", password=SecretStr("p"), registry_uri="registry.example")
    plan = site.plan("sleep 1000").model_copy(update={"image_login": login})
    name = naming.task_name(plan.uid)
    engine = site.engine()
    async with watching(engine) as watch:
        await engine.start(plan)
        await watch.state(plan.uid, TaskState.RUNNING)
        await namespace("delete", "secret", name)
        await namespace("wait", "--for=delete", "--timeout=60s", f"secret/{naming.login_name(plan.uid)}")
        ended = (await watch.state(plan.uid, TaskState.EXITED)).exit
        assert ended is not None
        assert (ended.reason, ended.causer) == ("vanished", Causer.PLATFORM)
        await engine.forget(plan.uid)
    await namespace("wait", "--for=delete", f"pod/{name}", "--timeout=60s")
    assert (await namespace.get("secrets"))["items"] == []
