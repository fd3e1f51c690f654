"""Applying a table of fields to an object of a document, collecting every fault with its place.

A table says what a protocol's field list says: type, limits, default, which characters. The rules
between fields are the protocol's own module's. No message repeats a value: any may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pai_backend.model.errors import Bug, Fault
from pai_backend.model.spec import DocumentWarning
from pai_backend.model.text import NO_TEXT, Text
from pai_backend.protocol import tree
from pai_backend.protocol.field_table import Field, FieldKind, Table, kind_of, likely, remedy_of
from pai_backend.protocol.tree import Flaw, Node, PathStep, Positions, Unreadable, path_text, shown

MAX_REPORTED: Final = 100
"""Faults and warnings listed at most, each; the last one then says how many more there are."""

MAX_KEPT: Final = 200
"""Unknown fields of one document that are kept at most; looking for a name they resemble is dear."""

Path = tuple[PathStep, ...]
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NUMBER_TEXT = re.compile(tree.NUMBER)


class Reader:
    """Collects the faults and warnings of one document, beginning with those of its JSON (``flaws``, ``slips``)."""

    def __init__(self, positions: Positions, flaws: Sequence[Flaw] = (), slips: Sequence[Flaw] = ()) -> None:
        self._positions = positions
        self._more_faults = self._more_warnings = self._looked_at = 0
        self._faults: list[Fault] = []
        for flaw in flaws:
            self.fault(flaw.path, flaw.at, flaw.message, flaw.hint)
        self._flaws = len(self._faults)
        self._warnings: list[DocumentWarning] = []
        for slip in slips:
            self.warn("trailing-comma", slip.path, slip.message, slip.hint)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """All faults so far: those of the JSON, then the others, each in document order.

        The first is the one to fix first: a comma too few may be why a field seems to be missing.
        """
        others = sorted(self._faults[self._flaws :], key=lambda fault: (fault.line or 0, fault.column or 0))
        found = [*self._faults[: self._flaws], *others]
        if self._more_faults:
            found.append(
                Fault(
                    path="$",
                    message=Text("and {more} more faults", more=self._more_faults),
                    hint=Text("Fix these first."),
                )
            )
        return tuple(found)

    @property
    def failed(self) -> bool:
        """Whether there is any fault."""
        return bool(self._faults)

    @property
    def warnings(self) -> tuple[DocumentWarning, ...]:
        """All warnings so far."""
        if not self._more_warnings:
            return tuple(self._warnings)
        more = DocumentWarning(
            code="more-warnings", message=Text("and {more} more warnings", more=self._more_warnings), path="$"
        )
        return (*self._warnings, more)

    def line_column(self, at: int) -> tuple[int, int]:
        """Line and column of an offset of the document, both from 1."""
        return self._positions.line_column(at)

    def fault(self, path: Path, at: int, message: Text, hint: Text) -> None:
        """Record that something is wrong at offset ``at``."""
        if not self.room_for_fault():
            return
        line, column = self._positions.line_column(at)
        self._faults.append(Fault(path=path_text(path), message=message, line=line, column=column, hint=hint))

    def room_for_fault(self) -> bool:
        """Whether one more fault is listed; counts it when not. Asked before a text is made for it."""
        if len(self._faults) < MAX_REPORTED:
            return True
        self._more_faults += 1
        return False

    def warn(self, code: str, path: Path, message: Text, hint: Text) -> None:
        """Record what the author should know but may leave."""
        if self.room_for_warning():
            self._warnings.append(DocumentWarning(code=code, message=message, path=path_text(path), hint=hint))

    def room_for_warning(self) -> bool:
        """Whether one more warning is listed; counts it when not. Asked before a text is made for it."""
        if len(self._warnings) < MAX_REPORTED:
            return True
        self._more_warnings += 1
        return False

    def members(self, node: Node, path: Path, table: Table, *, keep_unknown: bool = False) -> Members | None:
        """The members of ``node`` checked against ``table``, or None when it is no object.

        With ``keep_unknown`` a field that resembles none of the table's is kept, with a warning.
        """
        if not isinstance(node.value, dict):
            if not isinstance(node.value, Unreadable):
                hint = Text("Write {table} as { … }.", table=table.name)
                self.fault(
                    path,
                    node.at,
                    Text("{table} must be an object, not {given}", table=table.name, given=kind_of(node)),
                    hint,
                )
            return None
        fields = table.fields
        values: dict[str, Checked] = {**table.defaults}
        unknown: list[tuple[str, object]] = []
        for key, member in node.value.items():
            rule = fields.get(key)
            if rule is None:
                if table.open:
                    self._overlook(key, path, table)
                elif keep_unknown and self._may_keep(key, table):
                    unknown.append(self._kept(key, member, path, table))
                else:
                    self._unknown(key, member, path, table)
            else:
                values[key] = self._check(member, path, key, rule)
        for name in table.needed:
            if name not in node.value:
                self._absent(node, path, name, fields[name])
        return Members(node, path, values, unknown)

    def distinct(self, objects: Sequence[Members], field: str, what: Text) -> None:
        """Names within one list must differ; ``what`` is how messages call the things named."""
        seen: set[str] = set()
        for members in objects:
            name = members.text(field)
            if name is not None and name in seen:
                message = Text("another {what} is already called {name}", what=what, name=shown(name))
                self.fault(
                    (*members.path, field),
                    members.at(field),
                    message,
                    Text("Give each {what} its own {field}.", what=what, field=field),
                )
            elif name is not None:
                seen.add(name)

    def boolean(self, node: Node, path: Path) -> bool:
        """A flag; the texts "true" and "false" are taken with a warning (False when it is not one)."""
        if isinstance(node.value, str) and node.value in ("true", "false"):
            name = str(path[-1])
            self.warn(
                "flag-as-text",
                path,
                Text("{name} is a text", name=name),
                Text("Write {given} without quotes.", given=node.value),
            )
            return node.value == "true"
        if isinstance(node.value, bool):
            return node.value
        if not isinstance(node.value, Unreadable):
            message = Text("{name} must be true or false, not {given}", name=path[-1], given=kind_of(node))
            self.fault(path, node.at, message, Text("Write true or false without quotes."))
        return False

    def _absent(self, node: Node, path: Path, name: str, rule: Field) -> None:
        if rule.required:
            self.fault(
                (*path, name),
                node.at,
                Text("{name} is missing", name=name),
                Text("Add {name}: {kind}.", name=shown(name), kind=rule.kind.value),
            )
        elif rule.expected and self.room_for_warning():
            hint = Text("Write {name} to say how many you need.", name=shown(name))
            self.warn(
                "missing-field",
                (*path, name),
                Text("{name} is missing; {default} is used", name=name, default=rule.default),
                hint,
            )

    def _unknown(self, key: str, member: Node, path: Path, table: Table) -> None:
        if len(self._faults) >= MAX_REPORTED:
            self._more_faults += 1
            return
        hint = likely(key, table) or Text("Remove it; known here: {fields}.", fields=", ".join(table.fields))
        self.fault(
            (*path, key), member.key_at, Text("unknown field {key} in {table}", key=shown(key), table=table.name), hint
        )

    def _may_keep(self, key: str, table: Table) -> bool:
        """Whether an unknown field resembles none of the table's, and is not one of too many."""
        self._looked_at += 1
        return self._looked_at <= MAX_KEPT and not likely(key, table)

    def _kept(self, key: str, member: Node, path: Path, table: Table) -> tuple[str, object]:
        """The path and value of an unknown field that is kept."""
        if self.room_for_warning():
            message = Text("unknown field {key} in {table}; it is kept, but ignored", key=shown(key), table=table.name)
            self.warn(
                "unknown-field", (*path, key), message, Text("Known here: {fields}.", fields=", ".join(table.fields))
            )
        return path_text((*path, key)), member.plain()

    def _overlook(self, key: str, path: Path, table: Table) -> None:
        """Tell of an unknown field of an open object."""
        if not self.room_for_warning():
            return
        self._looked_at += 1
        close = likely(key, table) if self._looked_at <= MAX_KEPT else NO_TEXT
        message = Text("unknown field {key} in {table}; it is ignored", key=shown(key), table=table.name)
        self.warn(
            "unknown-field",
            (*path, key),
            message,
            close or Text("Known here: {fields}.", fields=", ".join(table.fields)),
        )

    def _check(self, node: Node, path: Path, name: str, rule: Field) -> Checked:
        """The value of a field that is there, or None after reporting why it is not taken."""
        value = node.value
        if type(value) is int and rule.kind is FieldKind.INTEGER and rule.low <= value <= rule.high:
            return value
        if isinstance(value, Unreadable) or (value is None and rule.nullable):
            return None
        if rule.kind is FieldKind.TEXT and isinstance(value, str):
            return self._text(value, node, path, name, rule)
        if rule.kind is FieldKind.INTEGER and isinstance(value, int | str) and not isinstance(value, bool):
            return self._integer(value, node, path, name, rule)
        if rule.kind is FieldKind.LIST and isinstance(value, list):
            return node
        if rule.kind is FieldKind.OBJECT and isinstance(value, dict):
            return node
        if rule.kind is FieldKind.ANY:
            return node
        self.fault(
            (*path, name),
            node.at,
            Text("{name} must be {kind}, not {given}", name=name, kind=rule.kind.value, given=kind_of(node)),
            remedy_of(value, rule),
        )
        return None

    def _integer(self, value: int | str, node: Node, path: Path, name: str, rule: Field) -> int | None:
        if isinstance(value, str):
            number = tree.number(value, node.at) if _NUMBER_TEXT.fullmatch(value) else None
            if not isinstance(number, int):
                message = Text(
                    "{name} must be {kind}, not {given}", name=name, kind=rule.kind.value, given=kind_of(node)
                )
                self.fault((*path, name), node.at, message, remedy_of(value, rule))
                return None
            hint = (
                Text("Write {number} without quotes.", number=number)
                if abs(number) < 10**9
                else Text("Write it without quotes.")
            )
            self.warn("number-as-text", (*path, name), Text("{name} is a number written as text", name=name), hint)
            value = number
        if value < rule.low:
            self.fault(
                (*path, name),
                node.at,
                Text("{name} must be at least {low}", name=name, low=rule.low),
                Text("Use {low} or more.", low=rule.low),
            )
            return None
        if value > rule.high:
            self.fault(
                (*path, name),
                node.at,
                Text("{name} must be at most {high}", name=name, high=rule.high),
                Text("Use {high} or less.", high=rule.high),
            )
            return None
        return value

    def _text(self, value: str, node: Node, path: Path, name: str, rule: Field) -> str | None:
        if not rule.empty and not value.strip():
            self.fault(
                (*path, name),
                node.at,
                Text("{name} must not be empty", name=name),
                Text("Give {name} a text.", name=shown(name)),
            )
        elif rule.longest is not None and len(value) > rule.longest:
            message = Text("{name} is {count} characters long", name=name, count=len(value))
            self.fault((*path, name), node.at, message, Text("Use at most {most}.", most=rule.longest))
        elif rule.pattern is not None and not rule.pattern.fullmatch(value):
            bad = next(number for number, char in enumerate(value, 1) if not rule.pattern.fullmatch(char))
            message = Text("{name} holds {char} as character {place}", name=name, char=shown(value[bad - 1]), place=bad)
            self.fault((*path, name), node.at, message, Text("Use {allowed} only.", allowed=rule.allowed))
        elif not rule.lines and _CONTROL.search(value):
            message = Text("{name} holds a line break or another control character", name=name)
            self.fault((*path, name), node.at, message, Text("Write it in one line."))
        else:
            return value
        return None


