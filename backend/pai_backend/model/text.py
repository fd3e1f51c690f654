"""English text for a user that keeps its template and arguments, so that each client can word it for its reader.

Standard library only: ``pai`` imports it. The wire form is ``model.wording``. Templates are literals, so that a test
finds each of them, and its translation in the catalogue.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Final

PLACE: Final = re.compile(r"\{(\w+)\}")
"""Where an argument goes."""


def filled(template: str, arguments: Mapping[str, object]) -> str:
    """The template with each ``{name}`` replaced by the argument of that name; other braces stay."""
    if not arguments:
        return template
    return PLACE.sub(lambda place: str(arguments.get(place[1], place[0])), template)


class Text(str):
    """A ``str``, the English text, that was made of a template and arguments.

    An argument that is a ``Text`` itself is translated with it; any other is taken as it is. A secret must never be an
    argument: arguments are sent and stored as the text is. Copies and pickles keep both; ``str`` methods lose them.
    """

    __slots__ = ("arguments", "template")

    template: str
    arguments: Mapping[str, object]

    def __new__(cls, template: str, /, **arguments: object) -> Text:
        """The template with its arguments in their places."""
        made = super().__new__(cls, filled(template, arguments))
        made.template, made.arguments = template, arguments
        return made

    def __str__(self) -> str:
        """The text itself, so that ``str`` of an exception keeps what is translated later."""
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[str], Mapping[str, object]]:
        """Called by ``copy`` and ``pickle``."""
        return (self.template,), self.arguments


NO_TEXT: Final = Text("")
"""Stands for a hint that is not given."""


def completed(text: Text, /, **arguments: object) -> Text:
    """A text whose places were left open, with those of these arguments in them that it has places for."""
    return Text(text.template, **{name: arguments[name] for name in PLACE.findall(text.template)})


def recognised(text: str, templates: Iterable[Text]) -> str:
    """English that another program has made, by the first template that fits; unchanged where none does.

    A value that is such a text itself keeps its template, too.
    """
    templates = tuple(templates)
    for each in templates:
        if (found := _pattern(each.template).fullmatch(text)) is not None:
            return completed(each, **{name: recognised(value, templates) for name, value in found.groupdict().items()})
    return text


@cache
def _pattern(template: str) -> re.Pattern[str]:
    parts = PLACE.split(template)
    return re.compile(
        "".join(f"(?P<{part}>.*?)" if at % 2 else re.escape(part) for at, part in enumerate(parts)), re.DOTALL
    )


def with_each(text: Text, change: Callable[[str], str]) -> Text:
    """The text with each of its arguments changed."""
    return Text(text.template, **{name: change(_as_text(value)) for name, value in text.arguments.items()})


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else str(value)


def refused(message: str, hint: str) -> str:
    """A fault and what to do about it, in one text. The message has no full stop."""
    return Text("{fault}. {remedy}", fault=message, remedy=hint) if hint else Text("{fault}.", fault=message)


def listed(parts: Sequence[str], most: int = 0) -> str:
    """The parts with commas between them; of more than ``most`` the first ones, and how many others there are."""
    if most and len(parts) > most:
        return Text("{names} and {number} more", names=listed(parts[:most]), number=len(parts) - most)
    return _joined(parts, lambda first, rest: Text("{first}, {rest}", first=first, rest=rest))


def in_clauses(parts: Sequence[str]) -> str:
    """The parts with semicolons between them."""
    return _joined(parts, lambda first, rest: Text("{first}; {rest}", first=first, rest=rest))


def all_of(parts: Sequence[str]) -> str:
    """The parts with "and" between them."""
    return _joined(parts, lambda first, rest: Text("{first} and {rest}", first=first, rest=rest))


def in_sentences(parts: Sequence[str]) -> str:
    """The sentences one behind the other; empty ones are left out."""
    return _joined([*filter(None, parts)], lambda first, rest: Text("{first} {rest}", first=first, rest=rest))


def _joined(parts: Sequence[str], pair: Callable[[str, str], Text]) -> str:
    joined = parts[-1] if parts else NO_TEXT
    for part in reversed(parts[:-1]):
        joined = pair(part, joined)
    return joined
