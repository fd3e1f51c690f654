"""A real SMTP server for tests, which takes what it is told to take."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from threading import Thread
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session


@dataclass
class MailServer:
    """``replies`` are given to the next recipients instead of being taken, in their order."""

    port: int = 0
    mails: list[EmailMessage] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    asked: int = 0

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Take a recipient, or refuse it as told."""
        self.asked += 1
        if self.replies:
            return self.replies.pop(0)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        """Take a mail."""
        assert isinstance(envelope.content, bytes)
        mail = message_from_bytes(envelope.content, _class=EmailMessage, policy=policy.default)
        assert mail["To"] == ", ".join(envelope.rcpt_tos)
        self.mails.append(mail)
        return "250 OK"


@asynccontextmanager
async def mail_server(
    tls: ssl.SSLContext | None = None, login: tuple[str, str] | None = None, *, from_first: bool = False
) -> AsyncIterator[MailServer]:
    """One on a free port of loopback.

    With ``tls`` it takes mail after STARTTLS alone, or ``from_first`` byte on; with ``login`` of that user alone.
    """
    taking = MailServer()
    loop = asyncio.get_running_loop()
    known: dict[str, Any] = {"loop": loop, "hostname": "mail.example.org"}
    if tls is not None and not from_first:
        known |= {"tls_context": tls, "require_starttls": True}
    if login is not None:

        def knows(
            server: SMTP, session: Session, envelope: Envelope, mechanism: str, given: LoginPassword
        ) -> AuthResult:
            known_to_it = (given.login.decode(), given.password.decode()) == login
            return AuthResult(success=known_to_it, handled=False)

        known |= {"authenticator": knows, "auth_required": True, "auth_require_tls": not from_first}
    wrapped = tls if from_first else None
    server = await loop.create_server(lambda: SMTP(taking, **known), "127.0.0.1", 0, ssl=wrapped)
    taking.port = server.sockets[0].getsockname()[1]
    try:
        yield taking
    finally:
        server.close()


@contextmanager
def mail_server_beside() -> Iterator[MailServer]:
    """As :func:`mail_server`, on a loop of its own, for tests without one."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    context = mail_server()
    try:
        yield asyncio.run_coroutine_threadsafe(context.__aenter__(), loop).result(60)
        asyncio.run_coroutine_threadsafe(context.__aexit__(None, None, None), loop).result(60)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
