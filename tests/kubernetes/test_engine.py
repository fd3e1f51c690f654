"""The Kubernetes engine passes the contract of engines, on real nodes."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import ClassVar

import psutil
import pytest
import pytest_asyncio

from pai_backend.engine.base import TaskPlan
from pai_backend.engine.bundle.host_names import host_name
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.access import Access
from pai_backend.engine.kubernetes.engine import EngineOptions, KubernetesEngine
from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Placement
from pai_backend.model.pod_settings import PodSettings
from pai_backend.testing.engine_contract import (
    Behind,
    Direct,
    EngineMaker,
    EngineWorld,
    Given,
    Inside,
    Kept,
    Reach,
    Runs,
)
from tests.kubernetes.cluster.kubectl import Kubectl
from tests.kubernetes.fixtures import Kubernetes
from tests.support.living import marked

NUMBERS = itertools.count()


class Outside:
    """Processes of tasks as this machine sees them, on which all nodes are; and what an administrator may break."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl

    def processes(self, uid: TaskUid) -> list[int]:
        """By the mark in their environment."""
        return [process.pid for process in psutil.process_iter() if marked(process, uid)]

    def crash(self, uid: TaskUid) -> None:
        """Take the pod away by force, finalizer and all."""
        name = naming.task_name(uid)
        self._run("delete", "pod", name, "--force", "--grace-period=0", "--wait=false")
        self._run("patch", "pod", name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')

    def _run(self, *words: str) -> None:
        command = self._kubectl.command(*words)
        subprocess.run(command, check=True, capture_output=True, timeout=60)


class OnNodes(EngineWorld):
    """Engines whose tasks are pods on the worker's nodes, with the settings ``PODS``."""

    PODS: ClassVar[Mapping[str, object]] = {}
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
        chosen = {"runtime_image": runtime_image, "grace_s": 2, "cpu_limits": False, **self.PODS}
        pods = PodSettings.model_validate(chosen)
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


class TestKubernetesEngine(OnNodes, Runs, Given, Reach, Kept, Inside):
    """All of the contract that does not need what a pod has not: directories and ports of its node."""

    def peer_address(self, placement: Placement, index: int) -> str:
        """The name that pods of a job have for each other."""
        return host_name("worker", index)


class TestPortsOfNodes(OnNodes, Direct):
    """Where tasks may have ports of their nodes, clients reach them there."""

    PODS: ClassVar[Mapping[str, object]] = {"network": "host-port"}

    @pytest.fixture
    def placement(self, kubernetes: Kubernetes) -> Placement:
        """With the address at which this machine reaches the node."""
        look = kubernetes.kubectl.command("get", "node", "carol", "-o", "json")
        node = json.loads(subprocess.run(look, check=True, capture_output=True, timeout=60).stdout)
        addresses = {each["type"]: each["address"] for each in node["status"]["addresses"]}
        return Placement(node="carol", address=addresses["InternalIP"], machine="carol")
