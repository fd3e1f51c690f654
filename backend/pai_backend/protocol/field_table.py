"""Tables that say what fields an object of a document has, and how messages name what is wrong with one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Final

from pai_backend.model.text import NO_TEXT, Text
from pai_backend.protocol.tree import Node, shown

_LONGEST_NAME: Final = 40
"""Characters of a key that is compared with the known ones."""


class FieldKind(Enum):
    """What a field holds; the value is how messages call it."""

    TEXT = Text("text")
    INTEGER = Text("a whole number")
    BOOLEAN = Text("true or false")
    LIST = Text("a list")
    OBJECT = Text("an object")
    ANY = Text("anything")


@dataclass(frozen=True)
class Field:
    """One line of a field table. Limits are inclusive; ``default`` stands for a field left out."""

    kind: FieldKind
    required: bool = False
    default: int | str | None = None
    low: int = -(2**31)
    high: int = 2**31 - 1
    nullable: bool = False
    pattern: re.Pattern[str] | None = None
    allowed: Text = NO_TEXT
    longest: int | None = None
    empty: bool = True
    lines: bool = False
    expected: bool = False  # the documents say required; readers in use fill in the default


@dataclass(frozen=True)
class Table:
    """The fields of one kind of object. ``elsewhere`` gives hints for names that people write here by mistake.

    ``name`` is how messages call it: a ``Text``, or the bare name of a field, which is not translated. In an ``open``
    object upstream takes any further field: such a one is overlooked with a warning.
    """

    name: str
    fields: Mapping[str, Field]
    elsewhere: Mapping[str, Text] = field(default_factory=dict)
    open: bool = False

    @cached_property
    def defaults(self) -> dict[str, int | str | None]:
        """What stands for each field that is left out."""
        return {name: rule.default for name, rule in self.fields.items()}

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """The fields whose absence is worth a word."""
        return tuple(name for name, rule in self.fields.items() if rule.required or rule.expected)


def kind_of(node: Node) -> Text:
    """What a node holds, as messages call it."""
    value = node.value
    if value is None:
        return Text("null")
    if isinstance(value, bool):
        return Text("true or false")
    if isinstance(value, float):
        return Text("a very large number") if value.is_integer() else Text("a fraction")
    if isinstance(value, int):
        return Text("a number")
    if isinstance(value, str):
        return Text("text")
    return Text("a list") if isinstance(value, list) else Text("an object")


def remedy_of(value: object, rule: Field) -> Text:
    """What to write instead of a value of another kind than the rule's."""
    if value is None:
        return (
            Text("Leave the field out to get its default.")
            if not rule.required
            else Text("Write {kind}.", kind=rule.kind.value)
        )
    if rule.kind is FieldKind.TEXT and isinstance(value, int | float):
        return Text("Put it in double quotes.")
    if rule.kind is FieldKind.INTEGER:
        return Text("Write a number like 1, without quotes, fraction or unit.")
    return Text("Write {kind}.", kind=rule.kind.value)


def likely(key: str, table: Table) -> Text:
    """What to write instead of a name that was probably meant to be another; empty when it resembles none."""
    if key in table.elsewhere:
        return table.elsewhere[key]
    known = {name.lower(): name for name in table.fields}
    if len(key) <= _LONGEST_NAME:
        close = difflib.get_close_matches(key.lower(), known, n=1, cutoff=0.7)
        if close:
            return Text("Did you mean {known}?", known=shown(known[close[0]]))
    return NO_TEXT
