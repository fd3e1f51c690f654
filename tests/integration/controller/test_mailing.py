"""Mail is handed over to real servers: encrypted or not at all, and errors do not have the password."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pytest

from pai_backend.controller.mailing import MailServer
from pai_backend.controller.notice_bodies import mail
from pai_backend.controller.notice_sending import NotSent
from pai_backend.model.notification import News, Notice
from tests.support.certificates import Authority
from tests.support.mail_server import MailServer as Takes
from tests.support.mail_server import mail_server

pytestmark = pytest.mark.asyncio

NOW = datetime(2026, 11, 28, tzinfo=UTC)
USER, PASSWORD = "pai", "s3cret-password"
Security = Literal["starttls", "tls", "none"]


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """Of a server whose authority the backend trusts as it trusts those of its system."""
    authority = Authority()
    authority.write(tmp_path / "tls.crt", tmp_path / "tls.key", "localhost")
    (tmp_path / "authority.pem").write_bytes(authority.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    return made


@asynccontextmanager
async def server(context: ssl.SSLContext, security: Security) -> AsyncIterator[Takes]:
    async with mail_server(context, (USER, PASSWORD), from_first=security == "tls") as found:
        yield found


async def send(port: int, security: Security, host: str = "localhost", password: str = PASSWORD) -> None:
    notice = Notice("w", "j1", 1, NOW, News.FAILED, "train", "train has failed.")
    place = MailServer(host, port, security, "pai@example.org", USER, password)
    await place.send(mail("ann@example.org", "pai@example.org", "m1", [notice], NOW))


@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_mail_is_sent_encrypted_after_a_sign_in(context: ssl.SSLContext, security: Security) -> None:
    async with server(context, security) as found:
        await send(found.port, security)
    assert [each["Subject"] for each in found.mails] == ["[pai] train: failed"]


@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_a_server_that_cannot_prove_its_name_gets_nothing(context: ssl.SSLContext, security: Security) -> None:
    async with server(context, security) as found:
        with pytest.raises(NotSent, match=r"(?i)certificate") as refused:
            await send(found.port, security, host="127.0.0.1")
    assert (found.mails, found.asked, refused.value.final) == ([], 0, False)


async def test_without_encryption_where_it_is_wanted_nothing_is_sent() -> None:
    async with mail_server() as plain:
        for security in ("starttls", "tls"):
            with pytest.raises(NotSent) as refused:
                await send(plain.port, security)
            assert not refused.value.final
    assert (plain.mails, plain.asked) == ([], 0)


async def test_a_refused_sign_in_is_said_without_the_password(context: ssl.SSLContext) -> None:
    async with server(context, "starttls") as found:
        with pytest.raises(NotSent) as refused:
            await send(found.port, "starttls", password="s3cret-and-wrong")
    assert str(refused.value) == "the mail server refuses the backend's sign-in (535)"
    assert not refused.value.final
    assert found.mails == []


async def test_a_server_that_is_not_there_is_tried_again() -> None:
    async with mail_server() as gone:
        pass
    with pytest.raises(NotSent) as refused:
        await send(gone.port, "none")
    assert not refused.value.final
