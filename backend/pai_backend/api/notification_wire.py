"""Notifications of users about their jobs, on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import cast
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from pai_backend.api.queries import Body
from pai_backend.api.wire import Camel
from pai_backend.model.mail_address import is_mail_address
from pai_backend.model.notification import USUAL, Channel, News
from pai_backend.model.urls import is_http_url

LONGEST_S = 366 * 86_400


class NewNotification(Body):
    """A notification to add."""

    channel: Channel
    to: SecretStr = Field(
        default=cast(SecretStr, ""),  # the validation makes a secret of it
        max_length=2000,
        validate_default=True,  # without it a channel that needs a URL could have none
        description="The URL that the service gave, which is kept secret; for `mail` an address, by default that of "
        "the caller's account.",
    )
    secret: SecretStr = Field(
        default=SecretStr(""), max_length=200, description="What messages are signed with, where the channel has that."
    )
    news: tuple[News, ...] = Field(default=USUAL, max_length=20, description="The news that it has.")
    waited_s: int = Field(
        default=3600, ge=1, le=LONGEST_S, description="For `waited`: the shortest wait that counts, in seconds."
    )

    @field_validator("news")
    @classmethod
    def _of_jobs(cls, value: tuple[News, ...]) -> tuple[News, ...]:
        if News.TEST in value:
            raise ValueError("must not have test, which is sent on request")
        return value

    @field_validator("to")
    @classmethod
    def _leads_somewhere(cls, value: SecretStr, info: ValidationInfo) -> SecretStr:
        channel, to = info.data.get("channel"), value.get_secret_value()
        if channel is Channel.MAIL:
            if to and not is_mail_address(to):
                raise ValueError("must be one mail address, such as ann@example.org")
        elif channel is not None and (not is_http_url(to) or urlsplit(to).username is not None):
            raise ValueError("must be an http or https URL without a user")
        return value

    @field_validator("secret")
    @classmethod
    def _can_be_used(cls, value: SecretStr, info: ValidationInfo) -> SecretStr:
        channel = info.data.get("channel")
        if value.get_secret_value() and channel in (Channel.MAIL, Channel.SLACK, Channel.TEAMS):
            raise ValueError(f"cannot be used: {channel.value} has no signature")
        return value


class NotificationWire(Camel):
    """A notification."""

    id: str
    channel: Channel
    place: str = Field(description="Where it leads: a mail address, or the host of a URL.")
    news: tuple[News, ...]
    waited_s: int
    created_at: datetime
    tried_at: datetime | None = Field(description="When a message was tried last.")
    sent_at: datetime | None = Field(description="When a message arrived last.")
    trouble: str = Field(description="Why the last message did not arrive; empty: it did, or there was none.")
    waiting: int = Field(description="Notices that have not arrived yet.")
    lost: int = Field(description="Notices that were given up.")


class NotificationList(Camel):
    """The caller's notifications."""

    data: tuple[NotificationWire, ...]
