"""A YAML text, which may hold several documents, and the one of them that is a job.

The protocol's own page has two: a description of the fields, which is no valid YAML, and an example. So
each document is read for itself, and one that cannot be read stops nothing when another is the job.
A line ``---`` or ``...`` ends a document wherever it stands (YAML 1.2, section 9.1.2), so the text is cut
there first. Directives are looked at here alone: the parser's time for many of them grows with their square.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from pai_backend.protocol import yaml_trouble
from pai_backend.protocol.diagnose import Trouble
from pai_backend.protocol.locate import Flaw, Node
from pai_backend.protocol.position import BOM, Positions
from pai_backend.protocol.yaml_tree import Budget, Stop, build

MAX_DOCUMENTS: Final = 32
"""Documents of one text; the protocol's own page has two."""

# Each begins with one plain character: a search for it is some 80 times faster than one for either.
_MARKERS = tuple(re.compile(rf"{begin}(---|\.\.\.)(?=[ \t\r\n]|\Z)") for begin in (r"\n", r"\r"))
_FIRST_MARKER = re.compile(r"\ufeff?(---|\.\.\.)(?=[ \t\r\n]|\Z)")
_BLANK = re.compile(r"(?:[ \t]*+(?>#[^\r\n]*+|)(?:[\r\n]++|\Z)|)*+")
_DIRECTIVE = re.compile(r"%([^\r\n]*+)(?:\r\n?|\n|\Z)")
_VERSION = re.compile(r"YAML[ \t]+1\.[0-9]{1,3}[ \t]*+(?:#.*+)?")
_JOB_LINE = re.compile(r"""(?:\A|(?<=[\r\n]))(?:["']?)type(?:["']?)[ \t]*+:[ \t]*+(?:["']?)job\b""")


@dataclass
class _Part:
    """One document of the text: where it is and what it is, or why it cannot be read."""

    start: int
    end: int
    root: Node | None = None
    flaws: list[Flaw] = field(default_factory=list)

    def is_empty(self) -> bool:
        """Whether there is nothing in it."""
        return self.root is None or self.root.value is None

    def is_job(self, text: str) -> bool:
        """Whether it says ``type: job``; one that cannot be read says so by a line of its own."""
        if self.root is not None and isinstance(self.root.value, dict):
            kind = self.root.value.get("type")
            return kind is not None and kind.value == "job"
        return bool(self.flaws) and _JOB_LINE.search(text, self.start, self.end) is not None

    def has_roles(self) -> bool:
        """Whether it looks like a job that forgot to say so."""
        return self.root is not None and isinstance(self.root.value, dict) and "taskRoles" in self.root.value


@dataclass(frozen=True)
class Stream:
    """A text that was read. ``root`` is None when no job could be read; ``others`` counts the documents beside it."""

    root: Node | None
    flaws: Sequence[Flaw]
    positions: Positions
    others: int = 0


def locate_yaml(text: str) -> Stream:
    """Read ``text``; never raises, whatever the text."""
    positions = Positions(text)
    trouble = yaml_trouble.character(text)
    if trouble is not None:
        return Stream(None, [_flaw(trouble)], positions)
    flaws: list[Flaw] = []
    parts = _parts(text, flaws)
    if flaws:
        return Stream(None, flaws, positions)
    budget = Budget()
    for part in parts:
        try:
            part.root = build(text, part.start, part.end, positions, budget, part.flaws)
        except Stop:
            part.root = None
        if budget.nodes < 0:
            return Stream(None, part.flaws, positions)
    return _chosen(text, [part for part in parts if part.flaws or not part.is_empty()], positions)


def _chosen(text: str, parts: list[_Part], positions: Positions) -> Stream:
    """The part that is the job."""
    if not parts:
        hint = "Write a job document, or choose another file."
        return Stream(None, [Flaw((), len(text), "the document is empty", hint)], positions)
    jobs = parts if len(parts) == 1 else [part for part in parts if part.is_job(text)]
    jobs = jobs or [part for part in parts if part.has_roles()]
    if len(jobs) > 1:
        line, _ = positions.line_column(jobs[0].start)
        message = f"a second job; the first begins at line {line}"
        return Stream(None, [Flaw((), jobs[1].start, message, "Submit them one by one.")], positions)
    if not jobs:
        broken = [flaw for part in parts for flaw in part.flaws]
        hint = "Write type: job in the one that is."
        return Stream(None, broken or [Flaw((), 0, f"none of the {len(parts)} documents is a job", hint)], positions)
    return Stream(jobs[0].root, jobs[0].flaws, positions, len(parts) - 1)


def _parts(text: str, flaws: list[Flaw]) -> list[_Part]:
    """The documents of ``text``, with their ``---``; adds what is wrong with the lines between them."""
    parts: list[_Part] = []
    at = 1 if text.startswith(BOM) else 0
    explicit = False
    markers = _markers(text)
    if len(markers) > 2 * MAX_DOCUMENTS:
        flaws.append(Flaw((), markers[-1][0], f"more than {MAX_DOCUMENTS} documents", "Submit jobs one by one."))
        return []
    for end, follows in (*markers, (len(text), "")):
        if explicit or not _prologue(text, at, end, follows == "---", flaws):
            parts.append(_Part(at, end))
        explicit = follows == "---"
        at = end if explicit else end + len(follows)
    return parts


def _markers(text: str) -> list[tuple[int, str]]:
    """Where lines --- and ... begin, in order, and which it is: all, or a few more than are allowed."""
    first = _FIRST_MARKER.match(text)
    found = [first] if first is not None else []
    for pattern in _MARKERS:
        found += islice(pattern.finditer(text), 2 * MAX_DOCUMENTS + 1)
    return sorted((one.start(1), one[1]) for one in found)


def _prologue(text: str, at: int, end: int, begins: bool, flaws: list[Flaw]) -> bool:
    """Whether ``text[at:end]`` is nothing but directives and comments before a ``---`` (``begins``) or an end."""
    at = _skip(text, at, end)
    first = at
    while at < end and (found := _DIRECTIVE.match(text, at, end)) is not None:
        if not _VERSION.fullmatch(found[1].rstrip()):
            hint = "Remove the line; job documents need no directive."
            flaws.append(_flaw(Trouble(at, "a directive that is not %YAML 1.2", hint)))
            return True
        at = _skip(text, found.end(), end)
    if at > first and (at < end or not begins):
        flaws.append(_flaw(Trouble(at, "no line --- after the directives", "Write --- on a line before the document.")))
        return True
    return at >= end


def _skip(text: str, at: int, end: int) -> int:
    """Pass blank lines and comments."""
    found = _BLANK.match(text, at, end)
    return at if found is None else found.end()


def _flaw(trouble: Trouble) -> Flaw:
    return Flaw((), trouble.at, trouble.message, trouble.hint)
