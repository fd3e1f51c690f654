"""A namespace for each user, seen from the engine: starting, watching, logs, stopping, forgetting, and a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_backend.engine.base import EngineError, Listed, LogStream, NodeSeen, StartRefused, TaskPlan, TaskState
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.access import Access
from pai_backend.engine.kubernetes.engine import EngineOptions, KubernetesEngine
from pai_backend.engine.providers import JobOwner
from pai_backend.model.cluster_settings import NamespacePer
from pai_backend.model.ids import JobUid, TaskUid, task_uid
from pai_backend.model.node import Placement
from pai_backend.model.pod_settings import PodSettings
from pai_backend.testing.engine_contract import watching
from tests.kubernetes.cluster.kubectl import Kubectl
from tests.kubernetes.fixtures import Kubernetes, remove_namespace

ALICES, BOBS, BOBS_SECOND = (JobUid(f"j{number:016x}") for number in (1, 2, 3))
USERS = {ALICES: "alice", BOBS: "bob", BOBS_SECOND: "bob"}


async def owner_of(job: JobUid) -> JobOwner | None:
    return JobOwner(USERS[job], "default") if job in USERS else None


def plan(job: JobUid, command: str, image: str) -> TaskPlan:
    return TaskPlan(
        uid=task_uid(job, 0, 0, 0),
        job_name="users",
        user=USERS[job],
        role="worker",
        index=0,
        image=image,
        command=command,
        env={},
        placement=Placement(node="carol", address="worker-0", machine="carol"),
        cpus=0,
    )


async def log_of(engine: KubernetesEngine, uid: TaskUid) -> bytes:
    return b"".join([piece async for piece in engine.logs(uid, LogStream.ALL, 0, follow=False)])


async def nodes_of(engine: KubernetesEngine) -> set[str]:
    """As a process hears of them that does not watch."""
    found = set()
    async for event in engine.follow_nodes():
        if isinstance(event, Listed):
            break
        if isinstance(event, NodeSeen):
            found.add(event.node.name)
    return found


@pytest.mark.asyncio
async def test_tasks_of_users_are_apart_and_are_found_again(
    kubernetes: Kubernetes, namespace: Kubectl, runtime_image: str, tmp_path: Path
) -> None:
    base = namespace.namespace
    options = EngineOptions(
        "users",
        PodSettings(runtime_image=runtime_image, grace_s=2, cpu_limits=False),
        tmp_path / "logs",
        namespace_per=NamespacePer.USER,
        owner_of=owner_of,
    )
    alices, bobs = namespace.within(f"{base}-alice"), namespace.within(f"{base}-bob")
    made: list[Kubectl] = []

    async def make(kubectl: Kubectl) -> None:
        await kubectl("create", "namespace", kubectl.namespace)
        made.append(kubectl)
        await kubectl("wait", "--for=create", "--timeout=30s", "serviceaccount/default")

    def engine() -> KubernetesEngine:
        return KubernetesEngine(Access(kubernetes.kubeconfig, namespace=base), options)

    long, short = plan(ALICES, "echo alice; sleep 1000", kubernetes.python), plan(BOBS, "echo bob", kubernetes.python)
    stopped = plan(BOBS_SECOND, "true", kubernetes.python)
    first, beside, second = engine(), engine(), engine()
    try:
        await make(alices)
        async with watching(first) as watch:
            assert first.troubles() == []
            await first.start(long)
            await watch.state(long.uid, TaskState.RUNNING)
            with pytest.raises(EngineError, match=f"the namespace {base}-bob of its task is not there") as missing:
                await first.start(short)
            assert not isinstance(missing.value, StartRefused)
            await first.stop(stopped.uid, 1.0)
            ended = (await watch.state(stopped.uid, TaskState.EXITED)).exit
            assert ended is not None
            assert ended.message == "stopped before it was started"
            await first.forget(stopped.uid)
            await make(bobs)
            await first.start(short)
            ended = (await watch.state(short.uid, TaskState.EXITED)).exit
            assert ended is not None
            assert ended.code == 0
        await first.aclose()
        assert await log_of(beside, short.uid) == b"bob\n"
        assert await log_of(beside, long.uid) == b"alice\n"
        assert {"carol", "dan"} <= await nodes_of(beside)
        async with watching(second) as watch:
            assert [seen.state for seen in watch.of(long.uid)] == [TaskState.RUNNING]
            assert [seen.state for seen in watch.of(short.uid)] == [TaskState.EXITED]
            await second.forget(short.uid)
            await second.stop(long.uid, 1.0)
            ended = (await watch.state(long.uid, TaskState.EXITED)).exit
            assert ended is not None
            assert ended.reason == "stopped"
            await second.forget(long.uid)
        for kubectl, uid in ((alices, long.uid), (bobs, short.uid)):
            await kubectl("wait", "--for=delete", "--timeout=60s", f"pod/{naming.task_name(uid)}")
            marks = (await kubectl.get("secrets"))["items"]
            assert [mark["metadata"]["name"] for mark in marks] == [naming.task_name(uid)]
    finally:
        for each in (first, beside, second):
            await each.aclose()
        for kubectl in made:
            await remove_namespace(kubectl)
