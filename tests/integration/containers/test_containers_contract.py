"""The engine of containers passes the contract of engines, with a real Podman."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pai_backend.engine.base import TaskPlan
from pai_backend.engine.bundle.host_names import host_name
from pai_backend.engine.containers.engine import ContainerEngine
from pai_backend.model.container_settings import ContainerMount, ContainerSettings
from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Placement
from pai_backend.testing.engine_contract import Behind, EngineMaker
from pai_backend.testing.engine_contract.entered import Inside
from pai_backend.testing.engine_contract.given import Given, Staged
from pai_backend.testing.engine_contract.kept import Kept
from pai_backend.testing.engine_contract.reach import Reach
from pai_backend.testing.engine_contract.runs import Runs
from tests.support.local_engine import NODE, LocalBehind
from tests.support.podman_site import PodmanSite

KEEPERS = ("conmon", "podman", "launch", "runc")


class ContainerBehind(LocalBehind):
    """Processes in containers, but for what keeps them."""

    def processes(self, uid: TaskUid) -> list[int]:
        """As the kernel shows them."""
        return [pid for pid in super().processes(uid) if _name(pid) not in ("", *KEEPERS)]


def _name(pid: int) -> str:
    """What a process is called; nothing when it has just ended."""
    try:
        return psutil.Process(pid).name()
    except psutil.NoSuchProcess:
        return ""


class TestContainerEngine(Runs, Given, Staged, Reach, Kept, Inside):
    """All of it but for ports of the machine, which no task has."""

    SHARES_PORTS = False

    @pytest.fixture(autouse=True)
    def _of(self, site: PodmanSite, monkeypatch: pytest.MonkeyPatch) -> None:
        self.image = site.image
        for name, value in site.environment.items():
            monkeypatch.setenv(name, value)

    @pytest.fixture
    def behind(self, tmp_path: Path) -> Iterator[ContainerBehind]:
        made = ContainerBehind(tmp_path / "engine")
        yield made
        made.clear()

    @pytest.fixture
    def make_engine(self, site: PodmanSite, tmp_path: Path, behind: Behind) -> EngineMaker:
        mounts = (ContainerMount(source=str(tmp_path)),)
        settings = ContainerSettings(runtime_image=site.runtime_image, mounts=mounts)
        return lambda: ContainerEngine(tmp_path / "engine", [NODE], settings)

    @pytest.fixture
    def placement(self) -> Placement:
        return Placement(node="carol", address="worker-0", machine=NODE.machine)

    @pytest.fixture
    def serving_ssh(self) -> None:
        """Nothing: the launcher does it."""

    def peer_address(self, placement: Placement, index: int) -> str:
        """The name that the tasks of a job have for each other."""
        return host_name("worker", index)

    def plan(self, placement: Placement, command: str, index: int = 0, **env: str) -> TaskPlan:
        """With an image of tests, in which Python has its longer name."""
        plan = super().plan(placement, command, index, **env)
        named = f'python() {{ python3 "$@"; }}; {command}' if "python" in command else command
        return plan.model_copy(update={"image": self.image, "command": named})
