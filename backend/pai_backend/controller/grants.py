"""Who may use which virtual cluster now. The job of a user without that right waits, whatever is free.

That was asked when the job was submitted; a grant may end while it waits. Who runs goes on until its next attempt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pai_backend.model.account import Account, Directory, is_granted
from pai_backend.model.job import Job

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

LOOK_S = 5.0
"""Grants are looked at at least this often."""
REST_S = 1.0
"""And at most this often: what changes is live within two seconds, and a busy database is not asked all the time."""


@dataclass(frozen=True)
class Grants:
    """Who may use what, as of one moment. ``settled``: what the settings grant, by user, which nothing else changes."""

    directory: Directory = field(default_factory=Directory)
    admins: frozenset[str] = frozenset()
    settled: Mapping[str, Collection[str]] = field(default_factory=dict)
    _known: dict[tuple[str, str], bool] = field(default_factory=dict, compare=False, repr=False)

    def refusal(self, job: Job) -> str:
        """Why a job may not start; empty when its user may use its virtual cluster."""
        user, vc = job.user, job.spec.virtual_cluster
        if (user, vc) not in self._known:
            account = self.directory.with_rights(Account(user, user in self.admins))
            self._known[user, vc] = is_granted(vc, account, self.settled)
        return "" if self._known[user, vc] else refusal_of(job)


def refusal_of(job: Job) -> str:
    """The sentence for a job whose user may not use its virtual cluster."""
    vc = job.spec.virtual_cluster
    return (
        f"{job.user} may not use the virtual cluster {vc} any more; it starts once an administrator or a manager of "
        f"{vc} has granted that again"
    )


class GrantsWatch:
    """The grants during one tenure."""

    def __init__(self, store: Store, settled: Mapping[str, Collection[str]]) -> None:
        self._store = store
        self._settled = settled
        self._told = Grants(settled=settled)

    async def begin(self) -> Grants:
        """The grants as they are."""
        directory = await self._store.groups.directory()
        admins = await self._store.grants.all_admins()
        self._told = Grants(replace(directory, users=()), admins, self._settled)
        return self._told

    async def watch(self, tell: Callable[[Grants], None]) -> None:
        """Tell the grants whenever they are others than before, for ever."""
        mark = -1
        while True:
            mark = await self._store.changes.wait(mark, LOOK_S)
            before = self._told
            if await self.begin() != before:
                tell(self._told)
            await asyncio.sleep(REST_S)
