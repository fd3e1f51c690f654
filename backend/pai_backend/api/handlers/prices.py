"""Prices of GPUs and CPUs."""

from __future__ import annotations

from pai_backend.api.base import ApiHandler
from pai_backend.api.operation import Operation, operation
from pai_backend.api.price_wire import NewPrice, PriceListWire
from pai_backend.api.services.prices import PriceService
from pai_backend.model.errors import Forbidden, InvalidParameters
from pai_backend.model.scope import Scope


class PricesHandler(ApiHandler):
    """``/api/v2/prices``."""

    @classmethod
    def scope_of(cls, verb: str) -> Scope:
        """All users read them."""
        return Scope.READ if verb in ("get", "head") else Scope.ADMIN

    @operation(Operation("What an hour of each GPU type costs, and from when on.", answer=PriceListWire))
    async def get(self) -> PriceListWire:
        """All, also those of the past and of the future."""
        return await PriceService(self.ctx).prices()

    @operation(
        Operation(
            "Set what an hour of a GPU type, or of a CPU, costs from a moment on, or end that; for administrators.",
            body=NewPrice,
            answer=PriceListWire,
            raises=(Forbidden, InvalidParameters),
            audit="price.set",
            told_by_store=True,
        )
    )
    async def put(self, new: NewPrice) -> PriceListWire:
        """It counts at once."""
        return await PriceService(self.ctx, self.request.remote_ip or "").put(self.user, new)
