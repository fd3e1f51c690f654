"""What a request through the service proxy costs: CPU, answers a second, and the slowest of a hundred.

Answers a second swing tenfold with what else the machine does, CPU a request by half, beside a peer's by a fifth. All
proxies are gone through in turn, round by round, after one round that does not count.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import product
from statistics import median

from bench.figures import Figure
from bench.services.load import load
from bench.services.site import ASKING, CHP, COOKIE, JSP, NGINX, OURS, Proxy, installed, site

CONNECTIONS = (1, 32, 256)
ROUNDS, ROUND_S = 3, 3
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
    client = installed("wrk", "the package wrk")
    rounds: dict[tuple[str, int], list[Cost]] = defaultdict(list)
    async with site() as proxies:
        for number in range(ROUNDS + 1):
            for connections, proxy in product(CONNECTIONS, proxies):
                cost = await _round(client, proxy, connections)
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


async def _round(client: str, proxy: Proxy, connections: int) -> Cost:
    before = proxy.cpu_s()
    told = await load(client, proxy.port, connections, proxy.request, ROUND_S)
    spent = proxy.cpu_s() - before
    return Cost(1e6 * spent / told.requests, told.requests / told.wall_s, 1000 * told.p99_s)


def _middle(found: list[Cost]) -> Cost:
    return Cost(*(median(getattr(cost, name) for cost in found) for name in ("cpu_us", "per_s", "p99_ms")))
