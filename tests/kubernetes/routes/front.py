"""What a user has: the names that the administrator told, a client for each, and nothing that goes around the door."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import aiohttp
import httpx
from aiohttp.abc import AbstractResolver, ResolveResult

from tests.kubernetes.cluster.commands import until
from tests.kubernetes.deploy.release import LIMIT_S, Release
from tests.support.documents import scm_document

SERVE = """export HOME=$PWD
mkdir room
cd room
exec python3 -m jupyter_server --no-browser --ip=0.0.0.0 --port=$PAI_CONTAINER_HOST_jupyter_PORT_LIST \\
  --ServerApp.jpserver_extensions=jupyter_server_terminals=True"""


class ByName(httpx.AsyncBaseTransport):
    """Connects to one address, whatever the URL's host name: a DNS whose every name is the door's."""

    def __init__(self, address: str, trust: ssl.SSLContext) -> None:
        self._address = address
        self._inner = httpx.AsyncHTTPTransport(verify=trust)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Called by httpx."""
        extensions = {**request.extensions, "sni_hostname": request.url.host}
        url = request.url.copy_with(host=self._address)
        sent = httpx.Request(request.method, url, headers=request.headers, stream=request.stream, extensions=extensions)
        return await self._inner.handle_async_request(sent)

    async def aclose(self) -> None:
        """Called by httpx."""
        await self._inner.aclose()


class _Names(AbstractResolver):
    """The same for aiohttp."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def resolve(self, host: str, port: int = 0, family: int = socket.AF_INET) -> list[ResolveResult]:
        """Called by aiohttp."""
        numeric = socket.AI_NUMERICHOST
        found = ResolveResult(
            hostname=host, host=self._address, port=port, family=socket.AF_INET, proto=0, flags=numeric
        )
        return [found]

    async def close(self) -> None:
        """Called by aiohttp."""


@dataclass(frozen=True)
class Front:
    """The door at which a release answers."""

    release: Release
    """Its client comes in by the door, too."""
    address: str
    trust: ssl.SSLContext
    url: str
    """Of the API."""
    jupyter: str
    """An image that has a Jupyter server."""

    async def until_shut(self) -> None:
        """Wait until the door knows no way to the API, and has no certificate for its name."""

        async def shut() -> bool:
            try:
                return (await self.release.client.get("/api/v2/info")).status_code == 404
            except httpx.ConnectError as error:
                return "certificate verify failed" in str(error)

        await until(shut, f"nothing to answer as {self.url}", LIMIT_S, 0.2)

    async def until_open(self) -> None:
        """Wait until the API answers at the door."""

        async def there() -> bool:
            try:
                return (await self.release.client.get("/api/v2/info")).status_code == 200
            except httpx.ConnectError:
                return False

        await until(there, f"{self.url} to answer", LIMIT_S, 0.2)

    @contextlib.asynccontextmanager
    async def job(self, what: str, command: str) -> AsyncIterator[str]:
        """The name of a job that runs; stopped in the end, for the machines have room for few."""
        name = f"{what}-{uuid.uuid4().hex[:6]}"
        role = {
            "name": "r",
            "taskNumber": 1,
            "cpuNumber": 1,
            "memoryMB": 500,
            "gpuNumber": 0,
            "command": command,
            "portList": [{"label": "jupyter", "beginAt": 0, "portNumber": 1}],
        }
        document = scm_document(name, taskRoles=[role], gpuType="", image=self.jupyter)
        about = {"name": name, "filename": "job.json"}
        answer = await self.release.client.post("/api/v2/jobs", content=document, params=about)
        assert answer.status_code == 202, answer.text
        try:
            await self.release.until_state(name, "RUNNING")
            yield name
        finally:
            await self.release.client.put(f"/api/v2/jobs/{name}/executionType", json={"value": "STOP"})
            await self.release.until_state(name, "STOPPED", "SUCCEEDED", "FAILED")

    @contextlib.asynccontextmanager
    async def browser(self, job: str, label: str = "jupyter") -> AsyncIterator[Browser]:
        """A browser that has signed in to a service of a job by the link that the API gave."""
        async with httpx.AsyncClient(
            transport=ByName(self.address, self.trust), timeout=60, follow_redirects=True, trust_env=False
        ) as client:
            where: dict[str, str | int] = {"role": "r", "index": 0}
            given = await self.release.client.post(f"/api/v2/jobs/{job}/services/{label}/ticket", params=where)
            assert given.status_code == 201, given.text
            browser = Browser(self, client, given.json()["url"])
            yield browser

    @property
    def credentials(self) -> dict[str, str]:
        """A header that says who asks."""
        return {"Authorization": self.release.client.headers["Authorization"]}

    def log(self, job: str) -> str:
        """Where the log of a job is followed."""
        return f"{self.url}/api/v2/jobs/{job}/logs/stream?role=r&index=0"

    @contextlib.asynccontextmanager
    async def socket(self, url: str, **headers: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """A WebSocket, at an address that begins with https."""
        connector = aiohttp.TCPConnector(resolver=_Names(self.address), ssl=self.trust)
        async with (
            aiohttp.ClientSession(connector=connector, trust_env=False) as session,
            session.ws_connect(url.replace("http", "ws", 1), headers=headers) as opened,
        ):
            yield opened


@dataclass(frozen=True)
class Browser:
    """A user's browser, and the link that it opens."""

    front: Front
    client: httpx.AsyncClient
    link: str

    @property
    def origin(self) -> str:
        """Of the service's pages."""
        parts = urlsplit(self.link)
        return f"{parts.scheme}://{parts.netloc}"

    async def sign_in(self) -> str:
        """Open the link as soon as the service answers; the cookie that is set."""
        signed_in = await self.client.get(self.link)
        (came,) = signed_in.history
        return str(came.headers["set-cookie"])

    async def get(self, path: str) -> httpx.Response:
        """A page of the service."""
        return await self.client.get(f"{self.origin}{path}")

    async def until_it_answers(self) -> None:
        """Wait until the service does."""

        async def there() -> bool:
            return (await self.get("/api/status")).status_code == 200

        await until(there, f"{self.origin} to answer", LIMIT_S, 0.2)

    @contextlib.asynccontextmanager
    async def terminal(self) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """A new terminal of its Jupyter."""
        made = await self.client.post(f"{self.origin}/api/terminals", headers={"Origin": self.origin})
        assert made.status_code == 200, made.text
        cookies = "; ".join(f"{name}={value}" for name, value in self.client.cookies.items())
        url = f"{self.origin}/terminals/websocket/{made.json()['name']}"
        async with self.front.socket(url, Origin=self.origin, Cookie=cookies) as opened:
            yield opened


async def says(terminal: aiohttp.ClientWebSocketResponse, command: str, answer: str) -> None:
    """Type a command and wait until the terminal has written the answer."""
    await terminal.send_str(json.dumps(["stdin", f"{command}\r"]))
    heard = ""
    while answer not in heard:
        kind, *rest = json.loads(await terminal.receive_str(timeout=60))
        heard += rest[0] if kind == "stdout" else ""
