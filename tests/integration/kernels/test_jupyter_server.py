"""Kernels in jobs from a real Jupyter server, which is restarted, and whose jobs end; each user has their own."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from jupyter_client.session import Session
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from jupyter_pai import broker
from jupyter_pai.endpoint import Endpoint
from jupyter_pai.sync import Client
from tests.integration.kernels.conftest import BOB
from tests.support.jupyter import TOKEN, JupyterServer
from tests.support.ssh_people import runs, submitted

ROLE = {"taskNumber": 1, "cpuNumber": 1, "memoryMB": 2000, "gpuNumber": 0, "command": "exec sleep 3600"}
LIMIT_S = 60.0
HEADERS = {"Authorization": f"token {TOKEN}"}


_NUMBERS = itertools.count(1)


@pytest.fixture
def train(alice: Client) -> str:
    """A job that runs, by a name of the test's own, which is its alias, too."""
    name = f"train-{next(_NUMBERS)}"
    assert runs(alice, submitted(alice, name, [{"name": "main", **ROLE}]))["alias"] == name
    return name


class Server:
    """A Jupyter server of alice's; the next one in the same root is the same after a restart."""

    def __init__(self, running: JupyterServer) -> None:
        self.running = running

    async def ask(self, method: str, path: str, value: object = None) -> Any:
        body = None if value is None else json.dumps(value)
        request = HTTPRequest(
            self.running.url + path, method, HEADERS, body, request_timeout=LIMIT_S, allow_nonstandard_methods=True
        )
        answer = await AsyncHTTPClient().fetch(request)
        return json.loads(answer.body or b"null")

    async def names(self) -> list[str]:
        await self.ask("GET", "pai/kernels")
        return list((await self.ask("GET", "api/kernelspecs"))["kernelspecs"])

    async def begin(self, kernel: str) -> dict[str, Any]:
        """A session of a notebook."""
        session = {"path": "a.ipynb", "type": "notebook", "name": "", "kernel": {"name": kernel}}
        begun: dict[str, Any] = await self.ask("POST", "api/sessions", session)
        return begun

    async def run(self, kernel: str, code: str) -> str:
        """What code prints."""
        address = f"{self.running.url.replace('http', 'ws', 1)}api/kernels/{kernel}/channels"
        channels = await websocket_connect(HTTPRequest(address, headers=HEADERS))
        try:
            return await asyncio.wait_for(said(channels, code), LIMIT_S)
        finally:
            channels.close()

    async def until_listed(self, name: str) -> None:
        async with asyncio.timeout(LIMIT_S):
            while name not in await self.names():  # noqa: ASYNC110
                await asyncio.sleep(0.1)


async def said(channels: WebSocketClientConnection, code: str) -> str:
    request = Session().msg("execute_request", {"code": code, "silent": False})
    await channels.write_message(json.dumps({**request, "channel": "shell"}, default=str))
    text, idle, replied = "", False, False
    while not (idle and replied):
        message = json.loads(await channels.read_message() or "")
        if message.get("parent_header", {}).get("msg_id") != request["header"]["msg_id"]:
            continue
        text += message["content"].get("text", "") if message["msg_type"] == "stream" else ""
        idle = idle or message["content"].get("execution_state") == "idle"
        replied = replied or message["msg_type"] == "execute_reply"
    return text


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "lab"
    root.mkdir()
    yield root
    for process in psutil.process_iter():
        try:
            if str(root) in process.environ().get("JUPYTER_RUNTIME_DIR", ""):
                process.kill()
        except psutil.Error:
            continue


def records_below(place: Path) -> list[Path]:
    return [path for path in place.rglob("*.json") if path.parent.parent.name == "pai-kernels"]


@asynccontextmanager
async def server(
    place: Path, entry_points: Path, config: dict[str, object] | None = None, ends: bool = True
) -> AsyncIterator[Server]:
    ours = {name: os.environ[name] for name in ("PAI_URL", "PAI_TOKEN", "PAI_SSH_DIR", "IPYTHONDIR")}
    search = os.pathsep.join([str(entry_points), os.environ.get("PYTHONPATH", "")])
    running = JupyterServer(place, config or {}, {**ours, "PYTHONPATH": search})
    await asyncio.to_thread(running.__enter__)
    try:
        yield Server(running)
    finally:
        if running.process.poll() is None:
            await asyncio.to_thread(running.__exit__, None, None, None)


@pytest.mark.asyncio
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGKILL])
async def test_a_kernel_outlives_its_server(
    train: str, place: Path, entry_points: Path, signum: signal.Signals
) -> None:
    async with server(place, entry_points) as first:
        await first.until_listed(f"pai:{train}")
        session = await first.begin(f"pai:{train}")
        kernel = session["kernel"]["id"]
        assert await first.run(kernel, "import os; x = 41; print(os.environ['PAI_JOB_NAME'])") == f"{train}\n"
        (record,) = records_below(place)
        async with asyncio.timeout(LIMIT_S):
            while session["id"] not in record.read_text():  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        assert record.stat().st_mode & 0o077 == 0
        assert record.parent.stat().st_mode & 0o077 == 0
        first.running.process.send_signal(signum)
        await asyncio.to_thread(first.running.process.wait)
    async with server(place, entry_points) as second:
        (listed,) = await second.ask("GET", "api/sessions")
        assert (listed["id"], listed["path"], listed["kernel"]["id"]) == (session["id"], "a.ipynb", kernel)
        assert await second.run(kernel, "print(x + 1)") == "42\n"
        (told,) = (await second.ask("GET", "pai/kernels"))["kernels"]
        assert (told["id"], told["state"]) == (kernel, "connected")
        await second.ask("POST", f"api/kernels/{kernel}/restart")
        assert await second.run(kernel, "print('x' in globals())") == "False\n"
        await second.ask("DELETE", f"api/sessions/{session['id']}")
    async with server(place, entry_points) as third:
        assert await third.ask("GET", "api/kernels") == [], "it was shut down, so it is not taken up again"


