"""Budgets of GPU and CPU hours."""

from __future__ import annotations

from pai_backend.api.base import ALL_VERBS, ApiHandler
from pai_backend.api.budget_wire import BudgetList, BudgetWire, NewBudget
from pai_backend.api.operation import Operation, operation
from pai_backend.api.services.budgets import BudgetService
from pai_backend.model.errors import Forbidden, InvalidParameters, NoSuchGroup, NoSuchUser, NoVirtualCluster
from pai_backend.model.scope import Scope


class _BudgetHandler(ApiHandler):
    users_own = ALL_VERBS

    @classmethod
    def scope_of(cls, verb: str) -> Scope:
        """Whom they concern reads them."""
        return Scope.READ if verb in ("get", "head") else Scope.ADMIN

    @property
    def budgets(self) -> BudgetService:
        """The service, for this request."""
        return BudgetService(self.ctx, self.request.remote_ip or "")


class BudgetsHandler(_BudgetHandler):
    """``/api/v2/budgets``."""

    @operation(Operation("Budgets that concern the caller, and what of each is used.", answer=BudgetList))
    async def get(self) -> BudgetList:
        """All for an administrator."""
        return await self.budgets.budgets(self.user)

    @operation(
        Operation(
            "Set a budget; for administrators, and managers of its virtual cluster.",
            body=NewBudget,
            answer=BudgetWire,
            raises=(Forbidden, InvalidParameters, NoSuchGroup, NoSuchUser, NoVirtualCluster),
            audit="budget.set",
            told_by_store=True,
        )
    )
    async def put(self, new: NewBudget) -> BudgetWire:
        """It counts at once."""
        return await self.budgets.put(self.user, new)


class OneBudgetHandler(_BudgetHandler):
    """``/api/v2/budgets/{budget}``."""

    @operation(
        Operation(
            "Remove a budget; for who may set it.",
            status=204,
            raises=(Forbidden, InvalidParameters),
            audit="budget.removed",
            told_by_store=True,
        )
    )
    async def delete(self, budget: str) -> None:
        """What waited for it starts."""
        await self.budgets.remove(self.user, budget)
