"""What of each budget is used, by the ledger of stays, and whom that was told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from functools import partial

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    and_,
    case,
    func,
    or_,
    select,
    type_coerce,
    update,
)

from pai_backend.model.account import ADMINS, EVERYONE, Directory
from pai_backend.model.accounting import Total
from pai_backend.model.budget import Budget, BudgetUse, Claim, Resource, Scope, use, window
from pai_backend.model.ids import JobUid
from pai_backend.model.price import CPU
from pai_backend.store import accounts, events, groups, lease
from pai_backend.store import budgets as rows
from pai_backend.store.base import NewEvent
from pai_backend.store.columns import Instant
from pai_backend.store.grants import Act
from pai_backend.store.people_tables import budgets as table
from pai_backend.store.people_tables import prices
from pai_backend.store.prices import all_prices
from pai_backend.store.repository import Repository
from pai_backend.store.tables import stays


def uses(conn: Connection, now: datetime) -> list[BudgetUse]:
    """What of each budget is used now, of one snapshot of the database."""
    found = rows.all_budgets(conn)
    if not found:
        return []
    directory, admins = groups.directory(conn), accounts.all_admins(conn)
    tariff = all_prices(conn).at(now)
    claims = [Claim(each, window(each, now), _users(each.scope, directory, admins), tariff) for each in found]
    paid = {claim.window.begin for claim in claims if claim.budget.resource is Resource.MONEY}
    held = {begin: held_since(conn, begin, now) for begin in {claim.window.begin for claim in claims}}
    for begin in paid:
        for key, cost in spent_since(conn, begin, now).items():
            held[begin][key] += Total(cost=cost)
    return [use(claim, held[claim.window.begin]) for claim in claims]


def held_since(conn: Connection, begin: datetime, now: datetime) -> dict[tuple[str, str], Total]:
    """What was held from ``begin`` until ``now``, by user and virtual cluster, without its cost.

    Added up by the database, in whole numbers: as ``accounting.totals`` would of the same stays.
    """
    first, last, touches = _within(conn, begin, now)
    asked = (
        select(
            stays.c.username,
            stays.c.virtual_cluster,
            func.sum(stays.c.gpus * (last - first)).label("gpu_us"),
            func.sum(stays.c.cpus * (last - first)).label("cpu_us"),
        )
        .where(touches)
        .group_by(stays.c.username, stays.c.virtual_cluster)
    )
    return {(row.username, row.virtual_cluster): Total(int(row.gpu_us), int(row.cpu_us)) for row in conn.execute(asked)}


def spent_since(conn: Connection, begin: datetime, now: datetime) -> dict[tuple[str, str], int]:
    """The cost of that, each moment at the price of its time.

    The database adds up what was held at each price; multiplied here, since that may not fit into its numbers.
    """
    since = type_coerce(prices.c.since, BigInteger)
    next_ = func.lead(since).over(partition_by=prices.c.kind, order_by=since)
    steps = select(prices.c.kind, prices.c.hourly, since.label("since"), next_.label("until")).subquery()
    first, last, touches = _within(conn, begin, now)
    first = case((steps.c.since > first, steps.c.since), else_=first)
    last = case((steps.c.until < last, steps.c.until), else_=last)
    units = case((stays.c.gpus > 0, stays.c.gpus), else_=stays.c.cpus)
    kind = case((stays.c.gpus > 0, stays.c.gpu_type), else_=CPU)
    asked = (
        select(
            stays.c.username, stays.c.virtual_cluster, steps.c.hourly, func.sum(units * (last - first)).label("held_us")
        )
        .join(steps, kind == steps.c.kind)
        .where(touches, first < last, steps.c.hourly > 0)
        .group_by(stays.c.username, stays.c.virtual_cluster, steps.c.hourly)
    )
    found = defaultdict[tuple[str, str], int](int)
    for row in conn.execute(asked):
        found[row.username, row.virtual_cluster] += int(row.held_us) * row.hourly
    return found


def _within(
    conn: Connection, begin: datetime, now: datetime
) -> tuple[ColumnElement[int], ColumnElement[int], ColumnElement[bool]]:
    """When the part of a stay between two moments begins and ends, and whether it has one."""
    begin_us, now_us = (Instant().process_bind_param(at, conn.dialect) or 0 for at in (begin, now))
    since, until = type_coerce(stays.c.began_at, BigInteger), type_coerce(stays.c.ended_at, BigInteger)
    first = case((since < begin_us, begin_us), else_=since)
    last = case((until.is_(None), now_us), (until > now_us, now_us), else_=until)
    return first, last, and_(since < now_us, or_(until.is_(None), until > begin_us))


def tell(conn: Connection, each: BudgetUse, jobs: Sequence[JobUid], new: NewEvent, at: datetime, epoch: int) -> bool:
    """Note that users were warned of this level of the budget, with an event of each job, once in each window.

    False: it was noted before, or the budget has been changed. Raises Fenced.
    """
    lease.require(conn, epoch)
    budget, begin, level = each.claim.budget, each.claim.window.begin, each.level.value
    untold = or_(table.c.told_window.is_(None), table.c.told_window != begin, table.c.told_level < level)
    row = update(table).where(table.c.id == budget.id, table.c.changed_at == budget.changed_at, untold)
    if not conn.execute(row.values(told_window=begin, told_level=level)).rowcount:
        return False
    for uid in jobs:
        events.note(conn, uid, [new], at)
    return True


def _put(conn: Connection, new: Budget, act: Act, *, keep_since: bool) -> Budget:
    if new.scope.group not in ("", EVERYONE, ADMINS):
        groups.require_known(conn, [new.scope.group])
    return rows.put(conn, new, act, keep_since=keep_since)


class Budgets(Repository):
    """Budgets. What is set counts at once."""

    async def all(self) -> list[Budget]:
        """All of them, in a steady order."""
        return await self._database.read(rows.all_budgets)

    async def uses(self, now: datetime) -> list[BudgetUse]:
        """What of each budget is used now."""
        return await self._database.read(partial(uses, now=now))

    async def put(self, new: Budget, act: Act, *, keep_since: bool) -> Budget:
        """Set it in place of one of the same scope, resource and period. Raises NoSuchGroup, InvalidParameters.

        With ``keep_since`` the beginning of the former stays.
        """
        return await self._writer.run(partial(_put, new=new, act=act, keep_since=keep_since))

    async def remove(self, id_: str, act: Act) -> None:
        """Remove it. Idempotent."""
        await self._writer.run(partial(rows.remove, id_=id_, act=act))

    async def tell(self, each: BudgetUse, jobs: Sequence[JobUid], new: NewEvent, at: datetime, epoch: int) -> bool:
        """Note that users were warned, with an event of each of these jobs; False: they were before. Raises Fenced."""
        return await self._writer.run(partial(tell, each=each, jobs=jobs, new=new, at=at, epoch=epoch))


def _users(scope: Scope, directory: Directory, admins: frozenset[str]) -> frozenset[str] | None:
    if scope.user:
        return frozenset({scope.user})
    if scope.group in ("", EVERYONE):
        return None
    if scope.group == ADMINS:
        return admins
    group = directory.groups.get(scope.group)
    return frozenset() if group is None else frozenset(group.members)
