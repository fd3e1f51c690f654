"""What people wait for at each key and each cell: terminals beside ``pai ssh``, kernels beside SSH tunnels."""

from __future__ import annotations

import asyncio
import os
import select
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import psutil
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.connect import tunnel_to_kernel, write_connection_file
from jupyter_client.manager import AsyncKernelManager

from bench.figures import CannotRun, Figure, percentile
from bench.scene import backend, document
from jupyter_pai.client import AsyncClient
from jupyter_pai.kernels.remote import new_place
from jupyter_pai.kernels.route import KernelRoute
from jupyter_pai.kernels.specs import install

JOB = "interactive"
KEYS = 400
CELLS = 150
RUNS = 3
PATIENCE_S = 90.0
PROBE = "1"


@asynccontextmanager
async def _running() -> AsyncIterator[Path]:
    """A job that runs, and this process's own user of it; its home. Raises CannotRun."""
    if shutil.which("ssh") is None:
        raise CannotRun("no OpenSSH here; install the package openssh-client")
    async with backend() as scene:
        home, endpoint = scene.home, scene.endpoint
        own = {"PAI_URL": endpoint.url, "PAI_TOKEN": endpoint.token, "PAI_SSH_DIR": str(home / "ssh")}
        for name in ("JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
            own[name] = str(home / name.lower())
        client = AsyncClient(endpoint)
        try:
            job = await client.submit(document(JOB, command="exec sleep 3600"))
            async for event in client.follow_events(str(job["uid"])):
                if event["type"] == "job.state" and event["payload"]["state"] == "RUNNING":
                    break
            try:
                with mock.patch.dict(os.environ, own):
                    yield home
            finally:
                await client.stop(str(job["uid"]))
                async for event in client.follow_events(str(job["uid"])):
                    if event["type"] == "job.exit":
                        break
        finally:
            client.close()


async def terminal() -> list[Figure]:
    """Echoes in a terminal that outlives its connection, over those of a plain login."""
    async with _running():
        return await asyncio.to_thread(_echoes)


def _echoes() -> list[Figure]:
    with _window("terminal") as ours, _window("ssh") as plain:
        runs = [(_echo_p99(ours), _echo_p99(plain)) for _ in range(RUNS)]
    best, peer = (min(each) for each in zip(*runs, strict=True))
    return [Figure("echo_p99", best - peer, f"pai terminal {best:.2f} ms, pai ssh {peer:.2f} ms")]


@contextmanager
def _window(verb: str) -> Iterator[int]:
    """A terminal window with ``pai VERB JOB`` in which ``cat`` runs: keys are echoed by the task's terminal."""
    here, there = os.openpty()
    command = [sys.executable, "-m", "jupyter_pai.cli", verb, JOB]
    process = subprocess.Popen(command, stdin=there, stdout=there, stderr=there, start_new_session=True)
    os.close(there)
    try:
        _read_until(here, b"/work")  # the prompt: what is typed before is dropped
        os.write(here, b"echo rea''dy; cat\n")
        _read_until(here, b"ready\r\n")
        yield here
    finally:
        process.kill()
        process.wait()
        os.close(here)


def _read_until(window: int, text: bytes) -> None:
    seen = b""
    while text not in seen:
        if not select.select([window], [], [], PATIENCE_S)[0]:
            raise TimeoutError(f"{text!r} did not come after {seen[-300:]!r}")
        seen += os.read(window, 1 << 16)


def _echo_p99(window: int) -> float:
    """Milliseconds from a key to its echo."""
    taken = []
    for _ in range(KEYS):
        started = time.perf_counter()
        os.write(window, b"x")
        _read_until(window, b"x")
        taken.append(1000 * (time.perf_counter() - started))
    os.write(window, b"\n")
    _read_until(window, b"x\r\n")
    return percentile(taken, 0.99)


async def kernels() -> list[Figure]:
    """A cell's way to a kernel in a job and back, beside the way that ``jupyter_client`` makes by itself."""
    async with _running() as home, _ours() as ours, _tunnelled(home) as peer:
        pairs = [(await _cell_ms(ours), await _cell_ms(peer)) for _ in range(CELLS)]
    mine, other = (percentile(each, 0.5) for each in zip(*pairs, strict=True))
    told = f"ours {mine:.2f} ms, jupyter_client's SSH tunnel {other:.2f} ms, median of {CELLS} in turn"
    return [Figure("execute", 100 * mine / other, told)]


async def _cell_ms(client: AsyncKernelClient) -> float:
    """Milliseconds until a cell's reply is here."""
    started = time.perf_counter()
    await client.execute(PROBE, reply=True, timeout=PATIENCE_S)
    return 1000 * (time.perf_counter() - started)


@asynccontextmanager
async def _ours() -> AsyncIterator[AsyncKernelClient]:
    install(JOB)
    manager = AsyncKernelManager(kernel_name=f"pai:{JOB}")
    await manager.start_kernel()
    try:
        async with _ready(manager.client()) as client:
            yield client
    finally:
        await manager.shutdown_kernel(now=True)


@asynccontextmanager
async def _tunnelled(home: Path) -> AsyncIterator[AsyncKernelClient]:
    """A kernel of the same task, reached by five forwarded ports."""
    way = await asyncio.to_thread(KernelRoute(home).command, new_place(JOB))
    ssh, words, alias = shutil.which("ssh"), way.command[1:-1], way.command[-1]
    assert ssh is not None
    (home / "bin").mkdir()
    options = shlex.join(word for word in words if word != "-T")
    # Its tunnels go to the background from terminals that are closed at once, and lose the race with the hang-up.
    (home / "bin/ssh").write_text(f"#!/bin/sh\ntrap '' HUP\nexec {ssh} {options} \"$@\"\n")
    (home / "bin/ssh").chmod(0o755)
    file, info = write_connection_file(str(home / "peer.json"))
    command = [*way.command, f"exec {sys.executable} -m ipykernel_launcher -f {file}"]
    kernel = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    before = set(psutil.pids())
    try:
        await _listens(int(info["hb_port"]))
        with mock.patch.dict(os.environ, {"PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"}):
            ports = await asyncio.to_thread(tunnel_to_kernel, info, alias)
        names = ("shell_port", "iopub_port", "stdin_port", "hb_port", "control_port")
        client = AsyncKernelClient()
        here: Any = {**info}
        here.update(zip(names, ports, strict=True))
        client.load_connection_info(here)
        async with _ready(client):
            yield client
    finally:
        kernel.kill()
        await kernel.wait()
        _end_tunnels(before, home)


async def _listens(port: int) -> None:
    """Wait for a port of this machine, which is that of the task."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionRefusedError:
                await asyncio.sleep(0.05)  # ipykernel says nowhere that it listens
            else:
                writer.close()
                return


def _end_tunnels(before: set[int], home: Path) -> None:
    """``jupyter_client`` leaves its tunnels to end by themselves, a minute after their last use."""
    for process in psutil.process_iter(["pid", "cmdline"]):
        if process.pid not in before and str(home) in " ".join(process.info["cmdline"] or ()):
            process.kill()


@asynccontextmanager
async def _ready(client: AsyncKernelClient) -> AsyncIterator[AsyncKernelClient]:
    client.start_channels()
    try:
        await client.wait_for_ready(timeout=PATIENCE_S)
        yield client
    finally:
        client.stop_channels()
