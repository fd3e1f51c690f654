"""The proxies of the benchmark: ours, and those of others that are installed, in front of one server."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import psutil
import yaml

from bench.figures import CannotRun
from bench.processes import ended, running
from pai_backend.model.job import Phase, State
from pai_backend.model.spec import PortSpec
from pai_backend.store.keyring import KeyFile
from pai_backend.store.sql import Store
from pai_backend.testing.builders import make_job, make_placement, make_role, make_spec
from pai_backend.testing.free_ports import free_ports
from tests.support.forwarding_fronts import nginx_configuration

USER, ALIAS, LABEL = "bench", "lab", "web"
SERVICE = f"{ALIAS}--{LABEL}"
START_S = 60.0
OURS, COOKIE = "ours", "ours, with a cookie"
ASKING = "nginx that asks ours"
CHP, JSP, NGINX, DIRECT = "configurable-http-proxy", "jupyter-server-proxy", "nginx", "the server itself"


@dataclass(frozen=True)
class Proxy:
    """A proxy that runs, and the request that passes through it."""

    name: str
    process: psutil.Process
    port: int
    request: bytes

    def cpu_s(self) -> float:
        """CPU time so far, of its children too: nginx works in one."""
        times = [each.cpu_times() for each in (self.process, *self.process.children())]
        return float(sum(each.user + each.system for each in times))


@asynccontextmanager
async def site() -> AsyncIterator[list[Proxy]]:
    """The proxies, ours first, until the end of the block. Raises CannotRun."""
    with tempfile.TemporaryDirectory(prefix="pai-bench-") as scratch:
        home = Path(scratch)
        async with AsyncExitStack() as stack:
            _, task = await stack.enter_async_context(server())
            proxies = await stack.enter_async_context(_ours(home, task))
            proxies.append(await stack.enter_async_context(_nginx_that_asks(home, proxies[0])))
            for peer in (_configurable_http_proxy, _nginx, _jupyter_server_proxy):
                proxies.append(await stack.enter_async_context(peer(home, task)))
            yield proxies


@asynccontextmanager
async def beside_one() -> AsyncIterator[tuple[Proxy, Proxy, Proxy]]:
    """Ours, configurable-http-proxy, and the server itself, until the end of the block. Raises CannotRun."""
    with tempfile.TemporaryDirectory(prefix="pai-bench-") as scratch:
        async with AsyncExitStack() as stack:
            home, (process, task) = Path(scratch), await stack.enter_async_context(server())
            ours, *_ = await stack.enter_async_context(_ours(home, task))
            peer = await stack.enter_async_context(_configurable_http_proxy(home, task))
            yield ours, peer, await _peer(DIRECT, process, task, "/")


@asynccontextmanager
async def server() -> AsyncIterator[tuple[asyncio.subprocess.Process, int]]:
    """The server that the proxies stand in front of, and its port."""
    async with _program(sys.executable, "-m", "bench.services.upstream") as process:
        assert process.stdout is not None
        yield process, int(await process.stdout.readline())


@asynccontextmanager
async def _ours(home: Path, task: int) -> AsyncIterator[list[Proxy]]:
    """The api's process on a real store, whose job "runs" because a server answers at the task's port."""
    data_dir, config = home / "data", home / "backend.yaml"
    data_dir.mkdir(mode=0o700)
    await _write_store(data_dir, task)
    config.write_text(
        yaml.safe_dump({"user": USER, "log_level": "warning", "api": {"proxies": ["127.0.0.1"]}}), encoding="utf-8"
    )
    async with running(config, data_dir, "api") as backend:
        port = urlsplit(backend.told["url"]).port
        assert port is not None
        bearer = request(f"{SERVICE}.localhost:{port}", "/", f"Authorization: Bearer {backend.token}")
        session = await _session(backend.told["url"], backend.token)
        cookie = request(f"{SERVICE}.localhost:{port}", "/", f"Cookie: {session}")
        yield [
            Proxy(OURS, backend.process, port, bearer),
            Proxy(COOKIE, backend.process, port, cookie),
        ]


async def _write_store(data_dir: Path, port: int) -> None:
    store = Store(f"sqlite:///{data_dir / 'pai.sqlite'}", KeyFile(data_dir / "secret.key"))
    await store.open()
    try:
        role = make_role("worker", ports=[PortSpec(label=LABEL)])
        job = make_job(ALIAS, user=USER, alias=ALIAS, spec=make_spec(ALIAS, roles=[role]))
        seen = await store.jobs.submit(job.model_copy(update={"tasks": ()}), b"{}", "job.json", "application/json", [])
        now = datetime.now(UTC)
        lease = await store.leadership.acquire("bench", 3600, now)
        assert lease is not None
        state = {"state": State.RUNNING, "phase": Phase.RUNNING}
        task = job.tasks[0].model_copy(update={**state, "placement": make_placement(ports={LABEL: (port,)})})
        running_job = seen.model_copy(update={**state, "tasks": (task,)})
        await store.jobs.save(running_job, seen=seen, epoch=lease.epoch, events=(), at=now)
    finally:
        await store.aclose()


def request(host: str, path: str, *lines: str) -> bytes:
    """A request as a browser sends it."""
    fields = [
        f"Host: {host}",
        "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
        "Accept: */*",
        "Accept-Language: en-US,en;q=0.5",
        "Accept-Encoding: gzip, deflate",
        "Connection: keep-alive",
        *lines,
    ]
    return "\r\n".join([f"GET {path} HTTP/1.1", *fields, "", ""]).encode()


async def _session(url: str, token: str) -> str:
    """The cookie of a browser that has signed in."""
    async with aiohttp.ClientSession(url, headers={"Authorization": f"Bearer {token}"}) as client:
        async with client.post(f"/api/v2/jobs/{ALIAS}/services/{LABEL}/ticket") as answer:
            answer.raise_for_status()
            way = urlsplit((await answer.json())["url"])
        headers = {"Host": way.netloc, "Authorization": ""}
        async with client.get(f"{way.path}?{way.query}", headers=headers, allow_redirects=False) as answer:
            return answer.headers["Set-Cookie"].partition(";")[0]


@asynccontextmanager
async def _configurable_http_proxy(home: Path, task: int) -> AsyncIterator[Proxy]:
    program = installed("configurable-http-proxy", "`npm install --global configurable-http-proxy`")
    port, api = free_ports(2)
    words = ("--ip", "127.0.0.1", "--port", str(port), "--api-ip", "127.0.0.1", "--api-port", str(api))
    target = ("--default-target", f"http://127.0.0.1:{task}", "--log-level", "error")
    async with _program(program, *words, *target) as process:
        yield await _peer(CHP, process, port, "/")


@asynccontextmanager
async def _nginx(home: Path, task: int) -> AsyncIterator[Proxy]:
    program = installed("nginx", "the package nginx-light")
    (port,) = free_ports(1)
    config = home / "nginx.conf"
    config.write_text(
        f"daemon off; worker_processes 1; pid {home / 'nginx.pid'}; error_log {home / 'nginx.log'};\n"
        "events { worker_connections 1024; }\n"
        f"http {{ access_log off; upstream task {{ server 127.0.0.1:{task}; keepalive 256; }}\n"
        f"  server {{ listen 127.0.0.1:{port} backlog=1024; keepalive_requests 1000000;\n"
        '    location / { proxy_pass http://task; proxy_http_version 1.1; proxy_set_header Connection ""; } } }\n'
    )
    async with _program(program, "-p", str(home), "-c", str(config)) as process:
        yield await _peer(NGINX, process, port, "/")


@asynccontextmanager
async def _nginx_that_asks(home: Path, ours: Proxy) -> AsyncIterator[Proxy]:
    """As deployed."""
    program = installed("nginx", "the packages nginx-light and libnginx-mod-http-lua")
    (port,) = free_ports(1)
    folder = home / "asking"
    folder.mkdir()
    config = folder / "nginx.conf"
    config.write_text(nginx_configuration(folder, ours.port, port))
    async with _program(program, "-p", str(folder), "-c", str(config)) as process:
        url = f"http://127.0.0.1:{port}/"
        async with asyncio.timeout(START_S), aiohttp.ClientSession() as client:
            while not await _listens(client, url):  # noqa: ASYNC110 - it does not say when it listens
                await asyncio.sleep(0.1)
        yield replace(ours, name=ASKING, process=psutil.Process(process.pid), port=port)


@asynccontextmanager
async def _jupyter_server_proxy(home: Path, task: int) -> AsyncIterator[Proxy]:
    """By the Python that has it: its command ``jupyter-standaloneproxy`` is beside that."""
    command = installed("jupyter-standaloneproxy", "`pip install jupyter-server-proxy`, in an environment of its own")
    (port,) = free_ports(1)
    open_to_all = ("--ServerApp.token=", "--ServerApp.password=", "--ServerApp.log_level=ERROR", "--allow-root")
    words = ("-m", "jupyter_server", "--no-browser", f"--ServerApp.port={port}", *open_to_all)
    async with _program(str(Path(command).parent / "python"), *words, f"--ServerApp.root_dir={home}") as process:
        yield await _peer(JSP, process, port, f"/proxy/{task}/")


def installed(program: str, remedy: str) -> str:
    """The path of a program. Raises CannotRun."""
    path = shutil.which(program)
    if path is None:
        raise CannotRun(f"no {program} in PATH; install {remedy}")
    return path


async def _peer(name: str, process: asyncio.subprocess.Process, port: int, path: str) -> Proxy:
    url = f"http://127.0.0.1:{port}{path}"
    async with asyncio.timeout(START_S), aiohttp.ClientSession() as client:
        while not await _answers(client, url):  # noqa: ASYNC110 - none of them says when it listens
            await asyncio.sleep(0.1)
    return Proxy(name, psutil.Process(process.pid), port, request(f"127.0.0.1:{port}", path))


async def _listens(client: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with client.get(url):
            return True
    except aiohttp.ClientConnectionError:
        return False


async def _answers(client: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with client.get(url) as answer:
            return answer.status == 200
    except aiohttp.ClientConnectionError:
        return False  # it does not listen yet


@asynccontextmanager
async def _program(*words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A program until the end of the block, with its output in a pipe."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JUPYTER")}
    process = await asyncio.create_subprocess_exec(
        *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, env=environment
    )
    try:
        yield process
    finally:
        await ended(process)
