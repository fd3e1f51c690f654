"""Processes of a backend with one role each: what the controller or the gateway takes is its own."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

SAMPLE_S = 0.2
START_S, END_S = 240.0, 30.0  # generous: the machine may be busy


@dataclass
class Running:
    """A process with one role; what it uses is sampled."""

    process: psutil.Process
    told: dict[str, Any]
    data_dir: Path
    most_mib: float = 0.0

    @property
    def token(self) -> str:
        """What lets us in."""
        return (self.data_dir / "token").read_text().strip()

    def cpu_s(self) -> float:
        """CPU time so far."""
        times = self.process.cpu_times()
        return float(times.user + times.system)

    async def sample(self) -> None:
        """Note the most memory that it has, for ever."""
        while True:
            self.most_mib = max(self.most_mib, self.process.memory_info().rss / 2**20)
            await asyncio.sleep(SAMPLE_S)


@asynccontextmanager
async def running(config: Path, data_dir: Path, role: str) -> AsyncIterator[Running]:
    """A process with this role, until the end of the block."""
    read, write = os.pipe()
    words = ["--config", str(config), "--data-dir", str(data_dir), "--role", role, "--ready-fd", str(write)]
    errors_file = data_dir.parent / f"{data_dir.name}-{role}.stderr"
    with errors_file.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "pai_backend", "serve", *words, pass_fds=[write], stderr=errors
        )
    os.close(write)
    try:
        async with asyncio.timeout(START_S):
            line = await asyncio.to_thread(os.read, read, 4096)
        if not line:
            said = await asyncio.to_thread(errors_file.read_text)
            raise RuntimeError(f"{role} ended before it was ready: {said[-2000:]}")
        found = Running(psutil.Process(process.pid), json.loads(line), data_dir)
        sampling = asyncio.create_task(found.sample())
        try:
            yield found
        finally:
            sampling.cancel()
            await asyncio.gather(sampling, return_exceptions=True)
    finally:
        await ended(process)  # lets go of whoever waits for its line
        os.close(read)


async def ended(process: asyncio.subprocess.Process) -> None:
    """Terminate a process that still runs; kill it when it does not end by itself."""
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(END_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
