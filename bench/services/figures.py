"""What a request through the service proxy costs: CPU, answers a second, and the slowest of a hundred.

Answers a second swing tenfold with what else the machine does, CPU a request by half, beside a peer's by a fifth. All
proxies are gone through in turn, round by round, after one round that does not count.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import defaultdict
from dataclasses import dataclass
from itertools import product
from statistics import median

from bench.figures import Figure
from bench.services.site import ASKING, CHP, COOKIE, JSP, NGINX, OURS, Proxy, site

CONNECTIONS = (1, 32, 256)
REQUESTS, ROUNDS = 2000, 3
MORE = {NGINX: 10, ASKING: 10}
"""How many times as many a proxy gets that takes 20 us for one: the system counts CPU time in hundredths of seconds."""
UNITS = {"cpu_us": "us", "per_s": "1/s", "p99_ms": "ms"}


@dataclass(frozen=True)
class Cost:
    """What a round of requests took."""

    cpu_us: float
    """Of the proxy, for one request."""
    per_s: float
    p99_ms: float


Costs = dict[tuple[str, int], Cost]


async def measure() -> list[Figure]:
    """All figures of the service proxy. Raises CannotRun where another proxy is not installed."""
    rounds: dict[tuple[str, int], list[Cost]] = defaultdict(list)
    async with site() as proxies:
        for number in range(ROUNDS + 1):
            for connections, proxy in product(CONNECTIONS, proxies):
                cost = await _round(proxy, connections)
                if number:
                    rounds[proxy.name, connections].append(cost)
    return figures({key: _middle(found) for key, found in rounds.items()})


def figures(costs: Costs) -> list[Figure]:
    """What the costs of all proxies come to."""
    return [
        *(_share(f"cpu_{count}", costs, count, CHP, "cpu_us") for count in CONNECTIONS),
        _share("cpu_cookie_32", costs, 32, CHP, "cpu_us", COOKIE),
        *(_share(f"rate_{count}", costs, count, CHP, "per_s") for count in (32, 256)),
        _share("cpu_asking_32", costs, 32, NGINX, "cpu_us", ASKING),
        *(_share(f"rate_asking_{count}", costs, count, NGINX, "per_s", ASKING) for count in (32, 256)),
        *(_share(f"rate_jupyter_{count}", costs, count, JSP, "per_s") for count in CONNECTIONS),
        *(_share(f"p99_jupyter_{count}", costs, count, JSP, "p99_ms") for count in (32, 256)),
    ]


def _share(name: str, costs: Costs, connections: int, peer: str, what: str, ours: str = OURS) -> Figure:
    value = {key: getattr(cost, what) for key, cost in costs.items()}
    told = ", ".join(f"{each} {value[each, connections]:.0f}" for each in dict.fromkeys((ours, peer, CHP, NGINX, JSP)))
    return Figure(name, 100 * value[ours, connections] / value[peer, connections], f"{UNITS[what]}: {told}")


async def _round(proxy: Proxy, connections: int) -> Cost:
    before, requests = proxy.cpu_s(), REQUESTS * MORE.get(proxy.name, 1)
    client = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.services.load", str(proxy.port), str(connections), str(requests)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await client.communicate(proxy.request)
    if client.returncode:
        raise RuntimeError(f"{proxy.name} did not answer {requests} requests on {connections} connections")
    spent, told = proxy.cpu_s() - before, json.loads(said)
    return Cost(1e6 * spent / requests, requests / told["wall_s"], told["p99_ms"])


def _middle(found: list[Cost]) -> Cost:
    return Cost(*(median(getattr(cost, name) for cost in found) for name in ("cpu_us", "per_s", "p99_ms")))
