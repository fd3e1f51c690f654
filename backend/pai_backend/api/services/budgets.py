"""Budgets: users see those that concern them; administrators set all, managers those in what they manage."""

from __future__ import annotations

from decimal import Decimal

from pai_backend.api.budget_wire import BudgetList, BudgetWire, NewBudget
from pai_backend.api.context import ApiContext
from pai_backend.api.services.keys import require_account
from pai_backend.auth.policy import administers
from pai_backend.auth.users import User
from pai_backend.model.accounting import HOUR_US
from pai_backend.model.budget import Budget, BudgetUse, Claim, Per, Resource, Scope, hours_us
from pai_backend.model.errors import Forbidden, InvalidParameters, NoVirtualCluster
from pai_backend.model.price import exact, millionths
from pai_backend.model.text import Text
from pai_backend.store.budgets import new_id
from pai_backend.store.grants import Act


class BudgetService:
    """Budgets. ``source`` is the address that the caller's request came from, for the audit."""

    def __init__(self, ctx: ApiContext, source: str = "") -> None:
        self._ctx, self._source = ctx, source

    async def budgets(self, user: User, *, at_once: bool = False) -> BudgetList:
        """Those that the caller may see, and what of each is used."""
        found = await self._ctx.budgets.uses(at_once=at_once)
        return BudgetList(data=tuple(_shown(each, user) for each in found if self._sees(user, each.claim)))

    async def put(self, user: User, new: NewBudget) -> BudgetWire:
        """Set one. Raises Forbidden, NoSuchGroup, NoSuchUser, NoVirtualCluster, InvalidParameters."""
        scope = Scope(new.user or "", new.group or "", new.virtual_cluster or "")
        self._require(user, scope)
        if scope.virtual_cluster and scope.virtual_cluster not in self._ctx.virtual_clusters:
            known = ", ".join(self._ctx.virtual_clusters)
            raise NoVirtualCluster(
                Text(
                    "The virtual cluster {virtual_cluster} does not exist.",
                    virtual_cluster=repr(scope.virtual_cluster[:100]),
                ),
                hint=Text("The virtual clusters are: {known}.", known=known),
            )
        if scope.user:
            await require_account(self._ctx, scope.user)
        act = self._act(user)
        since = new.since if new.since is not None else act.at
        budget = Budget(new_id(), scope, new.resource, new.per, _limit(new), new.warn_percent, since, act.at, act.by)
        kept = await self._ctx.store.budgets.put(budget, act, keep_since=new.since is None and new.per is Per.TOTAL)
        for each in await self._ctx.budgets.uses(at_once=True):
            if each.claim.budget.id == kept.id:
                return _shown(each, user)
        raise InvalidParameters(Text("The budget was removed meanwhile."), hint=Text("Set it again."))

    async def remove(self, user: User, id_: str) -> None:
        """Remove one. Raises Forbidden, and InvalidParameters for one that the caller does not see."""
        for each in await self._ctx.budgets.uses(at_once=True):
            if each.claim.budget.id == id_ and self._sees(user, each.claim):
                self._require(user, each.claim.budget.scope)
                await self._ctx.store.budgets.remove(id_, self._act(user))
                await self._ctx.budgets.uses(at_once=True)
                return
        raise InvalidParameters(
            Text("No budget has the id {id}.", id=repr(id_[:100])), hint=Text("`pai budget list` shows the ids.")
        )

    def _sees(self, user: User, claim: Claim) -> bool:
        scope = claim.budget.scope
        if _may_change(user, scope) or scope.user == user.name:
            return True
        theirs = claim.users is None or user.name in claim.users
        return theirs and (not scope.virtual_cluster or self._ctx.rules.granted(user, scope.virtual_cluster))

    def _require(self, user: User, scope: Scope) -> None:
        if not _may_change(user, scope):
            mine = ", ".join(sorted(user.manages))
            raise Forbidden(
                Text(
                    "The budget of the {scope} is set by administrators and by managers of {vc}.",
                    scope=scope,
                    vc=scope.virtual_cluster,
                )
                if scope.virtual_cluster
                else Text("The budget of the {scope} is set by administrators.", scope=scope),
                hint=Text("You may set budgets in: {mine}. Name one with --vc.", mine=mine)
                if mine
                else Text("Ask an administrator."),
            )

    def _act(self, user: User) -> Act:
        return Act(user.name, self._ctx.clock(), self._source)


def _may_change(user: User, scope: Scope) -> bool:
    if not scope.virtual_cluster:
        return user.admin and not user.within
    return administers(user, scope.virtual_cluster)


def _limit(new: NewBudget) -> int:
    return millionths(new.amount) if new.amount is not None else hours_us(Decimal(str(new.hours)))


def _shown(each: BudgetUse, user: User) -> BudgetWire:
    budget, window = each.claim.budget, each.claim.window
    is_money = budget.resource is Resource.MONEY
    return BudgetWire(
        id=budget.id,
        user=budget.scope.user or None,
        group=budget.scope.group or None,
        virtual_cluster=budget.scope.virtual_cluster or None,
        resource=budget.resource,
        per=budget.per,
        hours=None if is_money else budget.limit / HOUR_US,
        used_hours=None if is_money else each.used / HOUR_US,
        amount=exact(budget.limit) if is_money else None,
        used_amount=exact(each.used) if is_money else None,
        currency=each.claim.tariff.currency if is_money else None,
        level=each.level.word,
        warn_percent=budget.warn_percent,
        begins=window.begin,
        ends=window.end,
        changed_at=budget.changed_at,
        changed_by=budget.changed_by,
        may_change=_may_change(user, budget.scope),
    )
