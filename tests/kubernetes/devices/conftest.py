"""A cluster of one machine, whose GPUs and kubelet tests of this package may change; and backends on it."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.kubernetes.cluster.cluster import Cluster, started
from tests.kubernetes.cluster.node import Node
from tests.kubernetes.fixtures import need_machine
from tests.kubernetes.runtime_image import loaded
from tests.support.backend_process import Backend, backend

ROOT = Path(__file__).resolve().parents[3]
CAROL = "carol"


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def machine() -> AsyncIterator[Cluster]:
    """A control plane and the node carol, without GPUs; it ends with the tests of this package."""
    await asyncio.to_thread(need_machine)
    async with started([CAROL]) as cluster:
        yield cluster


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def bundle(machine: Cluster) -> str:
    """The runtime image, on carol."""
    return await loaded(machine)


@dataclass
class PluginProcess:
    """A running device plugin, and the health of its devices."""

    process: subprocess.Popen[bytes]
    sick: Path
    log: Path

    def registered(self) -> int:
        """How often it has registered so far."""
        return self.log.read_text().splitlines().count("registered")

    def fall_ill(self, *devices: int) -> None:
        """Exactly these devices are unhealthy from now on."""
        draft = self.sick.with_suffix(".draft")
        draft.write_text(" ".join(map(str, devices)))
        draft.replace(self.sick)


@contextmanager
def plugin(node: Node, count: int, place: Path) -> Iterator[PluginProcess]:
    """A device plugin with so many GPUs on a node, whose directories are this machine's too."""
    directory = node.home / "kubelet" / "device-plugins"
    sick, log = place / "sick", place / "plugin.log"
    command = [sys.executable, "-m", "tests.kubernetes.devices.plugin", str(directory)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--count", str(count), "--sick", str(sick)], cwd=ROOT, stdout=output, stderr=output
        )
    try:
        yield PluginProcess(process, sick, log)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


BackendMaker = Callable[..., AbstractContextManager[Backend]]


@pytest.fixture
def backend_with(machine: Cluster, bundle: str, tmp_path: Path) -> Iterator[BackendMaker]:
    """Starts a backend on the machine, in a namespace of the test's own, with these flags and settings of pods."""
    name = f"devices-{uuid.uuid4().hex[:8]}"
    kubectl = machine.kubectl.within(name)
    asyncio.run(kubectl("create", "namespace", name))

    def start(*flags: str, **pods: Any) -> AbstractContextManager[Backend]:
        chosen = {"runtime_image": bundle, "grace_s": 1, "cpu_limits": False, **pods}
        keys = {"kubeconfig": str(machine.kubeconfig), "namespace": name, "pods": json.dumps(chosen)}
        words = [word for key, value in keys.items() for word in (f"--kubernetes-{key}", value)]
        return backend(tmp_path / "backend", ["--engine-kind", "kubernetes", *words, *flags])

    yield start
    asyncio.run(kubectl("delete", "namespace", name, "--wait=false"))
