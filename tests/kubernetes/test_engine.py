"""The Kubernetes engine passes the contract of engines, on real nodes."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from pai_backend.engine.base import TaskPlan
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.access import Access
from pai_backend.engine.kubernetes.engine import EngineOptions, KubernetesEngine
from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Placement
from pai_backend.model.pod_settings import PodSettings
from pai_backend.testing.engine_contract import Behind, EngineMaker, Given, Kept, Reach, Runs
from tests.kubernetes.cluster.kubectl import Kubectl
from tests.kubernetes.fixtures import Kubernetes

NUMBERS = itertools.count()


class Outside:
    """Processes of tasks as this machine sees them, on which all nodes are; and what an administrator may break."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl

    def processes(self, uid: TaskUid) -> list[int]:
        """By the mark in their environment."""
        return [process.pid for process in psutil.process_iter() if _marked(process, uid)]

    def crash(self, uid: TaskUid) -> None:
        """Take the pod away by force, finalizer and all."""
        name = naming.task_name(uid)
        self._run("delete", "pod", name, "--force", "--grace-period=0", "--wait=false")
        self._run("patch", "pod", name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')

    def _run(self, *words: str) -> None:
        command = self._kubectl.command(*words)
        subprocess.run(command, check=True, capture_output=True, timeout=60)


def _marked(process: psutil.Process, uid: str) -> bool:
    try:
        return process.environ().get("PAI_TASK_UID") == uid and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


class TestKubernetesEngine(Runs, Given, Reach, Kept):
    """All of the contract but ``Staged``: its directories are this machine's, which a pod does not see."""

    SPLITS_LOGS = False
    SHARES_PORTS = False
    LINGER_S = 20.0  # the kubelet ends what was taken away by force

    @pytest_asyncio.fixture(autouse=True)
    async def engines(self) -> AsyncIterator[list[KubernetesEngine]]:
        """All engines of a test, closed at its end."""
        made: list[KubernetesEngine] = []
        yield made
        for engine in made:
            await engine.aclose()

    @pytest.fixture
    def make_engine(
        self,
        kubernetes: Kubernetes,
        namespace: Kubectl,
        runtime_image: str,
        engines: list[KubernetesEngine],
        tmp_path: Path,
    ) -> EngineMaker:
        pods = PodSettings(runtime_image=runtime_image, grace_s=2, cpu_limits=False)
        options = EngineOptions("contract", pods, tmp_path / "logs")

        def make() -> KubernetesEngine:
            engine = KubernetesEngine(Access(kubernetes.kubeconfig, namespace=namespace.namespace), options)
            engines.append(engine)
            return engine

        return make

    @pytest.fixture
    def placement(self) -> Placement:
        return Placement(node="carol", address="worker-0", machine="carol")

    @pytest.fixture
    def serving_ssh(self) -> None:
        """Nothing: the launcher does it."""

    @pytest.fixture
    def behind(self, namespace: Kubectl) -> Behind:
        return Outside(namespace)

    @pytest.fixture(autouse=True)
    def _image(self, kubernetes: Kubernetes) -> None:
        self.image = kubernetes.python

    def plan(self, placement: Placement, command: str, index: int = 0, **env: str) -> TaskPlan:
        """With an image of the nodes, in which Python has its longer name; and no CPU, so that many fit."""
        plan = super().plan(placement, command, index, **env)
        named = f'python() {{ python3 "$@"; }}; {command}' if "python" in command else command
        return plan.model_copy(update={"image": self.image, "command": named, "cpus": 0})
