"""Users whom administrators add, change and remove while the backend runs.

Every change is written with its event in the audit. With a user goes what lets them in: tokens, keys, certificates and
what others share with them. Their jobs that have ended and their files stay.
"""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import BindParameter, Connection, bindparam, delete, exists, func, insert, or_, select, update

from pai_backend.model.account import Account
from pai_backend.model.errors import NoSuchUser, UserExists, UserHasJobs
from pai_backend.model.job import State
from pai_backend.store import audit, certificates, keys, sharing, tokens
from pai_backend.store.grants import Act, UserUpdate
from pai_backend.store.rows import AnyRow
from pai_backend.store.tables import access_tokens, jobs, key_events
from pai_backend.store.tables import accounts as configured
from pai_backend.store.tables import users as table

_REMOVED = "user.removed"

_NAME: BindParameter[str] = bindparam("username_")
_ALL = select(table).order_by(table.c.username)
_ONE = select(table).where(table.c.username == _NAME)
_IS_TAKEN = select(
    or_(
        exists().where(func.lower(table.c.username) == func.lower(_NAME)),
        exists().where(func.lower(configured.c.username) == func.lower(_NAME)),
    )
)
_HAS_PAST = select(
    or_(
        exists().where(jobs.c.username == _NAME),
        exists().where(key_events.c.username == _NAME, key_events.c.type == _REMOVED),
    )
)
_UPDATE = update(table).where(table.c.username == _NAME)
_DELETE = delete(table).where(table.c.username == _NAME)
_FINAL = tuple(state.value for state in State if state.final)
_ACTIVE = select(jobs.c.name).where(jobs.c.username == _NAME, jobs.c.state.not_in(_FINAL)).order_by(jobs.c.uid)
_TOKENS = select(access_tokens.c.digest).where(access_tokens.c.username == _NAME)
_SHOWN = 3  # names of jobs in an error


def added(conn: Connection) -> list[Account]:
    """All of them, by name."""
    return [_account(row) for row in conn.execute(_ALL)]


def add(conn: Connection, account: Account, act: Act, *, again: bool) -> None:
    """Add a user. Raises UserExists, also for a name that a removed user had, unless ``again``.

    Names that differ in case alone are one: they name directories, and some file systems do not tell them apart.
    """
    asked = {"username_": account.name}
    if conn.execute(_IS_TAKEN, asked).scalar_one():
        raise UserExists(
            f"There is a user {account.name}, in this or in another case.",
            hint="`pai user set` changes one who was added.",
        )
    if not again and conn.execute(_HAS_PAST, asked).scalar_one():
        raise UserExists(
            f"There has been a user {account.name}, whose jobs and files the new one would have.",
            hint="Take another name, or `pai user add --again` for the same person.",
        )
    values = {"username": account.name, "admin": account.admin, "email": account.email}
    conn.execute(insert(table), {**values, "password_hash": account.password_hash})
    audit.note(conn, "user.added", account.name, account.name, act, detail="administrator" if account.admin else "")


def change(conn: Connection, name: str, to: UserUpdate, act: Act, *, session: str) -> Account:
    """Change what is given; the user as they are now. Raises NoSuchUser.

    With a new password all tokens of the user end, and what application tokens made, but for ``session``, the digest
    of the token that asks.
    """
    kept = _require(conn, name)
    new = replace(kept, **to.given())
    conn.execute(_UPDATE.values(admin=new.admin, email=new.email, password_hash=new.password_hash), {"username_": name})
    if to.password_hash is not None:
        _end_tokens(conn, name, act, session)
    changed = [field for field in to.given() if field == "password_hash" or to.given()[field] != getattr(kept, field)]
    said = {"admin": "administrator" if new.admin else "no administrator", "password_hash": "password"}
    detail = ", ".join(said.get(field, field) for field in changed)
    audit.note(conn, "user.changed", name, name, act, detail=detail)
    return new


def remove(conn: Connection, name: str, act: Act) -> None:
    """Remove a user and what lets them in. Raises NoSuchUser, UserHasJobs."""
    _require(conn, name)
    active = list(conn.execute(_ACTIVE, {"username_": name}).scalars())
    if active:
        more = "…" if len(active) > _SHOWN else ""
        raise UserHasJobs(
            f"{name} has {len(active)} jobs that have not ended: {', '.join(active[:_SHOWN])}{more}.",
            hint="Stop them first, or lock the user out meanwhile: `pai keys lock-out`.",
        )
    _end_tokens(conn, name, act)
    keys.replace_keys(conn, name, [], act)
    for certificate in certificates.living(conn, name, act.at):
        certificates.revoke(conn, name, certificate.serial, act)
    for share in sharing.with_user(conn, name, act.at):
        sharing.end(conn, share.job, name, act)
    conn.execute(_DELETE, {"username_": name})
    audit.note(conn, _REMOVED, name, name, act)


def _end_tokens(conn: Connection, name: str, act: Act, session: str = "") -> None:
    for digest in conn.execute(_TOKENS, {"username_": name}).scalars().all():
        if digest != session:
            tokens.remove_token(conn, name, digest, act)


def _require(conn: Connection, name: str) -> Account:
    row = conn.execute(_ONE, {"username_": name}).one_or_none()
    if row is None:
        raise NoSuchUser(f"There is no user {name[:100]!r} that can be changed.", hint="`pai user list` shows all.")
    return _account(row)


def _account(row: AnyRow) -> Account:
    return Account(row.username, row.admin, row.email, row.password_hash)
