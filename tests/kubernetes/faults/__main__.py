"""``python -m tests.kubernetes.faults --kills 100 --jobs 300``: random faults under many jobs, then the audit."""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.kubernetes.cluster.cluster import started
from tests.kubernetes.faults.audit import settled
from tests.kubernetes.faults.jobs import patient
from tests.kubernetes.faults.product import Product, product_on, site_on
from tests.kubernetes.fixtures import NODES
from tests.kubernetes.runtime_image import loaded
from tests.support.fault_proxy import Answer, EndStreams, Fault, Hang, LoseAnswer

AT_ONCE = 12  # jobs that have not ended, at most: the nodes are small
LONGEST_S = 60.0  # of an API server that misbehaves

FAULTS: dict[str, Fault] = {
    "410": Answer(410),
    "429": Answer(429, {"Retry-After": "2"}),
    "500": Answer(500),
    "time-out": Hang(),
    "streams end": EndStreams(1.0),
    "answers lost": LoseAnswer(),
}


class Campaign:
    """Strikes a product until it has had enough."""

    def __init__(self, product: Product, chance: random.Random) -> None:
        self._product, self._chance = product, chance
        self._plane = product.site.cluster.plane
        self.struck: Counter[str] = Counter()

    async def run(self, kills: int, jobs: int) -> None:
        """Hand jobs in, strike between them at random instants, and hold every promise at the end."""
        product, chance = self._product, self._chance
        through = await product.submit(patient("through-all"))
        for kill in range(kills):
            await product.hand_in(jobs * (kill + 1) // kills - jobs * kill // kills)
            if len(product.wanted) > AT_ONCE:
                await product.ended(product.wanted[-AT_ONCE])
            await asyncio.sleep(chance.uniform(0.0, 2.0))  # the instant is what is drawn
            name, strike = chance.choice(self._strikes())
            self.struck[name] += 1
            await strike()
        await product.running(through)
        await product.release(through)
        await settled(product)

    def _strikes(self) -> list[tuple[str, Callable[[], Awaitable[None]]]]:
        return [
            ("controller", self._controller),
            ("API server", self._api_server),
            ("etcd", self._etcd),
            ("kubelet", self._kubelet),
            ("watches cut", self._cut),
            ("API server misbehaves", self._odd),
        ]

    async def _controller(self) -> None:
        self._product.kill_controller()

    async def _api_server(self) -> None:
        await self._plane.api.kill()
        await self._plane.start_api()

    async def _etcd(self) -> None:
        await self._plane.etcd.kill()
        self._plane.start_etcd()

    async def _kubelet(self) -> None:
        node = self._product.site.cluster.nodes[self._chance.choice(NODES)]
        await node.kill("kubelet")
        await node.start_kubelet()

    async def _cut(self) -> None:
        self._product.site.proxy.cut()

    async def _odd(self) -> None:
        name = self._chance.choice(sorted(FAULTS))
        proxy = self._product.site.proxy
        # A watch whose answers are lost is one that is never answered: writes alone are.
        proxy.misbehave(FAULTS[name], lambda request: name != "answers lost" or request.method != "GET")
        proxy.cut()
        await asyncio.sleep(self._chance.uniform(1.0, LONGEST_S))  # the fault itself
        proxy.behave()


async def run(kills: int, jobs: int, seed: int) -> dict[str, object]:
    """A campaign on a cluster of its own; its figures. Raises AssertionError with every promise that was broken."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pai-faults-") as scratch:
        place = Path(scratch)
        async with started(NODES) as cluster:
            image = await loaded(cluster)
            async with site_on(cluster, "faults", place, image) as site, product_on(site, place / "backend") as product:
                campaign = Campaign(product, random.Random(seed))
                await campaign.run(kills, jobs)
    return {
        "seed": seed,
        "jobs": len(product.wanted),
        "strikes": dict(sorted(campaign.struck.items())),
        "seconds": round(time.monotonic() - began, 1),
    }


def main() -> int:
    """Run it; exit code 0 when every promise held, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m tests.kubernetes.faults", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="how many times something is struck")
    parser.add_argument("--jobs", type=int, default=300, help="how many short jobs are handed in meanwhile")
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().randrange(10**6), help="repeat a run's choices"
    )
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    try:
        figures = asyncio.run(run(options.kills, options.jobs, options.seed))
    except AssertionError as broken:
        print(f"BROKEN: {broken}", file=sys.stderr)
        return 1
    print(json.dumps(figures, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
