"""A JSON reader that keeps the place of every key and value, and goes on after a fault where it can.

Read are JSON (RFC 8259) with ``//`` and ``/* */`` comments, a byte order mark and a comma after the last
member, because documents in the wild have them: the QIZHI guide's own example is full of comments.
Refused are duplicate keys, NaN, Infinity and numbers nothing could keep, nesting beyond 64 and more than
25 000 values: the limits keep any text of the largest size cheap to read, from any author.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pai_backend.model.text import Text
from pai_backend.protocol import diagnose, tree
from pai_backend.protocol.diagnose import SyntaxTrouble
from pai_backend.protocol.tree import BOM, MAX_DEPTH, MAX_FLAWS, UNREADABLE, Flaw, Node, PathStep, Positions, Unreadable

MAX_BRACKETS: Final = 6_000
"""Objects and lists, dearer to read than other values; a thousand roles with two ports each have 4 000."""
MAX_VALUES: Final = 25_000
"""A role with all its fields and two ports is 21 values, so a thousand roles stay below it.

A text with escapes counts twice, because it is twice as dear to read.
"""

# Atomic groups and possessive repeats: a long run of comments must not make the match try its pieces twice. A repeated
# group ends with an empty alternative, here and in the other readers, because Python 3.11.2 needs it (gh-106052).
_SPACE = r"[ \t\r\n]*+(?:/(?>/[^\r\n]*+|\*[^*]*+\*++(?:[^/*][^*]*+\*++|)*+/)[ \t\r\n]*+|)*+"
_PLAIN = r"[^\"\\\x00-\x08\x0a-\x1f]*+"
_CHARS = rf'{_PLAIN}(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{{4}}){_PLAIN}|)*+'
_GAP = re.compile(_SPACE)
_END = r"(?![\w.+$-])"
_SCALAR = rf'(?:"({_CHARS})"|({tree.NUMBER}){_END}|(true|false|null){_END})'
_VALUE = rf"(?:{_SCALAR}(?:{_SPACE}([,\]}}]))?|[\[{{])"
_MEMBER = re.compile(rf'{_SPACE}"({_CHARS})"{_SPACE}:{_SPACE}{_VALUE}')
_ITEM = re.compile(rf"{_SPACE}(){_VALUE}")
_KEY, _TEXT, _NUMBER, _WORD = 1, 2, 3, 4  # groups of _MEMBER and _ITEM; 5 is what follows the value
_STRING = re.compile(rf'"{_CHARS}"')
_NEXT = re.compile(rf"{_SPACE}([,\]}}])")
_WORDS: Final = {"true": True, "false": False, "null": None}
_decoded = json.JSONDecoder(strict=False).raw_decode  # strict would refuse a tab inside a text, which is harmless
_NO_KEY = ""  # in the trail of an object while its key is not known


@dataclass(frozen=True)
class Located:
    """A text that was read. ``root`` is None when the text could not be read to its end.

    ``slips`` are the commas after a last member: no JSON, but there is one way only to mean them.
    """

    root: Node | None
    flaws: Sequence[Flaw]
    positions: Positions
    slips: Sequence[Flaw] = ()


def locate(text: str) -> Located:
    """Read ``text``; never raises, whatever the text."""
    scanner = _Scanner(text)
    root = scanner.document()
    return Located(root, scanner.flaws, scanner.positions, scanner.slips)


class _Stop(Exception):
    """Reading cannot go on; the flaw is recorded."""


class _Scanner:
    """One pass over one text. ``pos`` is the offset reached, ``trail`` the path to it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 1 if text.startswith(BOM) else 0
        self.trail: list[PathStep] = []
        self.flaws: list[Flaw] = []
        self.slips: list[Flaw] = []
        self.positions = Positions(text)
        self.values = self.brackets = 0

    def document(self) -> Node | None:
        """The object that the text is, or None when it could not be read to the end."""
        try:
            start = self._skip()
            if not self.text.startswith("{", start):
                self._report(diagnose.beginning(self.text, start))
            self.pos = start + 1
            root = Node(self._object(start), start)
            end = self._skip()
            if end < len(self.text):
                message = Text("the document goes on after its end")
                self._report(
                    SyntaxTrouble(end, message, Text("Remove what follows the last bracket, or fix the brackets."))
                )
        except _Stop:
            return None
        return root

    def _skip(self) -> int:
        """Pass white space and comments; the offset of what follows."""
        found = _GAP.match(self.text, self.pos)
        self.pos = found.end() if found else self.pos
        return self.pos

    def _path(self) -> tuple[PathStep, ...]:
        return tuple(self.trail if self.trail[-1:] != [_NO_KEY] else self.trail[:-1])

    def _report(self, trouble: SyntaxTrouble) -> Unreadable:
        """Record a trouble and move to where reading resumes; raises ``_Stop`` when it does not."""
        self.flaws.append(Flaw(self._path(), trouble.at, trouble.message, trouble.hint))
        if trouble.resume is None or len(self.flaws) >= MAX_FLAWS:
            raise _Stop
        self.pos = trouble.resume
        return UNREADABLE

    def _object(self, at: int) -> dict[str, Node]:
        """The members of the object whose ``{`` was at ``at``."""
        members: dict[str, Node] = {}
        trail, match, text = self.trail, _MEMBER.match, self.text
        trail.append(_NO_KEY)
        key: str | None
        going = True
        while going:
            found = match(text, self.pos)
            if found is not None:
                key, key_at = found[_KEY], found.start(_KEY) - 1
                if "\\" in key:
                    self.pos = found.end()
                    key = _text_or_none(self._unescaped(key_at))
                trail[-1] = _NO_KEY if key is None else key
                node, after = self._node(found, key_at)
            elif self._closes("}"):
                break
            else:
                key, node, after = self._faulty_member(at)
            if key in members:
                self._report(self._duplicate(members[key], node))
            elif key is not None:
                members[key] = node
            if self.values > MAX_VALUES:
                self._too_many()
            going = after == "," or self._goes_on(after, "}", at)
        trail.pop()
        return members

    def _list(self, at: int) -> list[Node]:
        """The items of the list whose ``[`` was at ``at``."""
        items: list[Node] = []
        trail, match, text = self.trail, _ITEM.match, self.text
        trail.append(0)
        going = True
        while going:
            found = match(text, self.pos)
            if found is not None:
                node, after = self._node(found)
            elif self._closes("]"):
                break
            else:
                node, after = self._faulty_value(), None
            items.append(node)
            if self.values > MAX_VALUES:
                self._too_many()
            going = after == "," or self._goes_on(after, "]", at)
            trail[-1] = len(items)
        trail.pop()
        return items

    def _node(self, found: re.Match[str], key_at: int = -1) -> tuple[Node, str | None]:
        """The value that ``found`` (of _MEMBER or _ITEM) is, or is the opening bracket of, and what follows it.

        What follows is a comma or a closing bracket, which is passed, or None: then it is not known yet.
        """
        self.pos = found.end()
        self.values += 1
        _, text, number, word, after = found.groups()
        if text is not None:
            at = found.start(_TEXT) - 1
            return Node(text if "\\" not in text else self._unescaped(at), at, key_at), after
        if number is not None:
            at = found.start(_NUMBER)
            # Most numbers are short integers; only the others need a closer look.
            plain = len(number) <= 18 and number.isdigit()
            return Node(int(number) if plain else self._number(number, at), at, key_at), after
        if word is not None:
            return Node(_WORDS[word], found.start(_WORD), key_at), after
        at = self.pos - 1
        return Node(self._container(at), at, key_at), None

    def _container(self, at: int) -> dict[str, Node] | list[Node]:
        """The object or list whose opening bracket at ``at`` was passed."""
        self.brackets += 1
        if self.brackets > MAX_BRACKETS:
            hint = Text("Shorten the document, or split the job.")
            self._report(
                SyntaxTrouble(at, Text("more than {max_brackets} objects and lists", max_brackets=MAX_BRACKETS), hint)
            )
        if len(self.trail) >= MAX_DEPTH:
            message = Text("more than {most} levels of brackets", most=MAX_DEPTH)
            self._report(SyntaxTrouble(at, message, Text("Nest less deeply; a job document needs about five.")))
        return self._object(at) if self.text[at] == "{" else self._list(at)

    def _too_many(self) -> None:
        hint = Text("Shorten the document, or split the job.")
        self._report(SyntaxTrouble(self.pos, Text("more than {max_values} values", max_values=MAX_VALUES), hint))

    def _closes(self, closer: str) -> bool:
        """Whether the bracket closes where a member could stand; passes it, and notes a comma just before."""
        comma = self.pos - 1
        if not self._passes(closer):
            return False
        if self.text[comma] == ",":
            self.slips.append(
                Flaw(tuple(self.trail[:-1]), comma, Text("a comma after the last member"), Text("Remove the comma."))
            )
        return True

    def _passes(self, char: str) -> bool:
        """Whether ``char`` stands right here; passes it."""
        if self.text.startswith(char, self._skip()):
            self.pos += 1
            return True
        return False

    def _goes_on(self, after: str | None, closer: str, opened_at: int) -> bool:
        """After a member: pass the comma (True) or the closing bracket (False), if ``after`` is not that already."""
        if after is None:
            found = _NEXT.match(self.text, self.pos)
            if found is None:
                end = self.pos
                self._report(diagnose.separator(self.text, self._skip(), end, closer, self._place(opened_at)))
                return True
            self.pos = found.end()
            after = found[1]
        if after not in (",", closer):
            self.pos -= 1
            self._report(diagnose.separator(self.text, self.pos, self.pos, closer, self._place(opened_at)))
        return after == ","

    def _unescaped(self, at: int) -> str | Unreadable:
        """The string with escapes that starts at ``at`` and was passed."""
        self.values += 1
        value: str = _decoded(self.text, at)[0]
        trouble = tree.content(value, at)
        return value if trouble is None else self._report(replace(trouble, resume=self.pos))

    def _number(self, raw: str, at: int) -> int | float | Unreadable:
        """The number that starts at ``at`` and was passed."""
        number = tree.number(raw, at)
        return number if not isinstance(number, SyntaxTrouble) else self._report(replace(number, resume=self.pos))

    def _faulty_member(self, opened_at: int) -> tuple[str | None, Node, str | None]:
        """Key and value of a member of which one is faulty, and what follows it as :meth:`_node` says.

        The key is None when its text is faulty.
        """
        self.trail[-1] = _NO_KEY
        at = self._skip()
        key = self._key(at, opened_at)
        end = self.pos
        if not self._passes(":"):
            self._report(diagnose.colon(self.text, self.pos, end))
        self.trail[-1] = _NO_KEY if key is None else key
        found = _ITEM.match(self.text, self.pos)
        if found is not None:
            return key, *self._node(found, at)
        node = self._faulty_value()
        node.key_at = at
        return key, node, None

    def _duplicate(self, first: Node, second: Node) -> SyntaxTrouble:
        message = Text("this key is already given at {place}", place=self._place(first.key_at))
        return SyntaxTrouble(second.key_at, message, Text("Keep one of the two."), self.pos)

    def _key(self, at: int, opened_at: int) -> str | None:
        """The key at ``at``, however it is written; None when its text is faulty."""
        if at >= len(self.text):
            self._report(diagnose.ends(self.text, "}", self._place(opened_at)))
        found = _STRING.match(self.text, at)
        if found is not None:
            self.pos = found.end()
            return _text_or_none(self._unescaped(at))
        if self.text[at] == '"':
            self._report(diagnose.value(self.text, at))
            return None
        wrong = diagnose.key(self.text, at)
        if wrong is None:
            self._report(diagnose.unexpected(self.text, at, Text("a key in double quotes")))
            raise _Stop
        self._report(wrong[1])
        return wrong[0]

    def _faulty_value(self) -> Node:
        """What stands where a value is needed but is not one."""
        self.values += 1
        at = self._skip()
        return Node(self._report(diagnose.value(self.text, at)), at)

    def _place(self, at: int) -> Text:
        line, column = self.positions.line_column(at)
        return Text("line {line}, column {column}", line=line, column=column)


def _text_or_none(value: str | Unreadable) -> str | None:
    return value if isinstance(value, str) else None
