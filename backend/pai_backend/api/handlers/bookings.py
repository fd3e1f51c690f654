"""Reservations of GPUs."""

from __future__ import annotations

from pai_backend.api.base import ApiHandler
from pai_backend.api.booking_wire import BookingList, BookingWire, NewBooking
from pai_backend.api.operation import Operation, operation
from pai_backend.api.services.bookings import BookingService
from pai_backend.model.errors import Forbidden, InvalidParameters, NoSuchGroup, NoSuchUser, NoVirtualCluster
from pai_backend.model.scope import Scope


class _BookingHandler(ApiHandler):
    @classmethod
    def scope_of(cls, verb: str) -> Scope:
        """Who may use the virtual cluster reads them."""
        return Scope.READ if verb in ("get", "head") else Scope.ADMIN

    @property
    def bookings(self) -> BookingService:
        """The service, for this request."""
        return BookingService(self.ctx, self.request.remote_ip or "")


class BookingsHandler(_BookingHandler):
    """``/api/v2/reservations``."""

    @operation(Operation("GPUs that are reserved for a time.", answer=BookingList))
    async def get(self) -> BookingList:
        """In virtual clusters that the caller may use or manages."""
        return await self.bookings.bookings(self.user)

    @operation(
        Operation(
            "Reserve GPUs of a virtual cluster; for its managers and administrators.",
            body=NewBooking,
            answer=BookingWire,
            status=201,
            raises=(Forbidden, InvalidParameters, NoSuchGroup, NoSuchUser, NoVirtualCluster),
            audit="reservation.made",
            told_by_store=True,
        )
    )
    async def post(self, new: NewBooking) -> BookingWire:
        """It holds at once, for what starts from now on."""
        return await self.bookings.add(self.user, new)


class OneBookingHandler(_BookingHandler):
    """``/api/v2/reservations/{reservation}``."""

    @operation(
        Operation(
            "Remove a reservation; for who may make it.",
            status=204,
            raises=(Forbidden, InvalidParameters),
            audit="reservation.removed",
            told_by_store=True,
        )
    )
    async def delete(self, reservation: str) -> None:
        """What waited for it starts."""
        await self.bookings.remove(self.user, reservation)
