"""A cluster of two nodes on which NetworkPolicies are enforced; engines on it, and pods beside their tasks."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import uuid
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest_asyncio
from pydantic import SecretStr

from pai_backend.access.keys import make_ed25519
from pai_backend.engine.base import TaskState
from pai_backend.engine.bundle.host_names import host_name
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.access import Access
from pai_backend.engine.kubernetes.engine import EngineOptions, KubernetesEngine
from pai_backend.model.ids import JobUid, task_uid
from pai_backend.model.node import Placement
from pai_backend.model.plan import SshPlan, TaskPlan
from pai_backend.model.pod_settings import PodSettings
from pai_backend.testing.engine_contract import Watching, watching
from tests.kubernetes.cluster import images, programs
from tests.kubernetes.cluster.cluster import Cluster, started
from tests.kubernetes.cluster.kubectl import Json, Kubectl
from tests.kubernetes.fixtures import NODES, need_machine, remove_namespace
from tests.kubernetes.policies.knocking import PORT, SERVE, SSH, Knocker, address_of
from tests.kubernetes.runtime_image import loaded

CAROL, DAN = NODES


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def guarded() -> AsyncIterator[Cluster]:
    """Carol and dan, each with a program that decides on new connections to its pods."""
    await asyncio.to_thread(need_machine, _lacking)
    place = await asyncio.to_thread(programs.build, "policy-enforcer")
    async with started(NODES) as cluster:
        for node in cluster.nodes.values():
            await node.enforce_policies(place / "policy-enforcer")
        yield cluster


def _lacking() -> list[str]:
    """What the kernel lacks to ask a program about packets, in words."""
    rule = ["iptables", "--table", "mangle", "--append", "FORWARD", "-j", "NFQUEUE", "--queue-num", "0"]
    done = subprocess.run(["unshare", "--net", *rule], capture_output=True, text=True, timeout=60)
    return [f"NFQUEUE of the kernel ({' '.join(done.stderr.split())})"] if done.returncode != 0 else []


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def bundle(guarded: Cluster) -> str:
    """The runtime image, on both nodes."""
    return await loaded(guarded)


@contextlib.asynccontextmanager
async def new_namespace(cluster: Cluster, name: str = "") -> AsyncIterator[Kubectl]:
    """kubectl in a namespace that goes with all that is in it."""
    kubectl = cluster.kubectl.within(name or f"policies-{uuid.uuid4().hex[:8]}")
    await kubectl("create", "namespace", kubectl.namespace)
    try:
        await kubectl("wait", "--for=create", "--timeout=30s", "serviceaccount/default")
        yield kubectl
    finally:
        await remove_namespace(kubectl)


@pytest_asyncio.fixture(loop_scope="session")
async def namespace_of_test(guarded: Cluster) -> AsyncIterator[Kubectl]:
    """A namespace of the test's own."""
    async with new_namespace(guarded) as kubectl:
        yield kubectl


class Guard:
    """An engine in a namespace, with these settings of pods; and what knocks at its tasks."""

    def __init__(self, kubectl: Kubectl, bundle: str, place: Path, **settings: Any) -> None:
        self.kubectl = kubectl
        pods = PodSettings.model_validate({"runtime_image": bundle, "grace_s": 1, "cpu_limits": False, **settings})
        options = EngineOptions("policies", pods, place / f"logs-{uuid.uuid4().hex[:8]}")
        self.engine = KubernetesEngine(Access(kubectl.kubeconfig, namespace=kubectl.namespace), options)
        self._watch = Watching(self.engine)

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[Guard]:
        """The engine followed for the length of a block, which keeps the names of peers current; closed after it."""
        try:
            async with watching(self.engine) as self._watch:
                yield self
        finally:
            await self.engine.aclose()

    async def start(self, *plans: TaskPlan) -> list[Knocker]:
        """Start tasks, as the controller does."""
        await asyncio.gather(*map(self.engine.start, plans))
        return [Knocker(self.kubectl, naming.task_name(plan.uid)) for plan in plans]

    async def addresses(self, *plans: TaskPlan) -> list[str]:
        """Addresses of their pods, once these run."""
        names = [naming.task_name(plan.uid) for plan in plans]
        return list(await asyncio.gather(*(address_of(self.kubectl, name) for name in names)))

    async def end(self, plan: TaskPlan) -> None:
        """Stop and forget a task."""
        await self.engine.stop(plan.uid, 1.0)
        await self._watch.state(plan.uid, TaskState.EXITED)
        await self.engine.forget(plan.uid)

    async def dialled(self, plan: TaskPlan, port: int = PORT) -> bytes:
        """What a backend hears at a port of the task that is outside of the cluster."""
        connection = await self.engine.dial(plan.placement, plan.uid, port)
        try:
            return await connection.reader.read()
        finally:
            connection.writer.close()


async def let_in(kubectl: Kubectl, *pods: Json) -> list[Knocker]:
    """Make pods that are of no job, and wait until they run."""
    await kubectl.create(*pods)
    names = [pod["metadata"]["name"] for pod in pods]
    await asyncio.gather(*(address_of(kubectl, name) for name in names))
    return [Knocker(kubectl, name) for name in names]


def tasks_of(job: JobUid, user: str, nodes: Sequence[str], *, attempt: int = 0) -> list[TaskPlan]:
    """Plans of a job's tasks, one on each node that is named; each serves a port and SSH."""
    about: dict[str, Any] = {"job_name": user, "user": user, "role": "worker", "image": images.PYTHON, "env": {}}
    return [
        TaskPlan(
            **about,
            uid=task_uid(job, 0, index, attempt),
            index=index,
            job_attempt=attempt,
            job_tasks=len(nodes),
            job_placed=len(nodes),
            command=f"echo up; exec python3 -c '{SERVE}' {PORT}",
            placement=Placement(node=node, address=host_name("worker", index), machine=node),
            cpus=0,
            job_info="{}",
            ssh=SshPlan(port=SSH, host_key=SecretStr(make_ed25519("task")[0]), authorized_keys=()),
        )
        for index, node in enumerate(nodes)
    ]
