"""The language of what ``pai``, ``%pai`` and the notebook views say: English, or Chinese from the panel's catalogue.

``PAI_LANG`` chooses it, else ``LC_ALL``, ``LC_MESSAGES`` or ``LANG``, the first that is set, as POSIX orders them::

    tr("Removed {key}.", key=fingerprint)               # in the user's language, now
    raise ClientError(Text("{path} cannot be read.", path=path))   # English; translated where it is shown

Values for machines, such as ``--json``, are made of the English text. Standard library only: ``pai`` must answer at
once, so that English reads no file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from pai_backend.model.text import Text, filled

ENGLISH, CHINESE = "en", "zh_CN"
VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
"""Where the locale is, behind ``PAI_LANG``. Source: POSIX.1-2017, section 8.2."""

_CATALOGUE = Path(__file__).parent / "locale" / CHINESE / "LC_MESSAGES" / "jupyter_pai.json"

_of_jupyter = ""
"""The locale that a notebook's Jupyter is set to; empty where that is unknown."""
_only_english = False


def tr(text: str, /, **arguments: object) -> str:
    """The text in the user's language, each ``{name}`` replaced by the argument of that name.

    English where the catalogue lacks it. A :class:`Text`, also as an argument, brings its own arguments. Never raises;
    other braces stay as they are.
    """
    template = text
    if isinstance(text, Text):
        template, arguments = text.template, {**text.arguments, **arguments}
    if language() == CHINESE:
        chinese = _chinese().get(template, template)
        return filled(chinese, {name: _translated(value) for name, value in arguments.items()})
    return filled(template, arguments)


def language() -> str:
    """The user's language now: ``en`` or ``zh_CN``."""
    if _only_english:
        return ENGLISH
    if chosen := os.environ.get("PAI_LANG", "").strip():
        return _of(chosen)
    if _of_jupyter:
        return _of(_of_jupyter)
    return _of(next(filter(None, map(os.environ.get, VARIABLES)), ""))


def follow_jupyter(locale: str) -> None:
    """Let a notebook's Jupyter choose the language, unless ``PAI_LANG`` does; empty: the environment's again."""
    global _of_jupyter
    _of_jupyter = locale


def keep_to_english(only: bool) -> None:
    """Whether this process speaks English whatever was chosen: its terminal has no Chinese characters."""
    global _only_english
    _only_english = only


def can_be_encoded(encoding: str) -> bool:
    """Whether an encoding has Chinese characters."""
    try:
        "任务".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _of(name: str) -> str:
    return CHINESE if re.match(r"zh(?![a-z])", name, re.IGNORECASE) else ENGLISH


def _translated(value: object) -> object:
    said = str(value) if isinstance(value, Exception) else value
    return tr(said) if isinstance(said, Text) else value


@cache
def _chinese() -> Mapping[str, str]:
    """The catalogue, read once; empty when it cannot be read, which an installation without it must survive."""
    import json

    try:
        entries = json.loads(_CATALOGUE.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {english: forms[0] for english, forms in entries.items() if english and forms[0]}
