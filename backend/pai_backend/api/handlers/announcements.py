"""What administrators announce to all users."""

from __future__ import annotations

from pai_backend.api.announcement_wire import Announced, NewAnnouncement
from pai_backend.api.base import ApiHandler
from pai_backend.api.operation import Operation, operation
from pai_backend.api.services.announcements import AnnouncementService
from pai_backend.model.errors import Forbidden
from pai_backend.model.scope import Scope


class AnnouncementHandler(ApiHandler):
    """``/api/v2/announcement``."""

    @classmethod
    def scope_of(cls, verb: str) -> Scope:
        """Any user reads it."""
        return Scope.READ if verb in ("get", "head") else Scope.ADMIN

    @operation(Operation("What is announced to all users now.", answer=Announced))
    async def get(self) -> Announced:
        """One text, or none."""
        return await AnnouncementService(self.ctx).current()

    @operation(
        Operation(
            "Announce a text to all users, in place of the present one; for administrators.",
            body=NewAnnouncement,
            answer=Announced,
            raises=(Forbidden,),
            audit="announcement.made",
            told_by_store=True,
        )
    )
    async def put(self, body: NewAnnouncement) -> Announced:
        """It is shown until it ends."""
        return await AnnouncementService(self.ctx, self.request.remote_ip or "").announce(self.user, body)

    @operation(
        Operation(
            "Announce nothing; for administrators.",
            status=204,
            raises=(Forbidden,),
            audit="announcement.ended",
            told_by_store=True,
        )
    )
    async def delete(self) -> None:
        """Also when nothing was announced."""
        await AnnouncementService(self.ctx, self.request.remote_ip or "").end(self.user)