@pytest.mark.asyncio
async def test_a_job_that_was_made_for_its_kernel_ends_with_it(
    alice: Client, train: str, place: Path, entry_points: Path
) -> None:
    body = json.dumps({"value": "made-for-kernel"}).encode()
    tagged = alice.api.request("PUT", f"/api/v2/jobs/{train}/tag", body=body, media_type="application/json")
    alice.thread.run(tagged)
    async with server(place, entry_points) as jupyter:
        await jupyter.until_listed(f"pai:{train}")
        session = await jupyter.begin(f"pai:{train}")
        await jupyter.ask("POST", f"api/kernels/{session['kernel']['id']}/restart")
        assert (await asyncio.to_thread(alice.job, train))["state"] == "RUNNING"
        await jupyter.ask("DELETE", f"api/sessions/{session['id']}")
        async with asyncio.timeout(LIMIT_S):
            await asyncio.to_thread(lambda: [*alice.follow_events(train)])  # until it has ended
        assert (await asyncio.to_thread(alice.job, train))["state"] == "STOPPED"


@pytest.mark.asyncio
async def test_a_kernel_whose_job_ends_is_dead_and_the_server_says_why(
    alice: Client, train: str, place: Path, entry_points: Path
) -> None:
    async with server(place, entry_points) as jupyter:
        await jupyter.until_listed(f"pai:{train}")
        kernel = (await jupyter.begin(f"pai:{train}"))["kernel"]["id"]
        await jupyter.run(kernel, "1")
        address = f"{jupyter.running.url.replace('http', 'ws', 1)}api/kernels/{kernel}/channels"
        channels = await websocket_connect(HTTPRequest(address, headers=HEADERS))
        await asyncio.to_thread(alice.stop, train)
        states: list[str] = []
        async with asyncio.timeout(LIMIT_S):
            while "dead" not in states:
                states.append(json.loads(await channels.read_message() or "")["content"].get("execution_state", ""))
        assert "restarting" not in states
        (told,) = (await jupyter.ask("GET", "pai/kernels"))["kernels"]
        assert (told["id"], told["state"]) == (kernel, "ended")
        assert f"Job {train} has ended (STOPPED)" in told["reason"]
        assert await jupyter.ask("GET", "api/kernels") == []
        assert f"pai:{train}" not in await jupyter.names()
        with pytest.raises(HTTPClientError) as refused:
            await jupyter.begin(f"pai:{train}")
        assert b"has ended (STOPPED)" in refused.value.response.body  # type: ignore[union-attr]


@pytest.mark.asyncio
async def test_jobs_of_others_are_listed_only_when_they_are_shared_for_commands(
    alice: Client, train: str, place: Path, entry_points: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Client(Endpoint(alice.api.endpoint.url, BOB)) as bob:
        job = submitted(bob, "jobs-of-bob", [{"name": "main", **ROLE}])
        runs(bob, job)
        async with server(place, entry_points) as jupyter:
            await jupyter.until_listed(f"pai:{train}")
            assert "pai:jobs-of-bob" not in await jupyter.names(), "alice is an administrator, and sees the job"
            bob.thread.run(broker.share(bob.api, job, "alice", only=["port:http"]))
            assert "pai:jobs-of-bob" not in await jupyter.names()
            bob.thread.run(broker.share(bob.api, job, "alice"))
            assert "pai:jobs-of-bob" in await jupyter.names()
        bob.stop(job)


@pytest.mark.asyncio
async def test_a_configured_manager_of_kernel_specs_stays(train: str, place: Path, entry_points: Path) -> None:
    (place / "house_specs.py").write_text(
        "from jupyter_client.kernelspec import KernelSpecManager\n"
        "class HouseSpecs(KernelSpecManager):\n"
        "    def find_kernel_specs(self):\n"
        "        return {name: path for name, path in super().find_kernel_specs().items() if name == 'python3'}\n"
        "    def get_all_specs(self):\n"
        "        specs = super().get_all_specs()\n"
        "        specs['python3']['spec']['display_name'] = 'House Python'\n"
        "        return specs\n"
    )
    config: dict[str, object] = {"ServerApp": {"kernel_spec_manager_class": "house_specs.HouseSpecs"}}
    async with server(place, entry_points, config) as jupyter:
        await jupyter.until_listed(f"pai:{train}")
        listed = (await jupyter.ask("GET", "api/kernelspecs"))["kernelspecs"]
        assert listed["python3"]["spec"]["display_name"] == "House Python"
        kernel = (await jupyter.begin("python3"))["kernel"]["id"]
        assert await jupyter.run(kernel, "import os; print(os.environ.get('PAI_JOB_NAME'))") == "None\n"
