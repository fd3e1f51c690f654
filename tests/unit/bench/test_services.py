"""What the costs of the proxies come to, and what the client takes for an answer."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

from bench.figures import load_floors
from bench.services.figures import Cost, figures
from bench.services.site import ASKING, CHP, COOKIE, JSP, NGINX, OURS, request
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
    assert found["cpu_asking_32"] == 25
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
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.services.upstream"), stdout=asyncio.subprocess.PIPE
    )
    assert server.stdout is not None
    try:
        code, said = await loaded("4", "30", port=int(await server.stdout.readline()))
    finally:
        server.kill()
        await server.wait()
    assert code == 0
    assert json.loads(said).keys() == {"wall_s", "p50_ms", "p99_ms"}


@pytest.mark.asyncio
async def test_the_client_takes_nothing_else_for_an_answer() -> None:
    refusal = b"HTTP/1.1 503 Away\r\nContent-Length: 1024\r\n\r\n" + b"x" * 1024
    async with raw_server(answering(refusal)) as port:
        assert (await loaded("1", "2", port=port))[0] == 1
