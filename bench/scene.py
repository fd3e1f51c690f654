"""The scene of a benchmark: a private backend in a scratch directory, and documents to submit to it."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from jupyter_pai.embedded import Embedded
from jupyter_pai.endpoint import Endpoint

CONFIG = """\
user: bench
engine:
  nodes:
    - {{name: carol, simulated: true, cpus: {cpus}, memory_mb: 10000000, gpus: {{type: TITANX, count: 1}}}}
"""


@dataclass(frozen=True)
class Scene:
    """A running backend."""

    endpoint: Endpoint
    supervisor: psutil.Process
    home: Path
    """A directory that ends with the scene."""

    def processes(self) -> list[psutil.Process]:
        """The backend's own processes: the supervisor and its children, not the tasks they started."""
        return [
            self.supervisor,
            *(child for child in self.supervisor.children() if "pai_backend" in " ".join(child.cmdline())),
        ]

    def cpu_s(self) -> float:
        """CPU time used so far by the backend's own processes."""
        times = [process.cpu_times() for process in self.processes()]
        return sum(each.user + each.system for each in times)

    def pss_mib(self) -> dict[str, float]:
        """Proportional set size of each process, by the roles it runs."""
        found = {}
        for process in self.processes():
            command = " ".join(process.cmdline()).split()
            name = command[command.index("--role") + 1] if "--role" in command else "supervisor"
            found[name] = process.memory_full_info().pss / 2**20
        return found


@asynccontextmanager
async def backend(cpus: int = 4096, more: str = "") -> AsyncIterator[Scene]:
    """A fresh private backend with one simulated node; stopped at the end. ``more``: lines of its configuration."""
    with tempfile.TemporaryDirectory(prefix="pai-bench-") as scratch:
        home = Path(scratch)
        config = home / "backend.yaml"
        config.touch(mode=0o600)  # it may hold hashes of passwords
        config.write_text(CONFIG.format(cpus=cpus) + more, encoding="utf-8")
        private = Embedded(home / "data", config)
        endpoint = await asyncio.to_thread(private.ensure)
        pid = private.status().pid
        if pid is None:
            raise RuntimeError("the backend runs but says no process number")
        try:
            yield Scene(endpoint, psutil.Process(pid), home)
        finally:
            await asyncio.to_thread(private.stop)


def document(name: str, *, command: str = "true", gpus: int = 0, instances: int = 1) -> bytes:
    """A small OpenPAI v1 document."""
    role = {
        "name": "worker",
        "taskNumber": instances,
        "cpuNumber": 1,
        "memoryMB": 100,
        "gpuNumber": gpus,
        "command": command,
    }
    return json.dumps({"jobName": name, "image": "example/image", "taskRoles": [role]}).encode()
