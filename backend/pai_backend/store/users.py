"""Users whom administrators add, change and remove while the backend runs.

Every change is written with its event in the audit. With a user goes what lets them in: tokens, keys, certificates and
what others share with them; their secrets; and their workspace names, templates and drafts, unless another user gets
these. Their jobs that have ended and their files stay.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BindParameter, Connection, bindparam, delete, exists, func, insert, or_, select, update

from pai_backend.model.account import Account
from pai_backend.model.errors import InvalidParameters, NoSuchUser, UserExists, UserHasJobs
from pai_backend.model.job import State
from pai_backend.model.text import Text
from pai_backend.store import addresses as addresses_
from pai_backend.store import (
    audit,
    certificates,
    groups,
    kept_documents,
    keys,
    notifications,
    sharing,
    tokens,
    user_secrets,
)
from pai_backend.store.grants import Act, Holdings, UserUpdate
from pai_backend.store.kept_documents import DocumentKind
from pai_backend.store.people_tables import access_tokens, audit_events, external_users, user_keys
from pai_backend.store.people_tables import accounts as configured
from pai_backend.store.people_tables import kept_documents as kept_documents_
from pai_backend.store.people_tables import users as table
from pai_backend.store.rows import Values
from pai_backend.store.tables import addresses, jobs

_REMOVED = "user.removed"

_NAME: BindParameter[str] = bindparam("username_")
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
        exists().where(audit_events.c.username == _NAME, audit_events.c.type == _REMOVED),
    )
)
_UPDATE = update(table).where(table.c.username == _NAME)
_DELETE = delete(table).where(table.c.username == _NAME)
_UNBIND = delete(external_users).where(external_users.c.username == _NAME)
_FINAL = tuple(state.value for state in State if state.final)
_ACTIVE = select(jobs.c.name).where(jobs.c.username == _NAME, jobs.c.state.not_in(_FINAL)).order_by(jobs.c.uid)
_TOKENS = select(access_tokens.c.digest).where(access_tokens.c.username == _NAME)
_ENDED = select(func.count()).where(jobs.c.username == _NAME, jobs.c.state.in_(_FINAL))
_ADDRESSES = select(addresses.c.name).where(addresses.c.username == _NAME).order_by(addresses.c.name)
_DOCUMENTS = select(kept_documents_.c.kind + " " + kept_documents_.c.name).where(kept_documents_.c.username == _NAME)
_KEPT = (
    select(kept_documents_.c.kind, func.count().label("number"))
    .where(kept_documents_.c.username == _NAME)
    .group_by(kept_documents_.c.kind)
)
_KEYS = select(func.count()).select_from(user_keys).where(user_keys.c.username == _NAME)
_SHOWN = 3  # names of jobs in an error


def require_addable(conn: Connection, account: Account, *, again: bool) -> None:
    """Raise UserExists, also for a name that a removed user had, unless ``again``, and NoSuchGroup.

    Names that differ in case alone are one: they name directories, and some file systems do not tell them apart.
    """
    asked = {"username_": account.name}
    if conn.execute(_IS_TAKEN, asked).scalar_one():
        raise UserExists(
            Text("There is a user {account}, in this or in another case.", account=account.name),
            hint=Text("`pai user set` changes one who was added."),
        )
    if not again and conn.execute(_HAS_PAST, asked).scalar_one():
        raise UserExists(
            Text("There has been a user {account}, whose jobs and files the new one would have.", account=account.name),
            hint=Text("Take another name, or `pai user add --again` for the same person."),
        )
    groups.require_known(conn, account.groups)


def add(conn: Connection, account: Account, act: Act, *, again: bool) -> None:
    """Add a user. Raises as :func:`require_addable`."""
    require_addable(conn, account, again=again)
    values: Values = {"username": account.name, "admin": account.admin, "email": account.email}
    groups.forget_user(conn, account.name)  # of an earlier user of the configuration
    groups.put_memberships(conn, account.name, account.groups)
    groups.put_grants(conn, "user", account.name, account.own)
    values |= {"password_hash": account.password_hash, "must_change_password": account.must_change_password}
    conn.execute(insert(table), values)
    audit.note(conn, "user.added", account.name, account.name, act, detail="administrator" if account.admin else "")


def change(conn: Connection, name: str, to: UserUpdate, act: Act, *, session: str) -> None:
    """Change what is given: of a user of the configuration groups and grants only. Raises NoSuchUser, NoSuchGroup.

    With a new password all tokens of the user end, and what application tokens made, but for ``session``, the digest
    of the token that asks.
    """
    profile, said = to.profile(), []
    if profile:
        kept = _require(conn, name)
        conn.execute(_UPDATE.values(**profile), {"username_": name})
        words = {
            "admin": "administrator" if to.admin else "no administrator",
            "password_hash": "password",
            "must_change_password": "to be changed",
        }
        changed = (each for each in profile if each == "password_hash" or profile[each] != getattr(kept, each))
        said += [words.get(each, each) for each in changed]
    if to.password_hash is not None:
        _end_tokens(conn, name, act, session)
    if to.groups is not None:
        groups.put_memberships(conn, name, to.groups)
        said.append(f"groups: {' '.join(to.groups) or 'none'}")
    if to.grants is not None:
        groups.put_grants(conn, "user", name, to.grants)
        said.append(f"virtual clusters: {' '.join(sorted(to.grants.use)) or 'none'}")
        said += [f"manages: {' '.join(sorted(to.grants.manages))}"] if to.grants.manages else []
    audit.note(conn, "user.changed", name, name, act, detail=", ".join(said))


def holdings(conn: Connection, name: str, now: datetime) -> Holdings:
    """What belongs to a user, or lets them in, now."""
    asked = {"username_": name}
    kept = {row.kind: row.number for row in conn.execute(_KEPT, asked)}
    return Holdings(
        active_jobs=tuple(conn.execute(_ACTIVE, asked).scalars()),
        ended_jobs=conn.execute(_ENDED, asked).scalar_one(),
        addresses=tuple(conn.execute(_ADDRESSES, asked).scalars()),
        templates=kept.get(DocumentKind.TEMPLATE.value, 0),
        drafts=kept.get(DocumentKind.DRAFT.value, 0),
        keys=conn.execute(_KEYS, asked).scalar_one(),
        certificates=len(certificates.living(conn, name, now)),
        tokens=len(tokens.tokens_of(conn, name, now)),
        shares_given=len(sharing.by_user(conn, name, now)),
        shares_taken=len(sharing.with_user(conn, name, now)),
    )


def remove(conn: Connection, name: str, act: Act, *, heir: str = "") -> None:
    """Remove a user and what lets them in. Workspace names, templates and drafts go to ``heir``, or with the user.

    Raises NoSuchUser, UserHasJobs, InvalidParameters where the heir has something of the same name.
    """
    _require(conn, name)
    active = list(conn.execute(_ACTIVE, {"username_": name}).scalars())
    if active:
        more = "…" if len(active) > _SHOWN else ""
        raise UserHasJobs(
            Text(
                "{name} has {count} jobs that have not ended: {active}{more}.",
                name=name,
                count=len(active),
                active=", ".join(active[:_SHOWN]),
                more=more,
            ),
            hint=Text("Stop them first, for example by `pai user disable --stop-jobs`."),
        )
    _end_tokens(conn, name, act)
    keys.replace_keys(conn, name, [], act)
    for certificate in certificates.living(conn, name, act.at):
        certificates.revoke(conn, name, certificate.serial, act)
    for share in sharing.with_user(conn, name, act.at):
        sharing.end(conn, share.job, name, act)
    if heir:
        _hand_over(conn, name, heir)
    notifications.forget_user(conn, name, act)
    addresses_.forget_user(conn, name)
    kept_documents.forget_user(conn, name)
    user_secrets.forget_user(conn, name)
    groups.forget_user(conn, name)
    for forgetting in (_DELETE, _UNBIND):
        conn.execute(forgetting, {"username_": name})
    audit.note(conn, _REMOVED, name, name, act, detail=f"heir: {heir}" if heir else "")


def _hand_over(conn: Connection, name: str, heir: str) -> None:
    """Give all that has a name and is not a right to another user. Raises InvalidParameters for a name taken there."""
    for kind, names in (("workspace name", _ADDRESSES), ("template or draft", _DOCUMENTS)):
        mine, theirs = (set(conn.execute(names, {"username_": each}).scalars()) for each in (name, heir))
        for taken in sorted(mine & theirs):
            raise InvalidParameters(
                Text("{heir} has a {kind} {taken}, too.", heir=heir, kind=kind, taken=taken),
                hint=Text("Rename or remove one of the two, or choose another user."),
            )
    for table_ in (addresses, kept_documents_):
        conn.execute(update(table_).where(table_.c.username == _NAME).values(username=heir), {"username_": name})


def _end_tokens(conn: Connection, name: str, act: Act, session: str = "") -> None:
    for digest in conn.execute(_TOKENS, {"username_": name}).scalars().all():
        if digest != session:
            tokens.remove_token(conn, name, digest, act)


def _require(conn: Connection, name: str) -> Account:
    row = conn.execute(_ONE, {"username_": name}).one_or_none()
    if row is None:
        raise NoSuchUser(
            Text("There is no user {name} that can be changed.", name=repr(name[:100])),
            hint=Text("`pai user list` shows all."),
        )
    return groups.account(row)
