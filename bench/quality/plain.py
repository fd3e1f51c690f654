"""Plain policies on nodes of GPUs, to compare with: best fit, backfilled, in an order that does not change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush

from bench.quality.arrivals import Run

GPUS_A_NODE = 8


def submitted(run: Run) -> float:
    """In the order of submission: first fit with backfill."""
    return run.at


def shortest(run: Run) -> float:
    """The shortest first, its run time known: what no scheduler can know, and hard to beat in the mean."""
    return run.seconds


def waits(runs: Sequence[Run], nodes: int, order: Callable[[Run], float]) -> list[float]:
    """Seconds that each run waits when everything starts in this order that fits, at each arrival and end."""
    free, found = [GPUS_A_NODE] * nodes, [0.0] * len(runs)
    waiting: list[tuple[float, int]] = []
    ends: list[tuple[float, int, int]] = []
    coming = 0
    while coming < len(runs) or ends:
        next_end = ends[0][0] if ends else float("inf")
        now = min(runs[coming].at, next_end) if coming < len(runs) else next_end
        while ends and ends[0][0] <= now:
            _, number, node = heappop(ends)
            free[node] += runs[number].gpus
        while coming < len(runs) and runs[coming].at <= now:
            waiting.append((order(runs[coming]), coming))
            coming += 1
        left = []
        for key, number in sorted(waiting):
            fitting = [node for node in range(nodes) if free[node] >= runs[number].gpus]
            if not fitting:
                left.append((key, number))
                continue
            node = min(fitting, key=free.__getitem__)
            free[node] -= runs[number].gpus
            found[number] = now - runs[number].at
            heappush(ends, (now + runs[number].seconds, number, node))
        waiting = left
    return found
