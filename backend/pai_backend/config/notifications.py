"""The keys of notifications."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from pai_backend.config.secret_text import SecretText
from pai_backend.model.base import Model
from pai_backend.model.mail_address import is_mail_address


class NotificationSettings(Model):
    """How users are notified about their jobs: mail, and which addresses webhooks may have."""

    smtp_host: str = Field(default="", description="The server that mail is handed over to; empty: no mail is sent.")
    smtp_port: int = Field(default=587, ge=1, le=65535, description="Its port.")
    smtp_security: Literal["starttls", "tls", "none"] = Field(
        default="starttls", description="`starttls`, `tls` from the first byte on, or `none` within a trusted network."
    )
    smtp_user: str = Field(default="", description="Whom the backend signs in as; empty: it does not.")
    smtp_password: SecretText | None = Field(default=None, description="That user's password.")
    mail_from: str = Field(default="", description="The address that mail comes from.")
    mail_domains: tuple[str, ...] = Field(
        default=(), description="Domains that mail may be sent to, such as `example.org`. None given: all."
    )
    networks: tuple[IPv4Network | IPv6Network, ...] = Field(
        default=(),
        description="Networks whose addresses webhooks of users may have, such as `10.1.0.0/16`, besides public "
        "addresses. Users can then have the backend send requests there.",
    )

    @field_validator("mail_from")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        if value and not is_mail_address(value):
            raise ValueError("must be a mail address such as pai@example.org")
        return value

    @model_validator(mode="after")
    def _has_a_sender(self) -> Self:
        if self.smtp_host and not self.mail_from:
            raise ValueError("with smtp_host, mail_from must be given")
        return self
