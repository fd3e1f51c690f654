"""Workspace names."""

from __future__ import annotations

from pai_backend.api.address_wire import AddressList
from pai_backend.api.base import ALL_VERBS, ApiHandler
from pai_backend.api.operation import Operation, operation
from pai_backend.api.services.addresses import AddressesService
from pai_backend.model.errors import NoSuchAddress, ReadOnlyJob


class AddressesHandler(ApiHandler):
    """``/api/v2/addresses``."""

    @operation(Operation("Workspace names of the caller, and which job holds each.", answer=AddressList))
    async def get(self) -> AddressList:
        """The names."""
        return await AddressesService(self.ctx).list(self.user)


class OneAddressHandler(ApiHandler):
    """``/api/v2/addresses/{address}``."""

    users_own = ALL_VERBS

    @operation(
        Operation(
            "Release a workspace name of the caller.",
            audit="address.released",
            status=204,
            raises=(NoSuchAddress, ReadOnlyJob),
        )
    )
    async def delete(self, address: str) -> None:
        """Nothing is answered."""
        await AddressesService(self.ctx).release(self.user, address)
