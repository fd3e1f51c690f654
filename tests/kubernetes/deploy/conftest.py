"""helm, built as the cluster's programs are; it renders without a cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest_asyncio

from tests.kubernetes.cluster import programs
from tests.kubernetes.deploy.helm import Helm


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def helm_program() -> Path:
    """The program."""
    return await asyncio.to_thread(programs.build, "helm") / "helm"


@pytest_asyncio.fixture
async def helm(helm_program: Path, tmp_path: Path) -> Helm:
    """helm without a cluster."""
    return Helm(helm_program, tmp_path)
