"""The local engine passes the contract of engines."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pai_backend.engine.local import layout
from pai_backend.engine.local.engine import LocalEngine
from pai_backend.model.node import Placement
from pai_backend.testing.engine_contract import LOOK_AGAIN_S, PATIENCE_S, Behind, EngineContract, EngineMaker
from tests.support.local_engine import NODE, LocalBehind


class TestLocalEngine(EngineContract):
    @pytest.fixture
    def make_engine(self, root: Path, behind: Behind) -> EngineMaker:
        return lambda: LocalEngine(root, [NODE])

    @pytest.fixture
    def placement(self) -> Placement:
        return Placement(node="carol", address="127.0.0.1", machine=NODE.machine)

    @pytest.fixture
    def serving_ssh(self, root: Path) -> Iterator[None]:
        """The node's agent, as a process of its own."""
        agent = subprocess.Popen([sys.executable, "-m", "pai_backend.engine.local.agent", str(root)])
        deadline = time.monotonic() + PATIENCE_S
        while not layout.has_reader(str(root / layout.AGENT_FIFO)):
            assert time.monotonic() < deadline
            time.sleep(LOOK_AGAIN_S)
        yield
        agent.terminate()
        assert agent.wait(PATIENCE_S) == 0

    @pytest.fixture
    def behind(self, root: Path) -> Iterator[Behind]:
        look = LocalBehind(root)
        yield look
        look.clear()
