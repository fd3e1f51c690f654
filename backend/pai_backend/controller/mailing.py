"""Hands mail over to a server (RFC 5321). Imported where mail is sent alone: aiosmtplib takes 25 ms of a start."""

from __future__ import annotations

from dataclasses import dataclass
from email.message import EmailMessage
from typing import Literal

import aiosmtplib

from pai_backend.controller.notice_sending import NotSent

SMTP_S = 30.0
"""For a whole mail."""
_FINAL = 500
"""From this code of a reply on another try does not help (RFC 5321 §4.2.1)."""


@dataclass(frozen=True)
class MailServer:
    """Where mail is handed over, and whom it is from."""

    host: str
    port: int
    security: Literal["starttls", "tls", "none"]
    sender: str
    user: str = ""
    password: str = ""

    async def send(self, made: EmailMessage) -> None:
        """Hand a mail over once. Raises NotSent."""
        try:
            await aiosmtplib.send(
                made,
                hostname=self.host,
                port=self.port,
                username=self.user or None,
                password=self.password or None,
                local_hostname=self.sender.rpartition("@")[2],  # else it looks our own name up, and waits
                use_tls=self.security == "tls",
                start_tls=self.security == "starttls",
                timeout=SMTP_S,
            )
        except aiosmtplib.SMTPRecipientsRefused as error:
            raise _refused(error.recipients[0]) from None
        except aiosmtplib.SMTPDataError as error:
            raise _refused(error) from None
        except aiosmtplib.SMTPException as error:  # not about this mail: sign-in, TLS, a lost line
            raise NotSent(_words(error)) from None
        except (OSError, ValueError) as error:
            raise NotSent(str(error) or type(error).__name__) from None


def _refused(reply: aiosmtplib.SMTPResponseException) -> NotSent:
    return NotSent(_words(reply), final=reply.code >= _FINAL)


def _words(error: aiosmtplib.SMTPException) -> str:
    """Of one line: a server may answer with several."""
    if isinstance(error, aiosmtplib.SMTPAuthenticationError):
        return f"the mail server refuses the backend's sign-in ({error.code})"  # its text may hold what was sent
    if isinstance(error, aiosmtplib.SMTPResponseException):
        return f"the mail server answers {error.code} {' '.join(str(error.message).split())}"[:200]
    return f"the mail server: {' '.join(str(error).split()) or type(error).__name__}"[:200]
