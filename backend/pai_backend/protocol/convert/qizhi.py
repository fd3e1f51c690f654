"""The variables of QIZHI, which OpenPAI has under other names: ``QIZHI_JOB_NAME`` is its ``PAI_JOB_NAME``.

Rewritten is what the task's own shell expands, and nothing that it passes on as it is: a text in single quotes may
be read by anything. For the names that are left so, the command sets the old variable from the new one first.
Source: the QIZHI guide's table, which is OpenPAI's with another prefix and one underscore more before a port's label.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

_NAME = re.compile(r"(?<![A-Za-z0-9_])QIZHI_[A-Za-z0-9_]+")
_EXPANDED = re.compile(r"\$\{?[!#]?(QIZHI_[A-Za-z0-9_]+)")
_ASSIGNED = re.compile(r"(?:^|[\s;&|(])(QIZHI_[A-Za-z0-9_]+)\+?=")
_OWN_PORTS = re.compile(r"CONTAINER_HOST__(.+)_PORT_LIST")
_DIRECTORY = re.compile(r"\$QIZHI_(DEFAULT_FS_URI|JOB_NAME|USER_NAME|USERNAME)")


@dataclass(frozen=True)
class Rewritten:
    """A command with OpenPAI's variables. ``changed`` are the old names rewritten, ``left`` those that stayed."""

    command: str
    changed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def directory(text: str) -> str:
    """A directory field with OpenPAI's variables in the place of those that are filled in there."""
    return _DIRECTORY.sub(r"$PAI_\1", text)


def pai_name(name: str, labels: Collection[str]) -> str:
    """OpenPAI's name of the variable ``name``; ``labels`` are those of the task's ports."""
    rest = name.removeprefix("QIZHI_")
    own = _OWN_PORTS.fullmatch(rest)
    if own is not None and own[1] in labels and f"_{own[1]}" not in labels:
        rest = f"CONTAINER_HOST_{own[1]}_PORT_LIST"
    return f"PAI_{rest}"


def rewritten(command: str, labels: Collection[str]) -> Rewritten:
    """``command`` with OpenPAI's variables; names that it sets itself are its own and stay."""
    if "QIZHI_" not in command:
        return Rewritten(command)
    own = set(_ASSIGNED.findall(command))
    parts: list[str] = []
    changed: dict[str, None] = {}
    done = 0
    for at in expansions(command):
        found = _EXPANDED.match(command, at)
        if found is not None and found[1] not in own:
            parts += command[done : found.start(1)], pai_name(found[1], labels)
            done = found.end()
            changed[found[1]] = None
    result = "".join((*parts, command[done:]))
    left = [name for name in dict.fromkeys(_NAME.findall(result)) if name not in own]
    exports = "".join(f'export {name}="${{{pai_name(name, labels)}-}}"\n' for name in left)
    return Rewritten(exports + result, tuple(changed), tuple(left))


_ANSI_C = re.compile(r"\$'(?:[^'\\]++|\\.|)*+'?", re.DOTALL)
_SINGLE = re.compile(r"'[^']*+'?")
_COMMENT = re.compile(r"#[^\n]*+")
_HERE = re.compile(r"<<(-?)[ \t]*+(?:(['\"])([^'\"\n]++)\2|(\\?)([^\s'\"\\<>|&;()]++))")
_BEFORE_COMMENT = frozenset(" \t\n;&|(")
_WORD, _DOUBLE, _BACKTICK = "(", '"', "`"


@dataclass(frozen=True)
class _Here:
    """A here-document: its delimiter, whether that is quoted, and whether tabs may stand before it."""

    delimiter: str
    is_quoted: bool
    is_indented: bool

    def end(self, command: str, at: int) -> int:
        """Where the body that begins at ``at`` ends: with the line of its delimiter, or with the text."""
        lead = r"\t*+" if self.is_indented else ""
        found = re.compile(rf"^{lead}{re.escape(self.delimiter)}$", re.MULTILINE).search(command, at)
        return len(command) if found is None else found.end()


def expansions(command: str) -> Iterator[int]:
    """The offsets of each ``$`` of ``command`` that the shell itself expands, in order; linear in its length.

    Enough of bash's quoting to tell ``"$NAME"`` from ``'$NAME'``, in the nesting that commands have; the rules of its
    manual, sections "Quoting", "Shell Expansions" and "Here Documents". A text that is no valid shell ends somewhere,
    too.
    """
    around = [_WORD]  # the quoting around the place, innermost last
    here: list[_Here] = []  # whose bodies begin on the next line
    at = 0
    while at < len(command):
        char, inner = command[at], around[-1]
        if char == "\\":
            at += 2
            continue
        if char == "\n" and here and inner != _DOUBLE:
            for document in here:
                start, at = at + 1, document.end(command, at + 1)
                if not document.is_quoted:
                    yield from (start + place for place in _in_body(command[start:at]))
            here = []
            continue
        skipped = _skipped(command, at, inner)
        if skipped > at:
            at = skipped
            continue
        if char == "<" and inner != _DOUBLE and (found := _here(command, at)) is not None:
            here.append(_Here(found[3] or found[5], bool(found[2] or found[4]), bool(found[1])))
            at = found.end()
            continue
        if char == "$":
            yield at
        _nest(command, at, around)
        at += 2 if command.startswith("$(", at) else 1


def _skipped(command: str, at: int, inner: str) -> int:
    """The end of what is literal at ``at`` whatever it holds; ``at`` when nothing is."""
    if inner == _DOUBLE:
        return at
    for char, pattern in (("'", _SINGLE), ("$", _ANSI_C), ("#", _COMMENT)):
        if command[at] == char and (found := pattern.match(command, at)) is not None:
            is_literal = char != "#" or at == 0 or command[at - 1] in _BEFORE_COMMENT
            return found.end() if is_literal else at
    return at


def _here(command: str, at: int) -> re.Match[str] | None:
    """The beginning of a here-document at ``at``; ``<<<`` is not one."""
    if command.startswith("<<<", at) or command[at - 1 : at] == "<":
        return None
    return _HERE.match(command, at)


def _nest(command: str, at: int, around: list[str]) -> None:
    """Enter or leave the quoting that begins or ends at ``at``."""
    char, inner = command[at], around[-1]
    if char == '"':
        if inner == _DOUBLE:
            around.pop()
        else:
            around.append(_DOUBLE)
    elif char == "`":
        if inner == _BACKTICK:
            around.pop()
        else:
            around.append(_BACKTICK)
    elif command.startswith("$(", at) or (char == "(" and inner != _DOUBLE):
        around.append(_WORD)
    elif char == ")" and inner == _WORD and len(around) > 1:
        around.pop()


def _in_body(body: str) -> Iterator[int]:
    """The offsets of each ``$`` of a here-document that is expanded: quotes mean nothing in it, escapes do."""
    at = 0
    while at < len(body):
        if body[at] == "$":
            yield at
        at += 2 if body[at] == "\\" else 1
