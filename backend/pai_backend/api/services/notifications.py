"""Notifications of users about their jobs."""

from __future__ import annotations

from urllib.parse import urlsplit

from pai_backend.api.context import ApiContext
from pai_backend.api.notification_wire import NewNotification, NotificationList, NotificationWire
from pai_backend.auth.users import User
from pai_backend.model.errors import InvalidParameters
from pai_backend.model.notification import TEST_SENTENCE, Channel
from pai_backend.model.text import Text
from pai_backend.store.grants import Act
from pai_backend.store.notifications import DeliveryTarget, Notification, new_id


class NotificationService:
    """A user's notifications. ``source`` is the address that the caller's request came from, for the audit."""

    def __init__(self, ctx: ApiContext, source: str = "") -> None:
        self._ctx, self._source = ctx, source

    async def of(self, user: User) -> NotificationList:
        """The caller's."""
        found = await self._ctx.store.notifications.of_user(user.name)
        return NotificationList(data=tuple(map(_shown, found)))

    async def add(self, user: User, new: NewNotification) -> NotificationWire:
        """Notify the caller from now on. Raises InvalidParameters, Forbidden."""
        act, to = self._act(user), new.to.get_secret_value()
        if new.channel is Channel.MAIL:
            to = await self._mail_address(user, to)
        kept = Notification(
            new_id(),
            user.name,
            new.channel,
            to if new.channel is Channel.MAIL else str(urlsplit(to).hostname),
            frozenset(new.news),
            new.waited_s,
            act.at,
            user.maker,
        )
        await self._ctx.store.notifications.add(kept, DeliveryTarget(to=to, secret=new.secret.get_secret_value()), act)
        return _shown(kept)

    async def remove(self, user: User, id_: str) -> None:
        """Remove one of the caller's. Raises NoSuchNotification."""
        await self._ctx.store.notifications.remove(user.name, id_, self._act(user))

    async def test(self, user: User, id_: str) -> None:
        """Have a test sent. Raises NoSuchNotification."""
        await self._ctx.store.notifications.test(user.name, id_, TEST_SENTENCE, self._ctx.clock())

    async def _mail_address(self, user: User, to: str) -> str:
        """Where mail to this user may go. Raises InvalidParameters."""
        site = self._ctx.site
        if not site.sends_mail:
            raise InvalidParameters(
                Text("This backend sends no mail."),
                hint=Text("Choose another channel, or ask its administrator for smtp_host."),
            )
        account = await self._ctx.identity.accounts.get(user.name)
        to = to or (account.email if account is not None else "")
        if not to:
            raise InvalidParameters(
                Text("Your account has no mail address."), hint=Text("Say which: `pai notify add mail ADDRESS`.")
            )
        if site.mail_domains and to.rpartition("@")[2].lower() not in site.mail_domains:
            raise InvalidParameters(
                Text("This backend sends no mail to {to}.", to=to.rpartition("@")[2]),
                hint=Text("It does to {mail_domains}.", mail_domains=", ".join(site.mail_domains)),
            )
        return to

    def _act(self, user: User) -> Act:
        return Act(user.name, self._ctx.clock(), self._source)


def _shown(found: Notification) -> NotificationWire:
    return NotificationWire(
        id=found.id,
        channel=found.channel,
        place=found.place,
        news=tuple(sorted(found.news)),
        waited_s=found.waited_s,
        created_at=found.created_at,
        tried_at=found.tried_at,
        sent_at=found.sent_at,
        trouble=found.trouble,
        waiting=found.waiting,
        lost=found.lost,
    )
