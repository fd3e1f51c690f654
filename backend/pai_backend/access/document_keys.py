"""Public keys that a v2 document's ssh plugin lets into its job, with the values of its secrets put in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pai_backend.access.keys import parse_public_key
from pai_backend.model.errors import InvalidParameters
from pai_backend.model.spec import SshOptions
from pai_backend.model.tags import fill
from pai_backend.model.text import Text


def document_keys(options: SshOptions, secrets: Mapping[str, Any]) -> tuple[str, ...]:
    """authorized_keys lines, ``type base64`` each: no option or comment of the document's gets in.

    Raises UnresolvedTag for a secret that is not there, InvalidParameters for what is no public key; neither
    repeats a value.
    """
    texts = [fill(key, "secrets", secrets) for key in options.authorized_keys]
    return tuple(dict.fromkeys(_line(line) for text in texts for line in text.splitlines() if line.strip()))


def _line(text: str) -> str:
    try:
        return parse_public_key(text).line
    except InvalidParameters as error:
        raise InvalidParameters(
            Text("userssh of the ssh plugin: {error}", error=error.message), hint=error.hint
        ) from None
