"""Notifications of users about their jobs."""

from __future__ import annotations

from pai_backend.api.base import ALL_VERBS, ApiHandler
from pai_backend.api.notification_wire import NewNotification, NotificationList, NotificationWire
from pai_backend.api.operation import Operation, operation
from pai_backend.api.services.notifications import NotificationService
from pai_backend.model.errors import Forbidden, InvalidParameters, NoSuchNotification


class _NotificationHandler(ApiHandler):
    """Notices leave the backend, so a token that only reads adds no notification: the scope is that of all changes."""

    @property
    def notifications(self) -> NotificationService:
        """The service, which knows where the request came from."""
        return NotificationService(self.ctx, self.request.remote_ip or "")


class NotificationsHandler(_NotificationHandler):
    """``/api/v2/notifications``."""

    users_own = ALL_VERBS

    @operation(Operation("The caller's notifications about their jobs.", answer=NotificationList))
    async def get(self) -> NotificationList:
        """Oldest first."""
        return await self.notifications.of(self.user)

    @operation(
        Operation(
            "Notify the caller about their jobs, by mail, a webhook or a chat.",
            body=NewNotification,
            answer=NotificationWire,
            status=201,
            raises=(InvalidParameters, Forbidden),
            audit="notification.added",
            told_by_store=True,
        )
    )
    async def post(self, new: NewNotification) -> NotificationWire:
        """It has what happens from now on."""
        return await self.notifications.add(self.user, new)


class OneNotificationHandler(_NotificationHandler):
    """``/api/v2/notifications/{notification}``."""

    users_own = ALL_VERBS

    @operation(
        Operation(
            "Remove a notification of the caller.",
            status=204,
            raises=(NoSuchNotification,),
            audit="notification.removed",
            told_by_store=True,
        )
    )
    async def delete(self, notification: str) -> None:
        """What is on its way is not sent any more."""
        await self.notifications.remove(self.user, notification)


class NotificationTestHandler(_NotificationHandler):
    """``/api/v2/notifications/{notification}/test``."""

    users_own = ALL_VERBS

    @operation(
        Operation(
            "Have a test message sent, within seconds.",
            status=202,
            raises=(NoSuchNotification,),
            audit="notification.tested",
        )
    )
    async def post(self, notification: str) -> None:
        """Whether it arrives is seen in the list."""
        await self.notifications.test(self.user, notification)
