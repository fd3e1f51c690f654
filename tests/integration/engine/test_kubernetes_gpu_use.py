"""The use of GPUs is asked of containers over a real socket to an API server that is played, by a real bash.

``nvidia-smi`` is a script of the test's: no GPU is asked here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio
import yaml
from aiohttp import WSMsgType, web

from pai_backend.engine.base import EngineError, GpuUse
from pai_backend.engine.kubernetes import gpu_use as module
from pai_backend.engine.kubernetes.access import Access
from pai_backend.engine.kubernetes.channels import EXEC, RESULT, STDOUT
from pai_backend.engine.kubernetes.client import ApiClient, connect
from pai_backend.engine.kubernetes.gpu_use import LATE, OUTPUT_MAX, TOO_MUCH, command, gpu_use
from tests.support.backend_process import until
from tests.support.kubeconfigs import kubeconfig
from tests.support.living import lives

POD = "/api/v1/namespaces/team/pods/task"
SUCCESS: dict[str, object] = {"metadata": {}, "status": "Success"}
OF_LINUX = pytest.mark.skipif(sys.platform == "darwin", reason="the bash of the runtime bundle is one of Linux")


class ApiServer:
    """Runs commands in a container, or so it says."""

    def __init__(self) -> None:
        self.output: list[bytes] = []
        self.result: dict[str, object] | None = SUCCESS  # None: the connection is cut
        self.refusal: int | None = None
        self.silent = False
        self.asked: list[list[str]] = []

    def failure(self, code: int) -> None:
        """The command ends with this code, as API servers say it."""
        causes = [{"reason": "ExitCode", "message": str(code)}]
        self.result = {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}}

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """``pods/exec``."""
        self.asked.append(request.query.getall("command"))
        if self.refusal is not None:
            return web.json_response({"kind": "Status", "message": "no"}, status=self.refusal)
        socket = web.WebSocketResponse(protocols=(EXEC,))
        await socket.prepare(request)
        if self.silent:
            async for message in socket:
                assert message.type is WSMsgType.CLOSE
            return socket
        for each in self.output:
            await socket.send_bytes(bytes((STDOUT,)) + each)
        if self.result is not None:
            await socket.send_bytes(bytes((RESULT,)) + json.dumps(self.result).encode())
        await socket.close()
        return socket


@pytest_asyncio.fixture
async def server() -> ApiServer:
    return ApiServer()


@pytest_asyncio.fixture
async def client(server: ApiServer, tmp_path: Path) -> AsyncIterator[ApiClient]:
    application = web.Application()
    application.add_routes([web.get(f"{POD}/exec", server.serve)])
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig(f"http://{host}:{port}", token="t")))
    made = await connect(Access(path))
    yield made
    await made.aclose()
    await runner.cleanup()


@pytest.mark.asyncio
async def test_one_command_in_the_container_tells_the_use(server: ApiServer, client: ApiClient) -> None:
    server.output = [b"0, 1", b"2\n1, 7\n"]
    assert await gpu_use(client, POD) == GpuUse(12)
    assert server.asked == [list(command())]
    assert server.asked[0][0] == "/pai/runtime/commands/bash", "an image may have no shell"


def missing(server: ApiServer) -> None:
    server.failure(127)


def without_container(server: ApiServer) -> None:
    server.result = {"status": "Failure", "reason": "InternalError", "message": "container not found"}


def cut(server: ApiServer) -> None:
    server.output, server.result = [b"0, 99\n"], None


def late(server: ApiServer) -> None:
    server.silent = True


def endless(server: ApiServer) -> None:
    server.output = [b"0, 99\n" * 10_000, b"0, 99\n" * 10_000]


def refused(status: int) -> Callable[[ApiServer], None]:
    def refuse(server: ApiServer) -> None:
        server.refusal = status

    return refuse


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (missing, "there is no nvidia-smi in its container"),
        (without_container, "no program can be run in its container now"),
        (cut, "its container does not answer"),
        (late, "its container does not answer"),
        (endless, "the program in its container is not nvidia-smi"),
        (refused(403), "the role needs `get` and `create` of pods/exec"),
        (refused(404), "its pod is gone"),
        (refused(500), "the cluster runs no program in its container now"),
    ],
    ids=["no program", "no container", "cut", "late", "endless", "forbidden", "pod gone", "kubelet away"],
)
async def test_what_fails_is_told_in_words(
    server: ApiServer,
    client: ApiClient,
    happens: Callable[[ApiServer], None],
    why: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "LIMIT_S", 0.5 if happens is late else 10.0)
    happens(server)
    with pytest.raises(EngineError) as found:
        await gpu_use(client, POD)
    assert why in str(found.value)
    assert POD not in str(found.value)


class Container:
    """A directory with the programs of a container."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def has(self, script: str) -> None:
        """Give it an ``nvidia-smi``."""
        program = self.place / "nvidia-smi"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    def runs(self, tell_s: float = 30.0) -> subprocess.CompletedProcess[str]:
        """What the command says there."""
        env = {"PATH": f"{self.place}:{os.environ['PATH']}", "LD_LIBRARY_PATH": "/of/the/image"}
        return subprocess.run(command("bash", tell_s), env=env, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def container(tmp_path: Path) -> Container:
    place = tmp_path / "programs"
    place.mkdir()
    return Container(place)


@OF_LINUX
def test_the_program_is_asked_for_each_gpu_and_may_find_its_library(container: Container) -> None:
    container.has('echo "$*"; echo "$LD_LIBRARY_PATH"; exit 3')
    done = container.runs()
    asked, libraries = done.stdout.splitlines()
    assert asked == "--query-gpu=index,utilization.gpu,memory.used --format=csv,noheader,nounits"
    assert libraries == "/of/the/image:/usr/local/nvidia/lib64"
    assert done.returncode == 3


@OF_LINUX
def test_without_the_program_that_is_said(container: Container) -> None:
    env = {"PATH": str(container.place)}
    bash = subprocess.run(["bash", "-c", "command -v bash"], capture_output=True, text=True, check=True).stdout.strip()
    done = subprocess.run(command(bash), env=env, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (127, "")


@OF_LINUX
@pytest.mark.parametrize(
    ("script", "tell_s", "code"),
    [("exec sleep 1000", 0.3, LATE), ("exec yes 0, 99", 30.0, TOO_MUCH)],
    ids=["hangs", "never stops talking"],
)
def test_a_program_that_does_not_end_is_ended(container: Container, script: str, tell_s: float, code: int) -> None:
    container.has(f"echo $$ >{container.place}/pid\n{script}")
    done = container.runs(tell_s)
    assert (done.returncode, done.stdout) == (code, "")
    pid = int((container.place / "pid").read_text())
    until(lambda: not lives(pid), 60)


@OF_LINUX
def test_an_answer_just_short_of_too_much_is_whole(container: Container) -> None:
    container.has(f"head -c {OUTPUT_MAX - 1} /dev/zero | tr '\\0' x")
    done = container.runs()
    assert (done.returncode, len(done.stdout)) == (0, OUTPUT_MAX - 1)
