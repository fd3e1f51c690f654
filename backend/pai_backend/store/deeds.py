"""Who is doing what now, for the audit: set where a request or a command begins, read where the store is written.

Every write of the store that happens meanwhile carries the deed with it, and the first that succeeds writes the deed's
event in its own transaction: so no change of a request can be without its event, whichever way it takes to the store.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime

from pai_backend.model.audit import DONE, AuditEvent
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job


@dataclass(eq=False)
class Deed:
    """A request, or a command of an administrator, that may change something."""

    type: str
    """Of the event, such as ``job.submitted``."""
    at: datetime
    by: str = ""
    """Who does it; empty until that is known, as in a sign-in."""
    user: str = ""
    """Whom it concerns; empty: who does it."""
    source: str = ""
    token: str = ""
    request: str = ""
    subject: str = ""
    job: JobUid | None = None
    detail: str = ""
    assistant: str = ""
    """The program that did it by itself for ``by``, as it calls itself; empty: none said so."""
    told_by_store: bool = False
    """Whether the store writes the event itself, with more in it; the deed then only says by which token."""
    written: bool = False
    """Whether the event is durable."""

    def said(self, detail: str) -> str:
        """A detail, and which assistant did it."""
        return "; ".join(filter(None, (detail, f"assistant: {self.assistant}" if self.assistant else "")))

    def event(self, result: str = DONE) -> AuditEvent:
        """The event of it."""
        return AuditEvent(
            type=self.type,
            at=self.at,
            user=self.user or self.by,
            by=self.by,
            source=self.source,
            subject=self.subject,
            job=self.job,
            detail=self.said(self.detail),
            token=self.token,
            request=self.request,
            result=result,
        )


_CURRENT: ContextVar[Deed | None] = ContextVar("deed", default=None)


def current() -> Deed | None:
    """What is being done now by this task, if it is for the audit."""
    return _CURRENT.get()


def concerning(deed: Deed | None, job: Job) -> None:
    """The deed is done to this job, which its change has written."""
    if deed is not None:
        deed.job, deed.user, deed.subject = job.uid, job.user, job.id


def found(job: Job) -> None:
    """What is being done now is done to this job, unless another was named before."""
    deed = current()
    if deed is not None and deed.job is None:
        concerning(deed, job)


def changes_nothing() -> None:
    """What is being done now is no deed after all, such as a plan of a change."""
    deed = current()
    if deed is not None:
        deed.told_by_store = True


@contextmanager
def doing(deed: Deed | None) -> Iterator[None]:
    """Within it, writes of this task are the deed's."""
    before = _CURRENT.set(deed)
    try:
        yield
    finally:
        _CURRENT.reset(before)
