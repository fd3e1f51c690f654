"""Sends one message by its channel."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from email.message import EmailMessage
from typing import Protocol

from pai_backend.controller.notice_bodies import JSON, mail, posted, refusal
from pai_backend.controller.posting import Poster, PostFailed
from pai_backend.model.notification import Channel
from pai_backend.store.noticing import NoticeMessage

_LATER = (408, 425, 429)
"""Statuses below 500 that ask for another try."""


class NotSent(Exception):
    """A message did not arrive; ``final``: another try would not help."""

    def __init__(self, why: str, *, final: bool = False) -> None:
        super().__init__(why)
        self.final = final


class Mailer(Protocol):
    """What hands mail over (``mailing``)."""

    @property
    def sender(self) -> str:
        """Whom mail is from."""
        ...

    async def send(self, made: EmailMessage) -> None:
        """Hand a mail over once. Raises NotSent."""
        ...


class NoticeSender:
    """Sends messages; ``mailer``: None where no mail is sent."""

    def __init__(self, poster: Poster, mailer: Mailer | None, clock: Callable[[], datetime]) -> None:
        self._poster, self._mailer, self._clock = poster, mailer, clock

    async def send(self, message: NoticeMessage, id_: str) -> None:
        """Send it once, under this identity. Raises NotSent."""
        if message.to.channel is not Channel.MAIL:
            await self._post(message, id_)
        elif self._mailer is None:
            raise NotSent("this backend sends no mail any more")
        else:
            made = mail(message.target.to, self._mailer.sender, id_, message.notices, self._clock())
            await self._mailer.send(made)

    async def _post(self, message: NoticeMessage, id_: str) -> None:
        channel = message.to.channel
        request = posted(channel, message.target, id_, message.notices, self._clock())
        try:
            answer = await self._poster.post(
                request.url, request.body, JSON, secret=request.secret, headers=request.headers
            )
        except PostFailed as error:
            raise NotSent(str(error)) from None
        if not 200 <= answer.code < 300:
            final = 300 <= answer.code < 500 and answer.code not in _LATER
            raise NotSent(f"it answers {answer.code}", final=final)
        refused = refusal(channel, answer.body)
        if refused:
            raise NotSent(refused)
