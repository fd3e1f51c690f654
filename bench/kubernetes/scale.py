"""Five thousand jobs submitted at once to a thousand simulated nodes of eight GPUs: how fast they are placed, and what
that takes of the controller; with an empty database, and with 100,000 finished jobs in it.

Jobs are submitted while no controller runs, so that all wait when it starts. The peer is a plain client that creates
the same objects, with bodies copied from ours, on the same cluster: a Secret and a pod for each job. It keeps nothing,
decides nothing and looks after nothing. Rates are of pods as watches of the API server see them.

*Placed*: from when the first pod is there until the last runs; *created*: until the last is there, while scheduler and
nodes work on the others, as in life. *Created alone*: while nobody else asks the API server for anything, since the
pods are for a scheduler that there is not. That is the most that can be placed, and bounded by what a controller
thinks.

The control plane has half of the processors, ours and the peer the other half (see ``processors``): what a controller
thinks takes nothing from the API server, as where each has a machine of its own.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import harmonic_mean, median

from bench.figures import Figure
from bench.kubernetes.clusters import NAMESPACE, simulated
from bench.kubernetes.plain import connected
from bench.kubernetes.sides import RUN_S, Pass, Rate, Sides

NODES = 1_000
JOBS = 5_000
FINISHED = 100_000
CREATED, CREATING_ROUNDS = 2_000, 3
RUN_TIMES = 2  # so many times as long as the peer takes does a task run, or RUN_S: ends do not come into placing


async def measure(
    jobs: int = JOBS, nodes: int = NODES, finished: int = FINISHED, created: int = CREATED
) -> list[Figure]:
    """The figures of scale."""
    with tempfile.TemporaryDirectory(prefix="pai-bench-") as scratch:
        async with simulated(nodes) as simulation, connected(simulation.cluster, NAMESPACE) as plain:
            sides = Sides(simulation, plain, Path(scratch))
            bodies = await sides.bodies()
            creating = [
                (await sides.ours_creating(created), await sides.plain_creating(bodies, created))
                for _ in range(CREATING_ROUNDS)
            ]
            await sides.plain_rate(bodies, created)  # does not count: scheduler and nodes have not worked yet
            peer = await sides.plain_rate(bodies, jobs)
            fresh = await sides.ours(jobs, 0, _long_enough(jobs, peer))
            full = await sides.ours(jobs, finished, _long_enough(jobs, peer))
            peer_again = await sides.plain_rate(bodies, jobs)
    return [*_figures(fresh, full, (peer, peer_again), finished), _alone(creating)]


def _long_enough(jobs: int, peer: Rate) -> float:
    return max(RUN_S, RUN_TIMES * jobs / peer.running)


def _figures(fresh: Pass, full: Pass, peers: tuple[Rate, Rate], finished: int) -> list[Figure]:
    ours, told = (fresh.rate, full.rate), f"{fresh.rate}, {full.rate}; plain client {peers[0]}, {peers[1]}"
    placed = harmonic_mean([each.running for each in ours]) / harmonic_mean([each.running for each in peers])
    created = harmonic_mean([each.created for each in ours]) / harmonic_mean([each.created for each in peers])
    cost = 100 * full.cpu_ms / fresh.cpu_ms
    return [
        Figure("placed_share", 100 * placed, told),
        Figure("created_share", 100 * created, "the same pods until they are there"),
        Figure("finished_cost", cost, f"{full.cpu_ms:.1f} ms a job; {fresh.cpu_ms:.1f} ms without {finished} finished"),
        Figure("controller_memory", max(fresh.mib, full.mib), f"{fresh.mib:.0f} with an empty database"),
        Figure("controller_cores", max(fresh.cores, full.cores), f"all ended after {fresh.ended_s:.0f} s"),
    ]


def _alone(rounds: list[tuple[float, float]]) -> Figure:
    ours, plain = (median(side) for side in zip(*rounds, strict=True))
    return Figure("created_alone_share", 100 * ours / plain, f"{ours:.1f} 1/s; plain client {plain:.1f} 1/s")
