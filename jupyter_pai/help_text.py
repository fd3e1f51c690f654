"""Help and usage of ``argparse`` in the user's language: its own words, and Chinese lines of the right width.

``argparse`` asks gettext, whose catalogues hold no Chinese of it. In English it does everything itself.
"""

from __future__ import annotations

import argparse
import re
import unicodedata
from collections.abc import Iterable, Iterator

from jupyter_pai.language import ENGLISH, language, tr
from pai_backend.model.text import Text, recognised

NEVER_FIRST = frozenset("，。；：！？、）】》」』”’…,.;:!?)]}")
"""No line of Chinese begins with these (GB/T 15834, section 5.1.10)."""
_UNIT = re.compile(r"`[^`\s]+`|[\x21-\x7e]+|\s+|.", re.DOTALL)

COMPLAINTS = (
    Text("the following arguments are required: {names}"),
    Text("unrecognized arguments: {words}"),
    Text("one of the arguments {names} is required"),
    Text("ambiguous option: {option} could match {names}"),
    Text("argument {name}: {reason}"),
    Text("not allowed with argument {name}"),
    Text("expected one argument"),
    Text("expected at most one argument"),
    Text("expected at least one argument"),
    Text("invalid choice: {value} (choose from {choices})"),
    Text("invalid {kind} value: {value}"),
    Text("ignored explicit argument {value}"),
)
"""What argparse finds wrong with a line. Source: argparse of Python 3.11 to 3.14."""


class Formatter(argparse.HelpFormatter):
    """As argparse, with the words before the usage and the width of lines of the user's language."""

    def add_usage(
        self,
        usage: str | None,
        actions: Iterable[argparse.Action],
        groups: Iterable[argparse._MutuallyExclusiveGroup],
        prefix: str | None = None,
    ) -> None:
        """Called by argparse."""
        super().add_usage(usage, actions, groups, tr("usage: ") if prefix is None else prefix)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return super()._split_lines(text, width) if language() == ENGLISH else list(wrapped(text, width))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if language() == ENGLISH:
            return super()._fill_text(text, width, indent)
        return "\n".join(indent + line for line in wrapped(text, width - len(indent)))


def complaint(message: str) -> str:
    """What argparse found wrong, in the user's language; unchanged where it is not known."""
    return tr(recognised(message, COMPLAINTS)) if language() != ENGLISH else message


def wrapped(text: str, width: int) -> Iterator[str]:
    """Lines of at most ``width`` columns; Chinese characters take two, and may stand at either side of a break."""
    line, columns = "", 0
    for unit in _UNIT.findall(" ".join(text.split())):
        taken = _columns(unit)
        if columns + taken > width and line and unit[0] not in NEVER_FIRST:
            yield line.rstrip()
            line, columns = "", 0
        if line or not unit.isspace():
            line, columns = line + unit, columns + taken
    yield line.rstrip()


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
