"""Certificates that were issued, and the keys that sign them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, delete, func, insert, or_, select, update

from pai_backend.model.errors import NoSuchCertificate
from pai_backend.model.ids import JobUid
from pai_backend.model.rights import from_text, to_text
from pai_backend.model.text import Text
from pai_backend.store import audit
from pai_backend.store.cipher import Sealed
from pai_backend.store.grants import Act, Certificate, UserCa
from pai_backend.store.people_tables import certificates as table
from pai_backend.store.people_tables import secrets, user_cas
from pai_backend.store.rows import AnyRow

KEPT = timedelta(days=30)
"""How long a certificate is remembered after its end; the audit keeps its serial for ever."""

_TIME = table.c.expires_at.type
_ONE = select(table).where(table.c.serial == bindparam("serial_"))
_LIVING = (
    select(table)
    .where(table.c.expires_at > bindparam("now_", type_=_TIME), table.c.revoked_at.is_(None))
    .order_by(table.c.issued_at, table.c.serial)
)
_LIVING_OF = _LIVING.where(table.c.username == bindparam("username_"))
_MADE_BY = select(table.c.serial).where(table.c.made_by == bindparam("made_by_"), table.c.revoked_at.is_(None))
_INSERT = insert(table)
_FORGET = delete(table).where(table.c.expires_at < bindparam("before_", type_=_TIME))
_REVOKE = update(table).where(table.c.serial == bindparam("serial_"))
_CAS = (
    select(user_cas)
    .where(
        or_(
            user_cas.c.number == select(func.max(user_cas.c.number)).scalar_subquery(),
            user_cas.c.fingerprint.in_(select(table.c.ca).where(table.c.expires_at > bindparam("now_", type_=_TIME))),
        )
    )
    .order_by(user_cas.c.number.desc())
)
_NEWEST_CA = select(user_cas).order_by(user_cas.c.number.desc()).limit(1)
_CA_KEY = select(secrets.c.value).where(secrets.c.name == bindparam("name_"))


def certificate(conn: Connection, serial: int) -> Certificate | None:
    """One certificate, whatever has become of it."""
    row = conn.execute(_ONE, {"serial_": serial}).one_or_none()
    return None if row is None else _certificate(row)


def living(conn: Connection, user: str | None, now: datetime) -> list[Certificate]:
    """Certificates of a user, or of all, that are neither revoked nor over, oldest first."""
    bounds: dict[str, object] = {"now_": now}
    rows = conn.execute(_LIVING, bounds) if user is None else conn.execute(_LIVING_OF, {**bounds, "username_": user})
    return [_certificate(row) for row in rows]


def issue(conn: Connection, made: Certificate, act: Act) -> None:
    """Write down a certificate before it is handed out; those that ended long ago are forgotten on the way.

    Raises Unauthorized.
    """
    audit.require_token(conn, made.made_by)
    conn.execute(_FORGET, {"before_": act.at - KEPT})
    conn.execute(
        _INSERT,
        {
            "serial": made.serial,
            "username": made.user,
            "fingerprint": made.fingerprint,
            "ca": made.ca,
            "principals": json.dumps(made.principals),
            "limits": to_text(made.limits),
            "job": made.job,
            "issued_at": made.issued_at,
            "expires_at": made.expires_at,
            "revoked_at": None,
            "last_used_at": None,
            "last_used_from": "",
            "reason": made.reason,
            "made_by": made.made_by,
            "virtual_cluster": made.within,
        },
    )
    detail = f"for {made.fingerprint} until {made.expires_at:%Y-%m-%d %H:%M:%S} UTC"
    if made.reason:
        detail += f", as an administrator: {made.reason}"
    audit.note(conn, "certificate.issued", made.user, str(made.serial), act, job=made.job, detail=detail)


def revoke(conn: Connection, user: str | None, serial: int, act: Act) -> None:
    """Refuse a certificate from now on; idempotent. ``user``: whose it has to be, None for anybody's.

    Raises NoSuchCertificate.
    """
    kept = certificate(conn, serial)
    if kept is None or user not in (None, kept.user):
        raise NoSuchCertificate(
            Text("There is no certificate {serial} of yours.", serial=serial),
            hint=Text("`GET /api/v2/certificates` lists yours."),
        )
    if kept.revoked_at is None:
        conn.execute(_REVOKE.values(revoked_at=act.at), {"serial_": serial})
        audit.note(conn, "certificate.revoked", kept.user, str(serial), act, job=kept.job)


def end_of_token(conn: Connection, digest: str, act: Act) -> None:
    """Refuse the certificates that an application token had made."""
    for serial in conn.execute(_MADE_BY, {"made_by_": digest}).scalars().all():
        revoke(conn, None, serial, act)


def note_use(conn: Connection, serial: int, at: datetime, source: str) -> None:
    """Remember the last use."""
    conn.execute(_REVOKE.values(last_used_at=at, last_used_from=source), {"serial_": serial})


def accepted_cas(conn: Connection, now: datetime) -> list[UserCa]:
    """The key that signs now, then older ones of which a certificate is not over."""
    return [_ca(row) for row in conn.execute(_CAS, {"now_": now})]


def ca_key(conn: Connection, number: int) -> bytes | None:
    """The private half of a signing key, sealed; None for one that no longer signs."""
    kept = conn.execute(_CA_KEY, {"name_": _name(number)}).scalar_one_or_none()
    return None if kept is None else bytes(kept)


def follow_ca(conn: Connection, after: int, made: UserCa, private: Sealed, act: Act) -> UserCa:
    """Let ``made`` sign from now on, and forget the private half of the one before; returns the one that signs.

    ``after`` is the number that signed when this was decided: if another does by now, nothing changes.
    """
    newest = conn.execute(_NEWEST_CA).one_or_none()
    if (0 if newest is None else newest.number) != after:
        return _ca(newest) if newest is not None else made
    conn.execute(
        insert(user_cas),
        {
            "number": made.number,
            "public_key": made.public_key,
            "fingerprint": made.fingerprint,
            "made_at": made.made_at,
        },
    )
    conn.execute(delete(secrets).where(secrets.c.name == _name(after)))
    conn.execute(insert(secrets), {"name": _name(made.number), "value": private.data, "sealed_by": private.by})
    audit.note(conn, "ca.rotated" if after else "ca.made", act.by, made.fingerprint, act)
    return made


def _name(number: int) -> str:
    return f"user-ca-{number}"


def _ca(row: AnyRow) -> UserCa:
    return UserCa(row.number, row.public_key, row.fingerprint, row.made_at)


def _certificate(row: AnyRow) -> Certificate:
    return Certificate(
        serial=row.serial,
        user=row.username,
        fingerprint=row.fingerprint,
        ca=row.ca,
        principals=tuple(json.loads(row.principals)),
        limits=from_text(row.limits),
        job=None if row.job is None else JobUid(row.job),
        issued_at=row.issued_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        last_used_at=row.last_used_at,
        last_used_from=row.last_used_from,
        reason=row.reason,
        made_by=row.made_by,
        within=row.virtual_cluster,
    )
