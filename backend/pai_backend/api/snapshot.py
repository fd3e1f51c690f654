"""The cluster as it is, rebuilt from what is stored once per change, however many look.

Rebuilding costs what a restart of the controller costs. As long as nothing was committed, and neither nodes nor
configuration have changed, everybody is given the same snapshot, and answers that were made of it before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import BaseModel

from pai_backend.model.job import Job
from pai_backend.model.node import Node
from pai_backend.platform.shared_read import SharedRead
from pai_backend.scheduling.jobs.change import rebuilt
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.jobs.trial import Trials

if TYPE_CHECKING:
    from pai_backend.api.context import CellRules
    from pai_backend.store.sql import Store

MOST_ANSWERS = 64
"""Answers kept of one snapshot; those that depend on the user are one for each."""


@dataclass(eq=False)
class Snapshot:
    """All jobs that have not ended, the nodes, and the cells as these jobs hold them. Only to be looked at."""

    jobs: Sequence[Job]
    nodes: tuple[Node, ...]
    rules: CellRules
    placer: Placer
    trials: Trials | None = None
    """Copies in which jobs are tried; made when one is."""
    trying: asyncio.Lock = field(default_factory=asyncio.Lock)
    _answers: dict[Hashable, bytes] = field(default_factory=dict)
    _making: asyncio.Lock = field(default_factory=asyncio.Lock)

    def fits(self, nodes: tuple[Node, ...], rules: CellRules) -> bool:
        """Whether it is still the one for these nodes, this configuration and these caps."""
        same = self.rules.config is rules.config and self.rules.cells_for_all == rules.cells_for_all
        alike = self.rules.policy is rules.policy and self.rules.bookings is rules.bookings
        return same and alike and self.nodes == nodes

    async def answer(self, key: Hashable, make: Callable[[], BaseModel]) -> bytes:
        """What ``make`` makes as JSON, made once for each key, in a thread. ``make`` may raise."""
        async with self._making:  # cells make objects of their parts when they are asked: one thread at a time
            known = self._answers.get(key)
            if known is None:
                known = await asyncio.to_thread(lambda: make().model_dump_json(by_alias=True).encode())
                if len(self._answers) >= MOST_ANSWERS:
                    self._answers.pop(next(iter(self._answers)))
                self._answers[key] = known
            return known


class Snapshots:
    """Gives the latest snapshot."""

    def __init__(self, store: Store, nodes: Callable[[], Sequence[Node]], rules: Callable[[], CellRules]) -> None:
        self._store = store
        self._nodes = nodes
        self._rules = rules
        self._reads = SharedRead(self._read)
        self._last: tuple[int, Snapshot] | None = None

    async def now(self) -> Snapshot:
        """A snapshot that has all that was committed before the call. Raises Unavailable."""
        return await self._reads.since(self._reads.clock())

    async def _read(self) -> Snapshot:
        mark, nodes, rules = await self._store.changes.look(), tuple(self._nodes()), self._rules()
        if self._last is not None:
            seen, last = self._last
            if seen == mark and last.fits(nodes, rules):
                return last
        self._last = None  # not two of them in memory at once
        jobs = await self._store.jobs.unfinished()
        placer = await asyncio.to_thread(rebuilt, rules.config, nodes, jobs, cells_for_all=rules.cells_for_all)
        snapshot = Snapshot(jobs, nodes, rules, placer)
        self._last = mark, snapshot
        return snapshot
