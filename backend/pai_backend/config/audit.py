"""The keys of the audit."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import Field, field_validator

from pai_backend.config.secret_text import SecretText
from pai_backend.model.base import Model


class AuditSettings(Model):
    """How long events of the audit are kept, and where else they are sent."""

    keep_days: float = Field(
        default=0,
        ge=0,
        description="Days after which events are forgotten, once they have been sent to all that is named here; "
        "0: they stay.",
    )
    webhook: str = Field(
        default="",
        description="An http or https URL that gets every event by POST, one JSON object a line, in their order, "
        "each at least once.",
    )
    webhook_secret: SecretText | None = Field(
        default=None,
        description="What the webhook's bodies are signed with: `X-Pai-Signature` is the HMAC-SHA256 of "
        "`X-Pai-Timestamp`, a newline and the body, in hexadecimal digits.",
    )
    syslog: str = Field(
        default="",
        description="A syslog server that gets every event: `tcp://host:port` (RFC 5424 lines, framed as RFC 6587 "
        "counts octets) or `udp://host:port`.",
    )

    @field_validator("webhook")
    @classmethod
    def _is_http(cls, value: str) -> str:
        parts = urlsplit(value)
        if value and (parts.scheme not in ("http", "https") or not parts.hostname):
            raise ValueError("not an http or https URL")
        return value

    @field_validator("syslog")
    @classmethod
    def _is_syslog(cls, value: str) -> str:
        parts = urlsplit(value)
        if value and (parts.scheme not in ("tcp", "udp") or not parts.hostname or parts.port is None):
            raise ValueError("neither tcp://host:port nor udp://host:port")
        return value
