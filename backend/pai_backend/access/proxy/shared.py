"""By which share a visitor may enter a service that is not their own."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Protocol

from pai_backend.access.proxy.directory import FRESH_S, Service
from pai_backend.access.proxy.visitor import Visitor
from pai_backend.model.ids import JobUid
from pai_backend.model.rights import Limits
from pai_backend.platform.shared_read import SharedRead
from pai_backend.store.grants import Act, Share

_KEPT = 1024  # answers


class ShareFinder(Protocol):
    """The part of the store that knows shares."""

    async def shares_in_force(self, job: JobUid, now: datetime) -> Sequence[Share]:
        """By which shares a job may be entered now."""
        ...

    async def note(self, type_: str, user: str, subject: str, act: Act, job: JobUid | None = None) -> None:
        """Write an event of the audit."""
        ...


def digest_of(token: str) -> str:
    """What is kept of the token of a link."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def opens(limits: Limits, label: str) -> bool:
    """Whether a share with these limits opens the service of that label."""
    return limits.ports is None or label in limits.ports


class SharedServices:
    """Finds shares; an answer is at most ``FRESH_S`` seconds old, as those of the directory are."""

    def __init__(
        self, finder: ShareFinder, now: Callable[[], datetime], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.finder = finder
        self._now, self._clock = now, clock
        self._answers: dict[JobUid, tuple[float, Sequence[Share]]] = {}
        self._reads: dict[JobUid, SharedRead[Sequence[Share]]] = {}

    async def of_visitor(self, visitor: Visitor, service: Service, alias: str) -> Share | None:
        """The share that opens the service of that alias to a visitor; None when none does.

        One that is new opens at once: before a visitor is refused, an answer from before is not relied on.
        """
        job = service.job
        if visitor.as_admin or visitor.job not in (None, job.uid):
            return None
        for most in (FRESH_S, 0.0):
            for share in await self._of_job(job.uid, most):
                if visitor.link:
                    found = hmac.compare_digest(share.link, visitor.link) and share.service == alias
                else:
                    found = share.is_for(visitor.name) and opens(share.limits, service.target.label or "")
                if found:
                    return share
        return None

    async def _look(self, job: JobUid) -> Sequence[Share]:
        self._answers.pop(job, None)
        begun = self._clock()
        shares = await self.finder.shares_in_force(job, self._now())
        while len(self._answers) >= _KEPT:
            del self._answers[next(iter(self._answers))]  # the oldest
        self._answers[job] = begun, shares
        return shares

    async def _of_job(self, job: JobUid, most_s: float) -> list[Share]:
        """By which shares the job may be entered, as of at most so many seconds ago."""
        asked_at, shares = self._answers.get(job, (0.0, ()))
        if job not in self._answers or self._clock() - asked_at >= most_s:
            read = self._reads.setdefault(job, SharedRead(partial(self._look, job), self._clock))
            try:
                shares = await read.since(self._clock() - most_s)
            finally:
                if read.is_idle:
                    self._reads.pop(job, None)
        now = self._now()
        return [share for share in shares if share.expires_at is None or now < share.expires_at]
