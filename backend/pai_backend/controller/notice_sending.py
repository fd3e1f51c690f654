"""Sends one message by its channel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import aiosmtplib

from pai_backend.controller.notice_bodies import JSON, mail, posted, refusal
from pai_backend.controller.posting import Poster, PostFailed
from pai_backend.model.notification import Channel
from pai_backend.store.noticing import Message

SMTP_S = 30.0
"""For a whole mail."""
_LATER = (408, 425, 429)
"""Statuses below 500 that ask for another try."""
_MAIL_TAKEN_BACK = 500
"""From this code of a reply on another try does not help (RFC 5321 §4.2.1)."""


class NotSent(Exception):
    """A message did not arrive; ``final``: another try would not help."""

    def __init__(self, why: str, *, final: bool = False) -> None:
        super().__init__(why)
        self.final = final


@dataclass(frozen=True)
class MailServer:
    """Where mail is handed over, and whom it is from."""

    host: str
    port: int
    security: Literal["starttls", "tls", "none"]
    sender: str
    user: str = ""
    password: str = ""


class NoticeSender:
    """Sends messages; ``server``: None where no mail is sent."""

    def __init__(self, poster: Poster, server: MailServer | None, clock: Callable[[], datetime]) -> None:
        self._poster, self._server, self._clock = poster, server, clock

    async def send(self, message: Message, id_: str) -> None:
        """Send it once, under this identity. Raises NotSent."""
        if message.to.channel is Channel.MAIL:
            await self._mail(message, id_)
        else:
            await self._post(message, id_)

    async def _post(self, message: Message, id_: str) -> None:
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

    async def _mail(self, message: Message, id_: str) -> None:
        server = self._server
        if server is None:
            raise NotSent("this backend sends no mail any more")
        made = mail(message.target.to, server.sender, id_, message.notices, self._clock())
        try:
            await aiosmtplib.send(
                made,
                hostname=server.host,
                port=server.port,
                username=server.user or None,
                password=server.password or None,
                local_hostname=server.sender.rpartition("@")[2].rstrip(">"),  # else it looks our own name up, and waits
                use_tls=server.security == "tls",
                start_tls=server.security == "starttls",
                timeout=SMTP_S,
            )
        except aiosmtplib.SMTPRecipientsRefused as error:
            raise _refused(error.recipients[0]) from None
        except aiosmtplib.SMTPDataError as error:
            raise _refused(error) from None
        except (
            aiosmtplib.SMTPException
        ) as error:  # what concerns the server and not this mail: sign-in, TLS, a lost line
            raise NotSent(_words(error)) from None
        except (OSError, ValueError) as error:
            raise NotSent(str(error) or type(error).__name__) from None


def _refused(reply: aiosmtplib.SMTPResponseException) -> NotSent:
    return NotSent(_words(reply), final=reply.code >= _MAIL_TAKEN_BACK)


def _words(error: aiosmtplib.SMTPException) -> str:
    """Of one line: a server may answer with several."""
    if isinstance(error, aiosmtplib.SMTPAuthenticationError):
        return f"the mail server refuses the backend's sign-in ({error.code})"  # its text may hold what was sent
    if isinstance(error, aiosmtplib.SMTPResponseException):
        return f"the mail server answers {error.code} {' '.join(str(error.message).split())}"[:200]
    return f"the mail server: {' '.join(str(error).split()) or type(error).__name__}"[:200]
