"""What the audit holds, and how its events are chained. Pure.

Each event's hash covers the hash before it and all its own fields, so that no event can be changed, put in or taken out
without all that follow being changed as well: who has kept one hash can prove everything before it. ``docs/audit.md``
says how to check it from outside; ``jupyter_pai.audit_chain`` does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count

from pai_backend.model.ids import JobUid

BEGINNING = "0" * 64
"""What stands for the hash before the first event."""
DONE = "done"
"""The result of what was done; other results are codes of errors, and ``begun`` of what was written down before."""
BEGUN = "begun"


@dataclass(frozen=True)
class AuditEvent:
    """One change or entry, never with a secret.

    ``position`` counts from 1 without gaps. ``user``: whom it concerns; ``by``: who did it. ``subject``: what it was
    done to: a job, a fingerprint, a user, a path.
    """

    type: str
    at: datetime
    user: str
    by: str
    source: str = ""
    """The address that asked; empty: this machine, by command."""
    subject: str = ""
    job: JobUid | None = None
    detail: str = ""
    token: str = ""
    """Beginning of the digest of the token that was used, as ``pai token list`` shows it; empty: none was."""
    request: str = ""
    """The request's id, which the answer and the log have too."""
    result: str = DONE
    position: int = 0
    hash: str = ""
    """SHA-256 in hexadecimal digits; empty while it is not chained yet."""


@dataclass(frozen=True)
class ChainLink:
    """A place in the chain: everything up to ``position`` is what ``hash`` stands for."""

    position: int = 0
    hash: str = BEGINNING


def hash_of(event: AuditEvent, before: str) -> str:
    """The hash of an event with its position, after the one with the hash ``before``.

    It is SHA-256 of ``before`` and of the fields as JSON, but the hash itself: names in their order, no spaces, no
    escapes of letters, in UTF-8; the time as RFC 3339 writes it.
    """
    text = json.dumps(fields_of(event), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(before.encode() + text.encode("utf-8", "surrogatepass")).hexdigest()


def fields_of(event: AuditEvent) -> dict[str, object]:
    """What the hash covers, as JSON has it."""
    return {
        "at": event.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "by": event.by,
        "detail": event.detail,
        "job": event.job,
        "position": event.position,
        "request": event.request,
        "result": event.result,
        "source": event.source,
        "subject": event.subject,
        "token": event.token,
        "type": event.type,
        "user": event.user,
    }


def chained(events: Iterable[AuditEvent], head: ChainLink) -> Iterator[AuditEvent]:
    """The events with their positions and hashes, as they follow on ``head``."""
    before = head.hash
    for event, position in zip(events, count(head.position + 1), strict=False):
        placed = replace(event, position=position)
        before = hash_of(placed, before)
        yield replace(placed, hash=before)
