"""What a backend says, in the user's language: it sends each text in English and, beside it, how the text was made."""

from __future__ import annotations

from collections.abc import Mapping

from jupyter_pai.errors import worded
from jupyter_pai.language import tr


def said(entry: Mapping[str, object], text: str = "message") -> str:
    """The text of a body's member. English where the backend is of another version, or another program wrote it."""
    return tr(worded(entry, text, "wording" if text == "message" else f"{text}Wording"))
