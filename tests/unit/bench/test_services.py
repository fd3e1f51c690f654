"""What the costs of the proxies come to, and what the client takes for an answer."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psutil
import pytest

from bench.figures import load_floors
from bench.services import lasting
from bench.services.figures import Cost, figures
from bench.services.site import ASKING, CHP, COOKIE, JSP, NGINX, OURS, Proxy, request, server
from tests.support.proxy_upstreams import answering, raw_server

PROXIES = {OURS: 200.0, COOKIE: 100.0, ASKING: 800.0, CHP: 400.0, NGINX: 9000.0, JSP: 50.0}


def test_rates_and_times_are_in_percent_of_the_peers() -> None:
    costs = {
        (name, count): Cost(100_000 / rate, rate, 1000 / rate)
        for name, rate in PROXIES.items()
        for count in (1, 32, 256)
    }
    found = {figure.name: figure.value for figure in figures(costs)}
    assert found.keys() == load_floors()["services"].keys()
    assert (found["cpu_1"], found["cpu_cookie_32"], found["cpu_256"]) == (200, 400, 200)
    assert (found["cpu_asking_32"], found["rate_asking_256"]) == (1125, 100 * 800 / 9000)
    assert (found["rate_32"], found["rate_jupyter_256"], found["p99_jupyter_32"]) == (50, 400, 25)


async def loaded(*words: str, port: int) -> tuple[int, bytes]:
    """Exit code and output of the client, with these words behind the port."""
    client = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.services.load", str(port), *words),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said, _ = await client.communicate(request("localhost", "/"))
    assert client.returncode is not None
    return client.returncode, said


@pytest.mark.asyncio
async def test_the_client_counts_what_the_server_answered() -> None:
    async with server() as (_, port):
        code, said = await loaded("4", "30", port=port)
    assert code == 0
    assert json.loads(said).keys() == {"wall_s", "p50_ms", "p99_ms"}


@pytest.mark.asyncio
async def test_what_lasts_is_measured_of_any_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"BULK": 1 << 20, "IDLE": 20, "MESSAGES": 2, "SLOW_REQUESTS": 2}.items():
        monkeypatch.setattr(lasting, name, value)

    @asynccontextmanager
    async def itself() -> AsyncIterator[tuple[Proxy, Proxy, Proxy]]:
        async with server() as (process, port):
            proxy = Proxy("itself", psutil.Process(process.pid), port, request("localhost", "/"))
            yield proxy, proxy, proxy

    monkeypatch.setattr(lasting, "beside_one", itself)
    found = {figure.name: figure.value for figure in await lasting.measure()}
    assert found.keys() == load_floors()["services-lasting"].keys()
    assert min(found["down"], found["up"], found["first_byte"]) > 0


@pytest.mark.asyncio
async def test_the_client_takes_nothing_else_for_an_answer() -> None:
    refusal = b"HTTP/1.1 503 Away\r\nContent-Length: 1024\r\n\r\n" + b"x" * 1024
    async with raw_server(answering(refusal)) as port:
        assert (await loaded("1", "2", port=port))[0] == 1
