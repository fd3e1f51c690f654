"""English text for a user that keeps its template and arguments, so that each client can word it for its reader.

Standard library only: ``pai`` imports it. The wire form is ``model.wording``. Templates are literals, so that a test
finds each of them, and its translation in the catalogue.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
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
