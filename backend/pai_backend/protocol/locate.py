"""A JSON reader that keeps the place of every key and value, and goes on after a fault where it can.

Read are JSON (RFC 8259) with ``//`` and ``/* */`` comments and a byte order mark, because documents in
the wild have them: the QIZHI guide's own example is full of comments. Refused are duplicate keys, NaN,
Infinity and numbers nothing could keep, nesting beyond 64 and more than 100 000 values: the limits keep
any text of the largest size cheap to read, whoever wrote it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pai_backend.protocol import diagnose, scalars
from pai_backend.protocol.diagnose import Trouble
from pai_backend.protocol.position import BOM, PathStep, Positions

MAX_DEPTH: Final = 64
MAX_VALUES: Final = 100_000
"""A role is about 16 values, so 1 MiB full of typical roles (some 3 500) stays below it."""
MAX_FLAWS: Final = 100
"""Reading stops here: beyond it the faults are no longer about what the author wrote."""

# Atomic groups and possessive repeats: a long run of comments must not make the match try its pieces twice.
_SPACE = r"[ \t\r\n]*+(?:/(?>/[^\r\n]*|\*[\s\S]*?\*/)[ \t\r\n]*)*+"
_CHARS = r"[^\"\\\x00-\x08\x0a-\x1f]*+"
_GAP = re.compile(_SPACE)
_END = r"(?![\w.+$-])"
_SCALAR = rf'(?:"({_CHARS})"|(-?(?:0|[1-9][0-9]{{0,17}})){_END}|(true|false|null){_END})'
_VALUE = rf"(?:{_SCALAR}(?:{_SPACE}(,)(?!{_SPACE}[\]}}]))?|[\[{{])"
_MEMBER = re.compile(rf'{_SPACE}"({_CHARS})"{_SPACE}:{_SPACE}{_VALUE}')
_ITEM = re.compile(rf"{_SPACE}(){_VALUE}")
_KEY, _TEXT, _INTEGER, _WORD = 1, 2, 3, 4  # groups of _MEMBER and _ITEM; 5 is a comma
_STRING = re.compile(rf'"{_CHARS}(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{{4}}){_CHARS})*+"')
_NUMBER = re.compile(scalars.NUMBER + _END)
_NEXT = {closer: re.compile(rf"{_SPACE}(?:({re.escape(closer)})|(,){_SPACE}({re.escape(closer)})?)") for closer in "]}"}
_WORDS: Final = {"true": True, "false": False, "null": None}
_CLOSED, _TRAILING = 1, 3  # groups of _NEXT; 2 is the comma
_NO_KEY = ""  # in the trail of an object while its key is not known
_DECODER = json.JSONDecoder(strict=False)  # strict would refuse a tab inside a text, which harms nobody


class Unreadable:
    """The value of a node whose text was faulty; the fault is already recorded."""


UNREADABLE: Final = Unreadable()

Plain = str | int | float | bool | None
Value = Plain | Unreadable | list["Node"] | dict[str, "Node"]


@dataclass(slots=True)
class Node:
    """A value and where it starts; ``key_at`` is where its key starts when it is a member of an object."""

    value: Value
    at: int
    key_at: int = -1

    def plain(self) -> object:
        """The value as JSON has it, without places."""
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        return self.value


@dataclass(frozen=True)
class Flaw:
    """A fault of the JSON itself: where, inside what, what to do."""

    path: tuple[PathStep, ...]
    at: int
    message: str
    hint: str


@dataclass(frozen=True)
class Located:
    """A text that was read. ``root`` is None when the text could not be read to its end."""

    root: Node | None
    flaws: Sequence[Flaw]
    positions: Positions


def locate(text: str) -> Located:
    """Read ``text``; never raises, whatever the text."""
    scanner = _Scanner(text)
    root = scanner.document()
    return Located(root, scanner.flaws, scanner.positions)


class _Stop(Exception):
    """Reading cannot go on; the flaw is recorded."""


class _Scanner:
    """One pass over one text. ``pos`` is the offset reached, ``trail`` the path to it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 1 if text.startswith(BOM) else 0
        self.trail: list[PathStep] = []
        self.flaws: list[Flaw] = []
        self.positions = Positions(text)
        self.values = 0

    def document(self) -> Node | None:
        """The object that the text is, or None when it could not be read to the end."""
        try:
            start = self._skip()
            if not self.text.startswith("{", start):
                self._report(diagnose.beginning(self.text, start))
            root, _ = self._value()
            end = self._skip()
            if end < len(self.text):
                message = "the document goes on after its end"
                self._report(Trouble(end, message, "Remove what follows the last bracket, or mend the brackets."))
        except _Stop:
            return None
        return root

    def _skip(self) -> int:
        """Pass white space and comments; the offset of what follows."""
        found = _GAP.match(self.text, self.pos)
        self.pos = found.end() if found else self.pos
        return self.pos

    def _report(self, trouble: Trouble) -> Unreadable:
        """Record a trouble and move to where reading resumes; raises ``_Stop`` when it does not."""
        path = tuple(self.trail if self.trail[-1:] != [_NO_KEY] else self.trail[:-1])
        self.flaws.append(Flaw(path, trouble.at, trouble.message, trouble.hint))
        if trouble.resume is None or len(self.flaws) >= MAX_FLAWS:
            raise _Stop
        self.pos = trouble.resume
        return UNREADABLE

    def _value(self) -> tuple[Node, bool]:
        """The value that follows, and whether a comma was passed after it."""
        found = _ITEM.match(self.text, self.pos)
        return (self._unusual_value(), False) if found is None else self._node(found)

    def _node(self, found: re.Match[str]) -> tuple[Node, bool]:
        """The value that ``found`` (of _MEMBER or _ITEM) is, or is the opening bracket of; as :meth:`_value`."""
        self.pos = found.end()
        _, text, integer, word, comma = found.groups()
        if text is not None:
            return Node(text, found.start(_TEXT) - 1), comma is not None
        if integer is not None:
            return Node(int(integer), found.start(_INTEGER)), comma is not None
        if word is not None:
            return Node(_WORDS[word], found.start(_WORD)), comma is not None
        at = self.pos - 1
        if len(self.trail) >= MAX_DEPTH:
            message = f"more than {MAX_DEPTH} levels of brackets"
            self._report(Trouble(at, message, "Nest less deeply; a job document needs about five."))
        return Node(self._object(at) if self.text[at] == "{" else self._list(at), at), False

    def _object(self, at: int) -> dict[str, Node]:
        """The members of the object whose ``{`` was at ``at``."""
        members: dict[str, Node] = {}
        self.trail.append(_NO_KEY)
        going = not self._closes("}")
        key: str | None
        while going:
            found = _MEMBER.match(self.text, self.pos)
            if found is not None:
                key = found[_KEY]
                self.trail[-1] = key
                node, going = self._node(found)
                node.key_at = found.start(_KEY) - 1
            else:
                key, node, going = self._unusual_member(at)
            if key in members:
                self._report(self._duplicate(members[key], node))
            elif key is not None:
                members[key] = node
            self.values += 1
            if self.values > MAX_VALUES:
                self._too_many()
            going = going or self._goes_on("}", at)
        self.trail.pop()
        return members

    def _list(self, at: int) -> list[Node]:
        """The items of the list whose ``[`` was at ``at``."""
        items: list[Node] = []
        self.trail.append(0)
        going = not self._closes("]")
        while going:
            node, going = self._value()
            items.append(node)
            self.values += 1
            if self.values > MAX_VALUES:
                self._too_many()
            going = going or self._goes_on("]", at)
            self.trail[-1] = len(items)
        self.trail.pop()
        return items

    def _too_many(self) -> None:
        self._report(Trouble(self.pos, f"more than {MAX_VALUES} values", "Shorten the document, or split the job."))

    def _closes(self, closer: str) -> bool:
        """Whether the bracket closes right here; passes it."""
        if self.text.startswith(closer, self._skip()):
            self.pos += 1
            return True
        return False

    def _goes_on(self, closer: str, opened_at: int) -> bool:
        """After a member: pass the comma (True) or the closing bracket (False)."""
        found = _NEXT[closer].match(self.text, self.pos)
        if found is None:
            end = self.pos
            self._report(diagnose.separator(self.text, self._skip(), end, closer, self._place(opened_at)))
            return True
        self.pos = found.end()
        if found.lastindex == _TRAILING:
            self._report(Trouble(found.start(2), "a comma after the last member", "Remove the comma.", self.pos))
            return False
        return found.lastindex != _CLOSED

    def _unusual_member(self, opened_at: int) -> tuple[str | None, Node, bool]:
        """Key and value of a member that is not plain, and whether a comma was passed after it.

        The key is None when its text is faulty.
        """
        self.trail[-1] = _NO_KEY
        at = self._skip()
        key = self._unusual_key(at, opened_at)
        end = self.pos
        if not self._closes(":"):
            self._report(diagnose.colon(self.text, self.pos, end))
        self.trail[-1] = _NO_KEY if key is None else key
        node, comma = self._value()
        node.key_at = at
        return key, node, comma

    def _duplicate(self, first: Node, second: Node) -> Trouble:
        message = f"this key is already given at {self._place(first.key_at)}"
        return Trouble(second.key_at, message, "Keep one of the two.", self.pos)

    def _unusual_key(self, at: int, opened_at: int) -> str | None:
        """A key with escapes, or one written wrongly; None when its text is faulty."""
        if at >= len(self.text):
            self._report(diagnose.ends(self.text, "}", self._place(opened_at)))
        if self.text[at] == '"':
            value = self._string(at)
            return value if isinstance(value, str) else None
        wrong = diagnose.key(self.text, at)
        if wrong is None:
            self._report(diagnose.unexpected(self.text, at, "a key in double quotes"))
            raise _Stop
        self._report(wrong[1])
        return wrong[0]

    def _unusual_value(self) -> Node:
        """A string with escapes, a number that is no short integer, or something that is no value."""
        at = self._skip()
        if self.text.startswith('"', at):
            return Node(self._string(at), at)
        found = _NUMBER.match(self.text, at)
        if found is None:
            return Node(self._report(diagnose.value(self.text, at)), at)
        self.pos = found.end()
        number = scalars.number(found[0], at)
        if isinstance(number, Trouble):
            number = Trouble(at, number.message, number.hint, self.pos)
            return Node(self._report(number), at)
        return Node(number, at)

    def _string(self, at: int) -> str | Unreadable:
        """The string with escapes that starts at ``at``."""
        found = _STRING.match(self.text, at)
        if found is None:
            return self._report(diagnose.value(self.text, at))
        self.pos = found.end()
        value: str = _DECODER.raw_decode(self.text, at)[0]
        trouble = scalars.content(value, at)
        if trouble is not None:
            return self._report(Trouble(at, trouble.message, trouble.hint, self.pos))
        return value

    def _place(self, at: int) -> str:
        line, column = self.positions.line_column(at)
        return f"line {line}, column {column}"
