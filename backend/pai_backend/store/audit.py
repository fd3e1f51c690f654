"""The audit: a chain of events, each written in the transaction of what it tells, never changed.

All writes of all processes happen one after the other (see ``database``), so the chain is continued inside of them: a
transaction that is undone leaves no gap, and one that is durable has its events. ``audit_chain`` holds where the chain
ends, sealed with a key that is not in the database, and where it begins since old events were cut off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from pai_backend.model.audit import AuditEvent, ChainLink, chained
from pai_backend.model.errors import Unauthorized
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job
from pai_backend.model.text import Text
from pai_backend.store import deeds
from pai_backend.store.cipher import Cipher, UnknownKey
from pai_backend.store.deeds import Deed
from pai_backend.store.grants import Act
from pai_backend.store.people_tables import access_tokens
from pai_backend.store.people_tables import audit_chain as chain
from pai_backend.store.people_tables import audit_events as table
from pai_backend.store.rows import Values

TOKEN_ID = 16
"""Digits of a token's digest that name it; they tell nothing of the token."""

_NOTES = "audit"
HEAD, ROOT = "head", "root"
"""Names of the rows of ``audit_chain``."""
_INSERT = insert(table)
LINK = select(chain.c.position, chain.c.hash, chain.c.seal, chain.c.sealed_by).where(chain.c.name == bindparam("name_"))
_SET_LINK = update(chain).where(chain.c.name == bindparam("name_"))
_TOKEN = select(access_tokens.c.digest).where(access_tokens.c.digest == bindparam("digest_"))


@dataclass
class Notes:
    """The events of one transaction that goes on."""

    events: list[AuditEvent] = field(default_factory=list)
    deeds: list[Deed] = field(default_factory=list)
    deed: Deed | None = None
    """Whose change is being carried out now."""

    def done(self, deed: Deed, outcome: object) -> None:
        """A change of this deed succeeded: write its event, unless that is done or the store has written it."""
        if deed.written or deed in self.deeds:
            return
        if isinstance(outcome, Job):
            deeds.concerning(deed, outcome)
        if not deed.told_by_store:
            self.events.append(deed.event())
            self.deeds.append(deed)


@contextmanager
def noting(conn: Connection) -> Iterator[Notes]:
    """Within it, events wait to be written together by :func:`write`."""
    notes = conn.info[_NOTES] = Notes()
    try:
        yield notes
    finally:
        del conn.info[_NOTES]


def note(
    conn: Connection, type_: str, user: str, subject: str, act: Act, *, job: JobUid | None = None, detail: str = ""
) -> None:
    """Write one event: ``act`` was done to ``user``'s ``subject``. Within :func:`noting`."""
    notes: Notes = conn.info[_NOTES]
    event = AuditEvent(type_, act.at, user, act.by, act.source, subject, job, detail)
    deed = notes.deed
    if deed is not None:
        more = {"detail": deed.said(event.detail), "token": deed.token, "request": deed.request}
        event = AuditEvent(**{**vars(event), **more})
        if deed.told_by_store and deed not in notes.deeds:
            notes.deeds.append(deed)
    notes.events.append(event)


def add(conn: Connection, event: AuditEvent) -> None:
    """Write this event. Within :func:`noting`."""
    conn.info[_NOTES].events.append(event)


def write(conn: Connection, events: Sequence[AuditEvent], cipher: Cipher) -> None:
    """Continue the chain with these events, and seal its new end. To be called last in a transaction.

    Raises UnknownKey when a newer key has sealed it: what runs since before a rotation must not seal with the old one.
    """
    if not events:
        return
    row = conn.execute(LINK, {"name_": HEAD}).one_or_none()
    if row is not None and row.sealed_by is not None and row.sealed_by not in cipher.ids:
        raise UnknownKey(f"the audit is sealed with the key {row.sealed_by}")
    added = list(chained(events, ChainLink() if row is None else ChainLink(row.position, row.hash)))
    conn.execute(_INSERT, [_values(event) for event in added])
    end = ChainLink(added[-1].position, added[-1].hash)
    sealed = cipher.sealed(f"{end.position} {end.hash}".encode())
    set_link(conn, HEAD, end, seal=sealed.data, sealed_by=sealed.by)


def link(conn: Connection, name: str) -> ChainLink:
    """The chain's ``HEAD`` or ``ROOT``."""
    row = conn.execute(LINK, {"name_": name}).one_or_none()
    return ChainLink() if row is None else ChainLink(row.position, row.hash)


def set_link(conn: Connection, name: str, to: ChainLink, **seal: object) -> None:
    """Move the chain's ``HEAD`` or ``ROOT``."""
    if conn.execute(_SET_LINK.values(**vars(to), **seal), {"name_": name}).rowcount == 0:
        conn.execute(insert(chain), {"name": name, **vars(to), **seal})


def require_token(conn: Connection, digest: str) -> None:
    """Raise Unauthorized for an application token that was revoked since its request was checked; empty: none was used.

    To be called in the transaction that writes what a token made: its revocation ends what is there then.
    """
    if digest and conn.execute(_TOKEN, {"digest_": digest}).one_or_none() is None:
        raise Unauthorized(Text("The token is no longer valid."), hint=Text("Sign in again."))


def by_token(digest: str) -> str:
    """The detail of an event that an application token caused."""
    return f"by the application token {digest[:TOKEN_ID]}"


def _values(event: AuditEvent) -> Values:
    values: dict[str, Any] = dict(vars(event))
    return {**values, "username": values.pop("user"), "by_user": values.pop("by")}
