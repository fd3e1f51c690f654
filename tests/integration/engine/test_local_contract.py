"""The local engine passes the contract of engines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pai_backend.engine.local.engine import LocalEngine
from pai_backend.model.node import Placement
from pai_backend.testing.engine_contract import Behind, EngineContract, EngineMaker
from tests.support.local_engine import NODE, LocalBehind


class TestLocalEngine(EngineContract):
    @pytest.fixture
    def make_engine(self, root: Path, behind: Behind) -> EngineMaker:
        return lambda: LocalEngine(root, [NODE])

    @pytest.fixture
    def placement(self) -> Placement:
        return Placement(node="carol", address="127.0.0.1", machine=NODE.machine)

    @pytest.fixture
    def behind(self, root: Path) -> Iterator[Behind]:
        look = LocalBehind(root)
        yield look
        look.clear()
