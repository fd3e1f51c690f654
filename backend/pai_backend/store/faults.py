"""Database faults as domain errors: the only place that knows drivers' codes.

A fault names the place without its password, the reason in words and a remedy. What is in no table
here is a defect of ours and passes unchanged, with statement parameters hidden (they may be secrets).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, InterfaceError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from pai_backend.model.errors import InvalidParameters, PaiError, Unavailable

_RETRY = "Nothing was changed; try again."

# Primary result codes, https://www.sqlite.org/rescode.html: (reason, remedy)
_SQLITE = {
    5: ("is locked by another process", f"{_RETRY} If it stays so, look for another program that has it open."),
    6: ("is locked by another connection", _RETRY),
    8: ("cannot be written: it, its directory or its disk is read-only", "Give the backend's user write access."),
    10: ("has a disk error", "Check the disk, and the system's log for its message."),
    11: ("is damaged", "Restore it from a backup, or recover it with `sqlite3 FILE .recover`."),
    13: ("cannot grow: the disk is full", "Free some space on that disk, then try again."),
    14: ("cannot be opened", "Check that its directory exists and that the backend's user may write there."),
    26: ("is not a SQLite database", "Name another file in `database`, or move this one away."),
}

_SQLITE_FULL = frozenset({13, 10 | 19 << 8})  # SQLITE_FULL, SQLITE_IOERR_SHMSIZE

# SQLSTATE classes, https://www.postgresql.org/docs/current/errcodes-appendix.html
_POSTGRES = {
    "08": ("closed the connection", _RETRY),
    "25P03": ("ended a transaction that was blocked for too long", _RETRY),
    "28": ("refused the login", "Check user and password in `database`, and the server's pg_hba.conf."),
    "3D": ("has no database of that name", "Create it with createdb, or correct `database`."),
    "42501": ("refused the operation", "Grant the backend's user the right to create tables in its schema."),
    "53": ("is out of resources", "Check the server's disk space and max_connections."),
    "55P03": ("is busy: another process holds its lock", _RETRY),
    "57": ("is shutting down or starting", "Try again in a moment."),
    "58": ("has a system error", "See the server's log."),
}

_NETWORK = ("cannot be reached", "Check that it runs and that `database` names its host and port.")


@contextmanager
def reported(place: str) -> Iterator[None]:
    """Turn database faults inside into Unavailable or InvalidParameters; ``place`` begins the sentence."""
    try:
        yield
    except Exception as error:
        known = translate(error, place)
        if known is None:
            raise
        raise known from error


def translate(error: Exception, place: str) -> PaiError | None:
    """The domain error for a driver's, SQLAlchemy's or the network's; None when it is none of these."""
    if isinstance(error, PoolTimeout):
        return _unavailable(place, ("has no connection free", _RETRY))
    if isinstance(error, (UnicodeEncodeError, OverflowError)):  # sqlite3's, raised before it asks SQLite
        return _unfit()
    if isinstance(error, OSError):  # asyncpg lets the network's errors, and its time-outs, through as they are
        return _unavailable(place, _NETWORK)
    cause = error.orig if isinstance(error, DBAPIError) else error
    sqlite_code = getattr(cause, "sqlite_errorcode", None)
    if isinstance(sqlite_code, int):
        return _unavailable(place, _SQLITE.get(sqlite_code & 0xFF))
    state = getattr(cause, "sqlstate", None)
    if isinstance(state, str):
        if state.startswith("22"):
            return _unfit()
        return _unavailable(place, _POSTGRES.get(state) or _POSTGRES.get(state[:2]))
    if isinstance(error, InterfaceError) or (isinstance(error, DBAPIError) and error.connection_invalidated):
        return _unavailable(place, _POSTGRES["08"])
    return None


def is_full(error: DBAPIError) -> bool:
    """Whether SQLite found the disk full: for the file, or for the memory that its processes share."""
    return getattr(error.orig, "sqlite_errorcode", None) in _SQLITE_FULL


def _unfit() -> InvalidParameters:
    return InvalidParameters(
        "A value has a character or a size that the database does not take.",
        hint="Remove NUL and half surrogate pairs from texts, and numbers beyond 64 bits.",
    )


def _unavailable(place: str, words: tuple[str, str] | None) -> Unavailable | None:
    return None if words is None else Unavailable(f"{place} {words[0]}.", hint=words[1])
