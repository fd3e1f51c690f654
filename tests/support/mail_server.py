"""A real SMTP server for tests, which takes what it is told to take."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from threading import Thread

from aiosmtpd.smtp import SMTP, Envelope, Session


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
async def mail_server() -> AsyncIterator[MailServer]:
    """One on a free port of loopback."""
    taking = MailServer()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(taking, loop=loop, hostname="mail.example.org"), "127.0.0.1", 0)
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
