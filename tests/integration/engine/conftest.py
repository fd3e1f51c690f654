"""A local engine on a directory of the test, and a look at its processes that does not ask the engine.

What is real here: processes, signals, FIFOs, files, sockets, OpenSSH. Nothing is replaced.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pai_backend.engine.base import SshPlan, TaskPlan
from pai_backend.engine.local.engine import LocalEngine
from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Placement
from tests.support.local_engine import NODE, LocalBehind

pytest.register_assert_rewrite("pai_backend.testing.engine_contract")

MakePlan = Callable[..., TaskPlan]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The engine's directory."""
    return tmp_path / "engine"


@pytest.fixture
def behind(root: Path) -> Iterator[LocalBehind]:
    """A look at the processes; ends what the test left running."""
    look = LocalBehind(root)
    yield look
    look.clear()


@pytest.fixture
def engine(root: Path, behind: LocalBehind) -> LocalEngine:
    """An engine with one simulated node ``carol`` of two GPUs."""
    return LocalEngine(root, [NODE])


@pytest.fixture
def placement() -> Placement:
    """On carol, without a GPU."""
    return Placement(node="carol", address="127.0.0.1", machine=NODE.machine)


@pytest.fixture
def make_plan(placement: Placement) -> MakePlan:
    """Builds plans: ``make_plan(command, number, ssh=…, placement=…, **env)``."""

    def make(
        command: str, number: int = 0, *, ssh: SshPlan | None = None, where: Placement | None = None, **env: str
    ) -> TaskPlan:
        return TaskPlan(
            uid=TaskUid(f"j{os.getpid():x}{number:04x}-0-0-0"),
            job_name="job",
            user="alice",
            role="worker",
            index=number,
            image="example/image:1",
            command=command,
            env=env,
            placement=where or placement,
            ssh=ssh,
        )

    return make
