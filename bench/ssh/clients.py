"""OpenSSH's own clients at work: what a login, a transfer and an echo take."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.processes import ended

PIECE = bytes(1 << 20)
LIMIT_S = 120.0


def login_ms(command: list[str]) -> float:
    """Milliseconds of a whole client whose command is ``true``."""
    started = time.perf_counter()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S)
    return 1000 * (time.perf_counter() - started)


def down_bytes_per_s(ssh: list[str], size: int) -> float:
    """Rate of ``size`` bytes from the task, from the moment when its command is asked to send."""
    command = [*ssh, f"echo; read go; exec head -c {size} /dev/zero"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        try:
            assert client.stdout.read(1) == b"\n"
            started, received = time.perf_counter(), 0
            client.stdin.write(b"\n")
            with open(os.devnull, "wb") as nowhere:
                while some := os.splice(client.stdout.fileno(), nowhere.fileno(), len(PIECE)):
                    received += some
            assert received == size, received
            return size / (time.perf_counter() - started)
        finally:
            client.kill()


def up_bytes_per_s(ssh: list[str], size: int) -> float:
    """Rate of ``size`` bytes to the task, until it has told how many have come."""
    with subprocess.Popen(
        [*ssh, "echo; exec wc -c"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        try:
            assert client.stdout.read(1) == b"\n"
            started = time.perf_counter()
            for _ in range(size // len(PIECE)):
                client.stdin.write(PIECE)
            client.stdin.close()
            assert int(client.stdout.read(20)) == size
            return size / (time.perf_counter() - started)
        finally:
            client.kill()


def files_bytes_per_s(sftp: list[str], batch: Path, line: str, size: int) -> float:
    """Rate of a transfer of one file by ``line``, login included."""
    batch.write_text(f"{line}\n")
    started = time.perf_counter()
    subprocess.run(sftp, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=LIMIT_S)
    return size / (time.perf_counter() - started)


@asynccontextmanager
async def moving(ssh: list[str]) -> AsyncIterator[None]:
    """Bulk data comes from the task as fast as it goes, until the end of the block."""
    process = await asyncio.create_subprocess_exec(
        *(*ssh, "cat /dev/zero"), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        yield
    finally:
        still = process.returncode is None
        await ended(process)
        assert still, "the bulk transfer ended early"


async def echoes_ms(ssh: list[str], count: int, pause_s: float) -> list[float]:
    """Milliseconds from a typed byte to its echo, so often, with a pause before each."""
    process = await asyncio.create_subprocess_exec(
        *(*ssh, "exec cat"), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    taken = []
    try:
        async with asyncio.timeout(LIMIT_S):
            for _ in range(count + 1):
                await asyncio.sleep(pause_s)  # a person types with pauses; nothing is awaited by it
                started = time.perf_counter()
                process.stdin.write(b"x")
                assert await process.stdout.readexactly(1) == b"x"
                taken.append(1000 * (time.perf_counter() - started))
    finally:
        await ended(process)
    return taken[1:]  # the first has the login in it
