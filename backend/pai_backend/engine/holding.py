"""The holder of an engine: the one database whose tasks run there. Pure; engines keep the record (ADR 0025).

Two backends with the same ``cluster_name`` in one namespace, or two databases over one data directory, would each
see the other's tasks as unknown. So the place has a holder record with the identity of the database and a heartbeat.
A controller writes it before it acts, and again every :data:`BEAT_S` seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Self

from pydantic import ValidationError

from pai_backend.engine.base import EngineError
from pai_backend.model.base import Model

BEAT_S: Final = 5.0
"""Seconds between two heartbeats of a controller."""
ALIVE_S: Final = 30.0
"""A heartbeat older than this counts as that of a controller that has ended."""


class HeldByAnother(EngineError):
    """The engine belongs to another database, or another controller with a copy of this database is at work."""


@dataclass(frozen=True)
class ControllerClaim:
    """The controller that wants to act: the identity of its database, its process, and the epoch of its lease."""

    identity: str
    holder: str
    epoch: int


class EngineHolder(Model):
    """The record at the engine."""

    identity: str
    previous: tuple[str, ...] = ()
    """Identities whose tasks an administrator has handed to this one (``pai_backend adopt``), oldest first."""
    holder: str = ""
    epoch: int = 0
    beat_at: datetime

    @property
    def identities(self) -> frozenset[str]:
        """Whose tasks belong to the holder."""
        return frozenset((self.identity, *self.previous))

    def is_written_by(self, claim: ControllerClaim) -> bool:
        """Whether this controller, in this lease, wrote the record."""
        return (self.identity, self.holder, self.epoch) == (claim.identity, claim.holder, claim.epoch)

    def age_s(self, now: datetime) -> float:
        """Seconds since the last heartbeat."""
        return max(0.0, (now - self.beat_at).total_seconds())

    @classmethod
    def read(cls, text: str, place: str) -> Self:
        """The record from its JSON. Raises HeldByAnother: with an unreadable record no controller may act."""
        try:
            return cls.model_validate_json(text)
        except ValidationError:
            raise HeldByAnother(
                f"{place} cannot be read, so it is not known whose tasks run there; run `python -m pai_backend adopt` "
                "with the configuration of the backend that owns them"
            ) from None


def claimed(
    found: EngineHolder | None, claim: ControllerClaim, now: datetime, place: str, *, renewing: bool = False
) -> EngineHolder:
    """The record after this controller's claim.

    ``renewing``: this controller wrote the record before, in this lease. ``place`` names the record, for errors.
    Raises HeldByAnother for another identity, and while renewing for a record that another controller has written
    since: a copy of this database is at work.
    """
    if found is not None and found.identity != claim.identity:
        raise HeldByAnother(refusal(found, claim.identity, now, place))
    if renewing and found is not None and not found.is_written_by(claim):
        raise HeldByAnother(
            f"{place} was taken by {found.holder or 'another controller'} with a copy of this database; stop one of "
            "the two, and start the one to keep again"
        )
    previous = found.previous if found is not None else ()
    return EngineHolder(identity=claim.identity, previous=previous, holder=claim.holder, epoch=claim.epoch, beat_at=now)


def is_contested(found: EngineHolder | None, claim: ControllerClaim, now: datetime) -> bool:
    """Whether a living controller that this database does not know holds the record with the same identity.

    The database knows the controllers of its own leases, all of which have an epoch below that of the claim. Any other
    is of a copy of the database; it counts until its heartbeat is :data:`ALIVE_S` old.
    """
    if found is None or found.identity != claim.identity or found.age_s(now) > ALIVE_S:
        return False
    return found.epoch >= claim.epoch and not found.is_written_by(claim)


def handed_over(found: EngineHolder | None, identity: str, now: datetime) -> EngineHolder:
    """The record after ``pai_backend adopt``: the tasks of earlier holders belong to ``identity`` from now on."""
    earlier = () if found is None else (*found.previous, found.identity)
    previous = tuple(dict.fromkeys(each for each in earlier if each != identity))
    # Not a heartbeat: a controller that starts next need not wait for one to grow old.
    beat = now if found is None else found.beat_at
    return EngineHolder(identity=identity, previous=previous, beat_at=beat)


def refusal(found: EngineHolder, identity: str, now: datetime, place: str) -> str:
    """Why a database with this identity may not act, and both ways out."""
    return (
        f"{place} belongs to another database (identity {found.identity}; its controller {found.holder or 'unknown'} "
        f"was heard {found.age_s(now):.0f} s ago), and this database has the identity {identity}. Nothing was changed. "
        "If the other backend is in use, choose another `cluster_name` (local engine: another `data_dir`). If this "
        "database replaces it, stop the other backend and run `python -m pai_backend adopt` with this configuration: "
        "its running tasks are then kept and shown by `pai cluster orphans`"
    )
