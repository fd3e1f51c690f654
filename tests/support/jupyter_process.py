"""A real Jupyter server as a task would run it: ``bash -c COMMAND`` with a small environment and an empty home."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.living_trees import paths_below

START_S = 60


@asynccontextmanager
async def jupyter_task(command: str, home: Path, env: Mapping[str, str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run the command in its own process group; what it started is gone afterwards."""
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        command,
        cwd=home,
        env={"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(home)} | dict(env),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            assert process.returncode is not None
        await process.wait()


async def server_info(process: asyncio.subprocess.Process, home: Path) -> dict[str, object]:
    """What the server writes about itself once it listens."""
    async with asyncio.timeout(START_S):
        while True:
            assert process.returncode is None, "Jupyter ended before it listened"
            for text in await asyncio.to_thread(_info_files, home):
                if text.rstrip().endswith("}"):  # written completely
                    return dict(json.loads(text))
            await asyncio.sleep(0.05)


def _info_files(home: Path) -> list[str]:
    return [file.read_text() for file in paths_below(home) if file.match("jpserver-*.json")]
