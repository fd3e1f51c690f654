"""Secrets of the configuration: masked wherever it is shown, whole for the backend's own child processes."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import PlainSerializer, Secret, SecretStr, SerializationInfo


def revealed(secret: Secret[Any] | SecretStr, info: SerializationInfo) -> Any:
    """The secret itself for ``Settings.reveal`` alone, which hands it to processes of ours."""
    reveal = isinstance(info.context, dict) and info.context.get("reveal") is True
    return secret.get_secret_value() if reveal else str(secret)


SecretText = Annotated[SecretStr, PlainSerializer(revealed, when_used="json")]
"""A secret text. A plain ``SecretStr`` would reach child processes as asterisks."""
