"""What the costs of the proxies come to, and what the client takes for an answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psutil
import pytest

from bench.figures import load_floors
from bench.services import lasting
from bench.services.figures import Cost, figures
from bench.services.load import Load, NotAnswered, read
from bench.services.site import ASKING, CHP, COOKIE, JSP, NGINX, OURS, Proxy, request, server

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


WRK = """\
Running 3s test @ http://127.0.0.1:8000/
  1 threads and 32 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   563.11us  305.55us  11.23ms   94.10%
    Req/Sec    58.09k     2.05k   61.49k    80.00%
  Latency Distribution
     50%  527.00us
     75%  573.00us
     90%  659.00us
     99%    1.25ms
  173401 requests in 3.01s, 192.32MB read
{more}Requests/sec:  57608.35
Transfer/sec:     63.89MB
"""


def test_the_client_is_read_as_it_speaks() -> None:
    assert read(WRK.format(more="")) == Load(173401, 3.01, 0.00125)


@pytest.mark.parametrize("more", ["  Non-2xx or 3xx responses: 3\n", "  Socket errors: connect 0, read 1, write 0\n"])
def test_answers_that_are_no_success_are_not_counted(more: str) -> None:
    with pytest.raises(NotAnswered, match=more.strip()[:10]):
        read(WRK.format(more=more))


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
