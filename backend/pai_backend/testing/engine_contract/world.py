"""What the contract asks of its user, and what its tests are made of."""

from __future__ import annotations

import asyncio
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import pytest

from pai_backend.engine.base import Engine, TaskPlan
from pai_backend.model.ids import JobUid, TaskUid, task_uid
from pai_backend.model.node import Placement
from pai_backend.testing.free_ports import free_ports

LINGER_LOOK_S = 0.1  # no event tells when a process of another machine ends


class Behind(Protocol):
    """Another road to the truth than the engine's own."""

    def processes(self, uid: TaskUid) -> Sequence[int]:
        """Numbers of the processes of the task that are alive now, its keeper not among them."""
        ...

    def crash(self, uid: TaskUid) -> None:
        """Kill what the engine keeps the task with, so that the exit status can never be known."""
        ...


EngineMaker = Callable[[], Engine]


class EngineWorld(ABC):
    """The fixtures of the contract. Those that are abstract are asked for by overriding them."""

    JOB = JobUid(f"j{secrets.token_hex(8)}")
    """Of this process alone: others may hold engines of the same machine to the contract meanwhile."""
    SPLITS_LOGS = True
    """Whether the engine can tell standard error from standard output; else ``stdout`` has both, ``stderr`` nothing."""

    @pytest.fixture
    @abstractmethod
    def make_engine(self) -> EngineMaker:
        """Makes an engine; every call gives a new one over the same durable state, as after a restart."""

    @pytest.fixture
    @abstractmethod
    def placement(self) -> Placement:
        """A placement without GPUs on a node that the engine has."""

    @pytest.fixture
    @abstractmethod
    def behind(self) -> Behind:
        """The other road."""

    @pytest.fixture
    @abstractmethod
    def serving_ssh(self) -> Iterator[None] | None:
        """Has what must run beside the engine so that tasks are reachable by SSH run for the length of a test."""

    SHARES_PORTS = True
    """Whether tasks of a machine share its ports; else each has all to itself, and none is ever busy."""
    LINGER_S = 0.0
    """Seconds that processes of a task may go on when the engine was robbed of it and says that it is lost."""

    async def gone(self, behind: Behind, uid: TaskUid) -> None:
        """Return once nothing of the task is alive. Raises AssertionError when it lingers."""
        deadline = time.monotonic() + self.LINGER_S
        while alive := behind.processes(uid):
            assert time.monotonic() < deadline, alive
            await asyncio.sleep(LINGER_LOOK_S)

    @pytest.fixture
    def free_port(self) -> int:
        """A port of this machine that nothing listens on."""
        return free_ports(1)[0]

    def server_command(self, port: int) -> str:
        """Shell text that says ``up`` and answers a connection to 127.0.0.1:port with what it was sent, in capitals."""
        lines = [
            "import socket",
            f'server = socket.create_server(("127.0.0.1", {port}))',
            'print("up", flush=True)',
            "peer = server.accept()[0]",
            "peer.sendall(peer.recv(99).upper())",
            "peer.close()",
        ]
        return f"python -c '{'; '.join(lines)}'"

    def plan(self, placement: Placement, command: str, index: int = 0, **env: str) -> TaskPlan:
        """A plan for the task of that index."""
        return TaskPlan(
            uid=task_uid(self.JOB, 0, index, 0),
            job_name="contract",
            user="alice",
            role="worker",
            index=index,
            image="example/image:1",
            command=command,
            env=env,
            placement=placement,
        )
