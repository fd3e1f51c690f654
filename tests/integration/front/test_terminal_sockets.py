"""Terminals through the Jupyter server, with everything behind it real: OpenSSH, gateway, agent, tasks."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from jupyter_pai.embedded import Embedded
from jupyter_pai.sync import Client
from tests.support.backend_process import until
from tests.support.jupyter import TOKEN, JupyterServer
from tests.support.private_backend import private_backend
from tests.support.ssh_people import runs, submitted

PATIENCE_S = 90
CONFIG = """\
user: alice
engine:
  trust_all_users: true
  nodes:
    - {name: carol, simulated: true, gpus: {type: TITANX, count: 1}}
"""
ROLE = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0}
LASTING: list[dict[str, object]] = [{**ROLE, "command": "exec sleep 1000"}]


@dataclass(frozen=True)
class Site:
    """A private backend, and where Jupyter servers and their users keep things."""

    private: Embedded
    root: Path

    def submit(self, name: str, roles: list[dict[str, object]]) -> None:
        """Submit a job, and return when its tasks can be entered."""
        with Client(self.private.require()) as client:
            uid = submitted(client, name, roles)
            runs(client, uid)
            until(lambda: all(entry["reachable"] for entry in client.ssh(uid)["entries"]), 60)

    def stop(self, name: str) -> None:
        """Stop a job."""
        with Client(self.private.require()) as client:
            client.stop(name)

    def jupyter(self) -> JupyterServer:
        """A Jupyter server that uses the backend."""
        extension = {"data_dir": str(self.private.data_dir), "config_file": str(self.private.config_file)}
        return JupyterServer(self.root, {"PaiExtension": extension}, {"PAI_SSH_DIR": str(self.root / "ssh")})


@contextmanager
def running_site(root: Path) -> Iterator[Site]:
    """A backend with a job ``demo`` that runs."""
    (root / "backend.yaml").write_text(CONFIG)
    (root / "backend.yaml").chmod(0o600)
    with private_backend(root / "data", root / "backend.yaml"):
        site = Site(Embedded(root / "data", root / "backend.yaml"), root)
        site.submit("demo", LASTING)
        yield site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running_site(tmp_path_factory.mktemp("sockets")) as site:
        yield site


@pytest.fixture(scope="module")
def server(site: Site) -> Iterator[JupyterServer]:
    with site.jupyter() as server:
        yield server


class Window:
    """A page that shows a terminal."""

    def __init__(self, socket: WebSocketClientConnection) -> None:
        self._socket = socket
        self.text = ""
        self.said: list[list[Any]] = []

    async def say(self, *message: object) -> None:
        await self._socket.write_message(json.dumps(message))

    async def next(self) -> list[Any] | None:
        async with asyncio.timeout(PATIENCE_S):
            message = await self._socket.read_message()
        if message is None:
            return None
        taken: list[Any] = json.loads(message)
        self.said.append(taken)
        if taken[0] == "stdout":
            self.text += taken[1]
        return taken

    async def until(self, pattern: str) -> str:
        """What the first group of the pattern is, once it is shown."""
        while (found := re.search(pattern, self.text)) is None:
            assert await self.next() is not None, f"closed without {pattern}: {self.text[-500:]!r} {self.said[-3:]}"
        return found[1] if found.re.groups else ""

    async def end(self) -> tuple[list[list[Any]], int | None]:
        """What was said beside output until the close, and its code."""
        while await self.next() is not None:
            pass
        return [message for message in self.said if message[0] not in ("stdout", "setup")], self._socket.close_code


@asynccontextmanager
async def window(
    server: JupyterServer,
    name: str = "1",
    *,
    job: str = "demo",
    start: bool = True,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> AsyncIterator[Window]:
    """Open a terminal as the panel does."""
    address = f"{server.url.replace('http', 'ws', 1)}pai/terminals/{job}/main/0/{name}/websocket"
    asked = {"Authorization": f"token {TOKEN}", **headers}
    socket = await websocket_connect(HTTPRequest(f"{address}?start={json.dumps(start)}", headers=asked))
    opened = Window(socket)
    try:
        assert await opened.next() == ["setup", {}]
        await opened.say("set_size", 30, 100, 400, 800)
        yield opened
    finally:
        socket.close()


async def ask(server: JupyterServer, method: str, path: str, **headers: str) -> Any:
    asked = {"Authorization": f"token {TOKEN}", **headers}
    request = HTTPRequest(f"{server.url}pai/terminals/{path}", method, asked, request_timeout=PATIENCE_S)
    return json.loads((await AsyncHTTPClient().fetch(request)).body)


@pytest.mark.asyncio
async def test_what_is_typed_is_shown_in_the_size_of_the_window(server: JupyterServer) -> None:
    async with window(server, "a") as shown:
        await shown.say("stdin", "echo size=$(stty size). 中''文\r")
        await shown.until(r"size=30 100\. 中文")
        await shown.say("set_size", 20, 60, 0, 0)
        await shown.say("stdin", "echo size=$(stty size).\r")
        await shown.until(r"size=20 60\.")
        for nonsense in ("stdin", 5, [], {"a": 1}, ["stdin"], ["stdin", 5], ["set_size", "a", None], ["?"], "[" * 9999):
            await shown._socket.write_message(nonsense if isinstance(nonsense, str) else json.dumps(nonsense))
        await shown.say("stdin", "echo still''here; exit 3\r")
        said, code = await shown.end()
    assert "stillhere" in shown.text
    assert said == [["pai", "ended", {"code": 3, "signal": None, "reason": ""}], ["disconnect", 1]]
    assert code == 1000


@pytest.mark.asyncio
async def test_terminals_are_listed_and_ended(server: JupyterServer) -> None:
    assert await ask(server, "GET", "demo/main/0") == {"terminals": []}
    async with window(server, "b") as shown:
        await shown.until("work")
        (listed,) = (await ask(server, "GET", "demo/main/0"))["terminals"]
        assert (listed["name"], listed["clients"]) == ("b", 1)
        assert await ask(server, "DELETE", "demo/main/0/b") == {"terminals": []}
        said, _ = await shown.end()
    assert [kind for _, kind, *_ in said[:1]] == ["ended"]
    with pytest.raises(HTTPClientError) as refused:
        await ask(server, "DELETE", "demo/main/0/b")
    assert refused.value.code == 404
    with pytest.raises(HTTPClientError) as unknown:
        await ask(server, "GET", "nothing/main/0")
    assert unknown.value.code == 404


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": ""},
        {"Authorization": "token wrong"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
async def test_no_page_of_another_site_and_no_stranger_opens_a_terminal(
    server: JupyterServer, headers: dict[str, str]
) -> None:
    with pytest.raises(HTTPClientError) as refused:
        async with window(server, "x", headers=headers):
            pass
    assert refused.value.code == (302 if "Authorization" in headers else 403), "302 is the way to the login page"
    assert await ask(server, "GET", "demo/main/0") == {"terminals": []}


@pytest.mark.asyncio
async def test_a_page_of_another_site_ends_no_terminal(server: JupyterServer) -> None:
    request = HTTPRequest(f"{server.url}pai/terminals/demo/main/0/x", "DELETE", {"Origin": "http://evil.example"})
    with pytest.raises(HTTPClientError) as refused:
        await AsyncHTTPClient().fetch(request)
    assert refused.value.code in (403, 404)


@pytest.mark.asyncio
async def test_the_same_shell_is_there_after_jupyter_was_restarted(site: Site) -> None:
    with site.jupyter() as first:
        async with window(first, "c") as shown:
            await shown.say("stdin", "kept=yes; echo pid=$$.\r")
            pid = await shown.until(r"pid=(\d+)\.")
    with site.jupyter() as second:
        async with window(second, "c", start=False) as shown:
            await shown.until(rf"\x1bc(?s:.*)pid={pid}\.")
            await shown.say("stdin", "echo $kept-$$.; exit\r")
            await shown.until(rf"yes-{pid}\.")
            await shown.end()
        async with window(second, "c", start=False) as shown:
            said, code = await shown.end()
    assert [kind for _, kind, *_ in said[:1]] == ["refused"]
    assert (said[0][2]["code"], code) == ("NoTerminalError", 1000)


@pytest.mark.asyncio
async def test_an_open_window_goes_on_after_the_backend_was_restarted(server: JupyterServer, site: Site) -> None:
    async with window(server, "d") as shown:
        await shown.say("stdin", "kept=yes; echo pid=$$.\r")
        pid = await shown.until(r"pid=(\d+)\.")
        await asyncio.to_thread(site.private.stop)
        while ["pai", "lost"] not in [message[:2] for message in shown.said]:
            assert await shown.next() is not None
        shown.text = ""
        await asyncio.to_thread(site.private.ensure)
        await shown.until(rf"\x1bc(?s:.*)pid={pid}\.")
        await shown.say("stdin", "echo $kept-$$.; exit\r")
        await shown.until(rf"yes-{pid}\.")
        await shown.end()


@pytest.mark.asyncio
async def test_the_end_of_the_task_is_said(server: JupyterServer, site: Site) -> None:
    await asyncio.to_thread(site.submit, "brief", LASTING)
    async with window(server, job="brief") as shown:
        await shown.until("work")
        await asyncio.to_thread(site.stop, "brief")
        said, code = await shown.end()
    ended = next(message for message in said if message[1] == "ended")
    assert re.search("main-0 is (STOPP|stopp)", ended[2]["reason"]), ended
    assert (said[-1], code) == (["disconnect", 1], 1000)
