"""Budgets as they are set; ``budgeting`` has what of each is used."""

from __future__ import annotations

import secrets
from dataclasses import replace

from sqlalchemy import Connection, delete, func, insert, select

from pai_backend.model.accounting import HOUR_US
from pai_backend.model.budget import Budget, Level, Per, Resource, Scope
from pai_backend.model.errors import InvalidParameters
from pai_backend.model.price import exact
from pai_backend.model.text import Text
from pai_backend.store import audit
from pai_backend.store.grants import Act
from pai_backend.store.people_tables import budgets as table
from pai_backend.store.prices import all_prices
from pai_backend.store.rows import AnyRow

MOST = 1000
"""Budgets there may be: all are looked at together."""

_ORDER = (table.c.groupname, table.c.virtual_cluster, table.c.username, table.c.resource, table.c.per)


def new_id() -> str:
    """One that no budget has."""
    return secrets.token_hex(4)


def all_budgets(conn: Connection) -> list[Budget]:
    """All of them, in a steady order."""
    return [_budget(row) for row in conn.execute(select(table).order_by(*_ORDER))]


def put(conn: Connection, new: Budget, act: Act, *, keep_since: bool) -> Budget:
    """Set it in place of one of the same scope, resource and period, whose id stays.

    With ``keep_since`` its beginning stays, too. Users are warned of it again. Raises InvalidParameters for one too
    many.
    """
    same = (
        (table.c.username == new.scope.user)
        & (table.c.groupname == new.scope.group)
        & (table.c.virtual_cluster == new.scope.virtual_cluster)
        & (table.c.resource == new.resource.value)
        & (table.c.per == new.per.value)
    )
    row = conn.execute(select(table).where(same)).one_or_none()
    if row is None and conn.execute(select(func.count()).select_from(table)).scalar_one() >= MOST:
        raise InvalidParameters(
            Text("There are {most} budgets, which is the limit.", most=MOST), hint=Text("Remove those not needed.")
        )
    kept = new if row is None else replace(new, id=row.id, since=row.since if keep_since else new.since)
    conn.execute(delete(table).where(same))
    conn.execute(insert(table), _values(kept))
    audit.note(
        conn, "budget.set", new.scope.user or act.by, str(new.scope), act, detail=_said(kept, all_prices(conn).currency)
    )
    return kept


def remove(conn: Connection, id_: str, act: Act) -> None:
    """Remove it. Idempotent."""
    row = conn.execute(select(table).where(table.c.id == id_)).one_or_none()
    if row is not None:
        _drop(conn, _budget(row), act)


def end_of_group(conn: Connection, group: str, act: Act) -> None:
    """Remove the budgets of a group that is removed: a later group of its name has none."""
    for row in conn.execute(select(table).where(table.c.groupname == group)).all():
        _drop(conn, _budget(row), act)


def _drop(conn: Connection, budget: Budget, act: Act) -> None:
    conn.execute(delete(table).where(table.c.id == budget.id))
    said = _said(budget, all_prices(conn).currency)
    audit.note(conn, "budget.removed", budget.scope.user or act.by, str(budget.scope), act, detail=said)


def _budget(row: AnyRow) -> Budget:
    return Budget(
        row.id,
        Scope(row.username, row.groupname, row.virtual_cluster),
        Resource(row.resource),
        Per(row.per),
        row.amount,
        row.warn_percent,
        row.since,
        row.changed_at,
        row.changed_by,
    )


def _values(budget: Budget) -> dict[str, object]:
    return {
        "id": budget.id,
        "username": budget.scope.user,
        "groupname": budget.scope.group,
        "virtual_cluster": budget.scope.virtual_cluster,
        "resource": budget.resource.value,
        "per": budget.per.value,
        "amount": budget.limit,
        "warn_percent": budget.warn_percent,
        "since": budget.since,
        "changed_at": budget.changed_at,
        "changed_by": budget.changed_by,
        "told_window": None,
        "told_level": Level.OK.value,
    }


def _said(budget: Budget, currency: str) -> str:
    amount = f"{budget.limit / HOUR_US:g} {budget.resource.upper()} hours"
    if budget.resource is Resource.MONEY:
        amount = f"{exact(budget.limit)} {currency}"
    return f"{amount} {'each month' if budget.per is Per.MONTH else 'in total'}, warns at {budget.warn_percent} %"
