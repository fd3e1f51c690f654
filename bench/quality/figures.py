"""Waits on 48 GPUs under ``queue.order``, beside first fit with backfill and shortest first with known run times.

Of each load the sums of some seeds are compared, since single traces differ by more than policies do. Run times are
learnt on the way, from jobs that have ended. These seeds were not used to choose the orders' multiples.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bench.figures import Figure
from bench.quality import plain
from bench.quality.arrivals import HOUR, Run, arrivals
from pai_backend.model.order import Order
from pai_backend.scheduling.config.model import CellSpec, CellType, ClusterConfig, Quota, VirtualCluster
from pai_backend.scheduling.queue import Policy
from pai_backend.simulation import Arrival, Rules, Trace, replay

NODES, JOBS = 6, 1500
SEEDS = range(101, 106)
LOADS = {"easy": 0.8, "full": 0.98, "over": 1.1}
VC = "vc"


@dataclass
class Waits:
    """What the runs of all seeds waited, in hours."""

    means: list[float] = field(default_factory=list)
    longest: list[float] = field(default_factory=list)
    idle: list[float] = field(default_factory=list)

    def add(self, seconds: list[float], idle: float = 0.0) -> None:
        """Those of one seed, and the share of GPU time that was idle while wanted."""
        self.means.append(sum(seconds) / len(seconds) / HOUR)
        self.longest.append(max(seconds) / HOUR)
        self.idle.append(idle)

    @property
    def mean(self) -> float:
        """Of all seeds."""
        return sum(self.means) / len(self.means)

    @property
    def most(self) -> float:
        """The longest wait, in the mean of the seeds."""
        return sum(self.longest) / len(self.longest)


async def measure() -> list[Figure]:
    """All figures of the quality of schedules."""
    figures: list[Figure] = []
    for name, load in LOADS.items():
        found = _measured(load)
        told = "; ".join(f"{policy} {each.mean:.1f} (longest {each.most:.0f})" for policy, each in found.items())
        first_fit = found["first fit"]
        for order in (Order.PREDICTED, Order.FAIR):
            figures.append(Figure(f"{name}_{order}_mean", 100 * found[order].mean / first_fit.mean, f"hours: {told}"))
            figures.append(Figure(f"{name}_{order}_longest", 100 * found[order].most / first_fit.most))
        idle = found[Order.PREDICTED].idle
        figures.append(Figure(f"{name}_idle", 100 * sum(idle) / len(idle), "of all GPU time, while wanted"))
    return figures


def _measured(load: float) -> dict[str, Waits]:
    found = {name: Waits() for name in ("first fit", "shortest known", *Order)}
    for seed in SEEDS:
        runs = arrivals(seed, JOBS, NODES * plain.GPUS_A_NODE, load)
        found["first fit"].add(plain.waits(runs, NODES, plain.submitted))
        found["shortest known"].add(plain.waits(runs, NODES, plain.shortest))
        trace = Trace.of(_arrival(number, run) for number, run in enumerate(runs))
        for order in Order:
            report = replay(_config(), trace, Rules(Policy(order=order)))
            waited = [(fate.started_s or fate.arrived_s) - fate.arrived_s for fate in report.fates]
            found[order].add(waited, report.idle_while_wanted)
    return found


def _arrival(number: int, run: Run) -> Arrival:
    name = f"kind{run.kind}x-{number}"
    return Arrival(at=run.at, name=name, vc=VC, duration=run.seconds, user=f"user{run.user}", gpus=run.gpus)


def _config() -> ClusterConfig:
    """Nodes of eight GPUs, all of one virtual cluster."""
    types = {
        "SWITCH": CellType("SWITCH", "GPU", 4),
        "NODE": CellType("NODE", "SWITCH", 2, is_node=True),
        "POOL": CellType("POOL", "NODE", NODES),
    }
    gpus = [tuple(CellSpec("GPU", str(switch * 4 + index)) for index in range(4)) for switch in range(2)]
    switches = tuple(CellSpec("SWITCH", str(number), "", cells) for number, cells in enumerate(gpus))
    pool = CellSpec("POOL", "0", "", tuple(CellSpec("NODE", f"n{i}", "", switches) for i in range(NODES)))
    return ClusterConfig(types, (pool,), {VC: VirtualCluster(VC, (Quota("POOL", "NODE", NODES),))})
