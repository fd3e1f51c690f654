"""Five thousand jobs submitted at once to a thousand simulated nodes of eight GPUs: how fast they are placed, and what
that takes of the controller; with an empty database, and with 100,000 finished jobs in it.

Jobs are submitted while no controller runs, so that all wait when it starts. The peer is a plain client that creates
the same objects, with bodies copied from ours, on the same cluster: a Secret and a pod for each job. It keeps nothing,
decides nothing and looks after nothing. Rates are of pods as watches of the API server see them.

*Created*: from the first pod to the last, in turn, while nobody else asks the API server for anything: the pods are for
a scheduler that there is not. *Placed*: from when the first pod is there until the last runs. Who only creates leaves
most of what scheduler and kubelets have to do for later, and who creates while they work has less of the API server: so
neither tells of the other, and the peer's rate of creating while others work is told beside only.

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
RUN_TIMES = 3  # so many times as long as the peer takes does a task run, or RUN_S: ends do not come into placing


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
    return [_created_share(creating), *_figures(fresh, full, (peer, peer_again), finished)]


def _long_enough(jobs: int, peer: Rate) -> float:
    return max(RUN_S, RUN_TIMES * jobs / peer.running)


def _created_share(rounds: list[tuple[float, float]]) -> Figure:
    ours, plain = (median(side) for side in zip(*rounds, strict=True))
    return Figure("created_share", 100 * ours / plain, f"{ours:.1f} 1/s; plain client {plain:.1f} 1/s")


def _figures(fresh: Pass, full: Pass, peers: tuple[Rate, Rate], finished: int) -> list[Figure]:
    ours, plain = harmonic_mean([fresh.rate.running, full.rate.running]), harmonic_mean([p.running for p in peers])
    told = f"{fresh.rate}, {full.rate}; plain client {peers[0]}, {peers[1]}"
    cost = 100 * full.cpu_ms / fresh.cpu_ms
    return [
        Figure("placed_share", 100 * ours / plain, told),
        Figure("finished_cost", cost, f"{full.cpu_ms:.1f} ms a job; {fresh.cpu_ms:.1f} ms without {finished} finished"),
        Figure("controller_memory", max(fresh.mib, full.mib), f"{fresh.mib:.0f} with an empty database"),
        Figure("controller_cores", max(fresh.cores, full.cores), f"all ended after {fresh.ended_s:.0f} s"),
    ]
