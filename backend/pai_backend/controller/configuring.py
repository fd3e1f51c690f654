"""Which cluster configuration is in force, and going over to another one while everything runs.

Rules of this file: a version is stored before anything decides by it, and it is stored as in force before anything is
decided by it. A controller begins with the version in force, and hears of a newer one as of all other news: through
the inbox. So whenever the process is killed, the next one finds either the old version in force, and goes over to the
new one in the same way; or the new one, and finds out from the jobs whose claims are still to be told.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pai_backend.controller.inbox import Configured, Inbox
from pai_backend.model.errors import DocumentError, Unavailable
from pai_backend.model.job import Job
from pai_backend.scheduling.config.read import read_config
from pai_backend.scheduling.jobs.change import go_over
from pai_backend.scheduling.jobs.placer import Placer

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

log = logging.getLogger(__name__)

LOOK_S = 5.0
"""The newest version is looked at at least this often."""


@dataclass(frozen=True)
class Setting:
    """What ``cluster.config`` says: its text, empty when it is not given. ``fixed``: nothing else counts."""

    text: str = ""
    fixed: bool = False


class Unreadable(Unavailable):
    """A stored version that this version of the program cannot read; another one could."""


class Configuring:
    """The configuration during one tenure."""

    def __init__(self, store: Store, setting: Setting, *, epoch: int, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._setting = setting
        self._epoch = epoch
        self._clock = clock
        self._heard = 0
        self.version = 0
        """The version in force; 0 before the first."""

    async def begin(self, placer: Placer) -> None:
        """Note a setting that has changed, and let an empty placer decide by the configuration in force.

        Before there was any version the placer stays as it is. Raises Fenced, Unavailable, and Unreadable for a
        version that cannot be read any more, unless a newer one can.
        """
        setting = self._setting
        await self._store.configs.adopt_setting(setting.text, self._clock(), self._epoch, fixed=setting.fixed)
        state = await self._store.configs.state()
        if state.in_force is None:
            return
        try:
            found = await self._read(state.in_force_number)
        except Unreadable:
            if state.number == state.in_force_number:
                raise
            found = await self._read(state.number)
            await self._store.configs.took_force(found.version, "{}", self._clock(), self._epoch)
        placer.reconfigure(found.config, ())
        self.version = self._heard = found.version

    async def watch(self, inbox: Inbox) -> None:
        """Pass versions that were recorded later to the loop, for ever; of several only the newest."""
        mark = -1
        while True:
            mark = await self._store.changes.wait(mark, LOOK_S)
            newest = (await self._store.configs.state()).number
            if newest > self._heard:
                try:
                    inbox.configured(await self._read(newest))
                except Unreadable as error:
                    # Recorded by a newer program beside this one: what is in force stays so, rather than nothing.
                    log.error("%s %s", error.message, error.hint)
                self._heard = newest

    async def take(self, found: Configured, placer: Placer, jobs: Iterable[Job]) -> None:
        """Let the placer decide by this version, between two decisions of the loop.

        Who lost or regained a claim, or a reservation, is then among the placer's news. Raises Fenced.
        """
        change = go_over(placer, found.config, jobs)  # not in a thread: `why` reads the placer as well
        effects = change.model_dump_json(exclude_defaults=True)
        await self._store.configs.took_force(found.version, effects, self._clock(), self._epoch)
        self.version = found.version
        log.info("cluster configuration: version %d is in force", found.version)

    async def _read(self, version: int) -> Configured:
        """A version's text, read in a thread, since one of 10,000 nodes takes seconds."""
        text = await self._store.configs.text(version)
        if not text:
            return Configured(version, None)
        try:
            return Configured(version, await asyncio.to_thread(read_config, text))
        except DocumentError as error:
            raise Unreadable(
                f"The stored cluster configuration, version {version}, cannot be read by this version of jupyter-pai: "
                f"{error.errors[0].message}.",
                hint="Apply one without this fault with `pai cluster apply`, or name it in `cluster.config`.",
            ) from error
