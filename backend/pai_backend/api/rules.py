"""What the API judges by: the rules of virtual clusters, and the cluster configuration in force.

The configuration is that of the settings until the controller has another.

Replicas of the API do not decide, so they look which version is in force, at most once a second. A caller that waited
for a version to take force looks at once.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pai_backend.model.booking import in_force
from pai_backend.model.errors import DocumentError
from pai_backend.scheduling.config.read import read_config
from pai_backend.scheduling.queue.policy import with_rules

if TYPE_CHECKING:
    from pai_backend.api.context import CellRules
    from pai_backend.store.sql import Store

log = logging.getLogger(__name__)

FRESH_S = 1.0
"""For so long the last look counts."""


class LiveRules:
    """The rules as they are now."""

    def __init__(self, store: Store, settings: CellRules, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._lock = asyncio.Lock()
        self._looked = float("-inf")
        self.policy_of_settings = settings.policy
        self.now = settings
        """As of the last look."""
        self.version = 0
        """The version in force then; 0: none is stored."""

    async def refresh(self, *, at_once: bool = False) -> None:
        """Look which version is in force, unless that was done just now or is being done. Raises Unavailable."""
        if not at_once and (self._lock.locked() or self._clock() - self._looked < FRESH_S):
            return
        async with self._lock:
            number = (await self._store.configs.state()).in_force_number
            if number != self.version:
                await self._take(number)
            rules = await self._store.vc_rules.all()
            if rules != self.now.vc_rules:
                self.now = replace(self.now, vc_rules=rules, policy=with_rules(self.policy_of_settings, rules))
            await self._look_at_bookings()
            self._looked = self._clock()

    async def _look_at_bookings(self) -> None:
        found = await self._store.bookings.all()
        if found:
            found = in_force(found, await self._store.groups.directory(), datetime.now(UTC))
        if found != self.now.bookings:
            self.now = replace(self.now, bookings=found)

    async def _take(self, version: int) -> None:
        text = await self._store.configs.text(version)
        try:
            config = await asyncio.to_thread(read_config, text) if text else None
        except DocumentError as error:
            # An older version of this program could read it. Who plans and applies another one must get through.
            log.error("cluster configuration, version %d, cannot be read: %s", version, error.message)
        else:
            self.now = replace(self.now, config=config)
        self.version = version
