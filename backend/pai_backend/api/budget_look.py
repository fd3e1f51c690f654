"""What of each budget is used, for those who submit; looked at again when that is a few seconds old."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from pai_backend.model.budget import BudgetUse

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

FRESH_S = 2.0
"""For so long the last look counts."""
SHARE = 20
"""Of the time, at most one part in so many is spent on adding up."""


class BudgetCache:
    """The budgets as they are used now."""

    def __init__(
        self, store: Store, clock: Callable[[], datetime], timer: Callable[[], float] = time.monotonic
    ) -> None:
        self._store, self._clock, self._timer = store, clock, timer
        self._lock = asyncio.Lock()
        self._fresh_until = float("-inf")
        self._uses: Sequence[BudgetUse] = ()

    async def uses(self, *, at_once: bool = False) -> Sequence[BudgetUse]:
        """What of each is used; ``at_once``: now. Raises Unavailable."""
        async with self._lock:
            began = self._timer()
            if at_once or began >= self._fresh_until:
                self._uses = await self._store.budgets.uses(self._clock())
                took = self._timer() - began
                self._fresh_until = began + took + max(FRESH_S, SHARE * took)
            return self._uses
