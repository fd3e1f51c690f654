"""What administrators announce to all users."""

from __future__ import annotations

from datetime import timedelta

from pai_backend.api.announcement_wire import Announced, AnnouncementWire, NewAnnouncement
from pai_backend.api.context import ApiContext
from pai_backend.api.services.rights import require_administrator
from pai_backend.auth.users import User
from pai_backend.store.announcements import Announcement
from pai_backend.store.grants import Act


class AnnouncementService:
    """Announcements. ``source`` is the address that the caller's request came from, for the audit."""

    def __init__(self, ctx: ApiContext, source: str = "") -> None:
        self._ctx, self._source = ctx, source

    async def current(self) -> Announced:
        """What is announced now, to any user."""
        found = await self._ctx.store.announcements.current(self._ctx.clock())
        return Announced(announcement=None if found is None else AnnouncementWire.model_validate(vars(found)))

    async def announce(self, user: User, new: NewAnnouncement) -> Announced:
        """Announce this in place of what was announced. Raises Forbidden."""
        require_administrator(user)
        act = self._act(user)
        begins = max(act.at, new.no_starts_from or act.at)
        until = None if new.lifetime_s is None else begins + timedelta(seconds=new.lifetime_s)
        kept = Announcement(new.text, until, act.by, act.at, new.no_starts_from)
        await self._ctx.store.announcements.announce(kept, act)
        return await self.current()

    async def end(self, user: User) -> None:
        """Announce nothing, also when nothing was announced. Raises Forbidden."""
        require_administrator(user)
        await self._ctx.store.announcements.end(self._act(user))

    def _act(self, user: User) -> Act:
        return Act(user.name, self._ctx.clock(), self._source)