Checked = str | int | Node | None


@dataclass(frozen=True)
class Members:
    """The checked members of one object. A faulty one reads as None; its fault is recorded."""

    node: Node
    path: Path
    values: Mapping[str, Checked]
    unknown: Sequence[tuple[str, object]] = ()
    """Path and value of the fields that are kept without being known."""

    def text(self, name: str) -> str | None:
        """A text field: its value or its default."""
        value = self.values[name]
        if value is None or isinstance(value, str):
            return value
        raise Bug(f"{name} is not a text field")

    def integer(self, name: str) -> int | None:
        """An integer field: its value or its default; None also for a null."""
        value = self.values[name]
        if value is None or isinstance(value, int):
            return value
        raise Bug(f"{name} is not an integer field")

    def items(self, name: str) -> list[Node]:
        """The items of a list field; none when it was left out."""
        value = self.values[name]
        return value.value if isinstance(value, Node) and isinstance(value.value, list) else []

    def entries(self, name: str) -> dict[str, Node]:
        """The members of an object field; none when it was left out."""
        value = self.values[name]
        return value.value if isinstance(value, Node) and isinstance(value.value, dict) else {}

    def given(self, name: str) -> bool:
        """Whether the document has the field."""
        return isinstance(self.node.value, dict) and name in self.node.value

    def at(self, name: str) -> int:
        """Where the field's value starts, or the object when the field was left out."""
        if isinstance(self.node.value, dict) and name in self.node.value:
            return self.node.value[name].at
        return self.node.at
