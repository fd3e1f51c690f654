"""Secrets out of what tasks print and engines say: every occurrence becomes as many ``*`` as it had bytes. Pure.

A byte is covered exactly when it belongs to an occurrence of a value in the whole text. So what is shown of a byte
depends on its neighbourhood alone, never on how the text was cut into pieces or where reading began, and
positions stay what they are.

The search is Aho and Corasick's: one pass for any number of values, and it knows after every byte how much of the end
may still become an occurrence. Only that much is held back, so that a prompt of a living program is seen at once
(the libraries for it find occurrences in a finished text, without telling that).
Source: A. V. Aho, M. J. Corasick, "Efficient string matching", CACM 18 (1975).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any
from urllib.parse import quote

from pai_backend.model.text import Text, with_each

SHORTEST = 4
"""Bytes of the shortest value that is looked for: shorter ones are parts of ordinary words and numbers."""

SHORTEST_BASE64 = 8
"""Characters of the shortest piece of base64 that is looked for, for the same reason."""

BUDGET = 65_536
"""Bytes of all spellings that one scrubber looks for, above the values themselves: about 10 MiB of tables."""


def texts(value: Any) -> Iterator[str]:
    """Every text and number in a value of a document, as templates print it; true, false and null are no secret."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts(inner)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def spellings(value: str) -> Iterator[bytes]:
    """How a value appears in output, as it is first: in JSON, in a shell's single quotes, in a URL, inside base64."""
    plain = value.encode("utf-8", "surrogatepass")
    yield plain
    yield json.dumps(value)[1:-1].encode()
    yield json.dumps(value, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
    yield plain.replace(b"'", b"'\\''")
    yield quote(plain, safe="").encode()
    yield quote(plain, safe="/").encode()
    for shift in range(3):
        # Within longer base64 a value can begin at three places of a group; characters shared with neighbours are left.
        coded = base64.b64encode(b"\0" * shift + plain).rstrip(b"=")
        whole = coded[(0, 2, 3)[shift] : len(coded) - (1 if (shift + len(plain)) % 3 else 0)]
        if len(whole) >= SHORTEST_BASE64:
            yield whole


class Scrubber:
    """Finds the given values in texts. Holds them; its ``repr`` does not show them. Safe in threads."""

    def __init__(self, values: Iterable[str]) -> None:
        """White space around a value is no part of it; one of less than :data:`SHORTEST` bytes is not looked for."""
        found: dict[bytes, None] = {}
        spent = 0
        stripped = sorted({value.strip() for value in values}, key=len)
        forms = [list(spellings(value)) for value in stripped]
        for plain, *_ in forms:
            found[plain] = None
        for form in (form for _, *others in forms for form in others):
            spent += len(form) if form not in found else 0
            if spent <= BUDGET:
                found[form] = None
        self._patterns = tuple(pattern for pattern in found if len(pattern) >= SHORTEST)

    def __repr__(self) -> str:
        """How many patterns it has, not which."""
        return f"Scrubber({len(self._patterns)} patterns)"

    @property
    def reach(self) -> int:
        """How many bytes before a place, and behind it, decide whether it is covered."""
        return max(map(len, self._patterns), default=1) - 1

    @property
    def size(self) -> int:
        """How many states its tables have at most, about 150 bytes each."""
        return 1 + sum(map(len, self._patterns))

    @cached_property
    def _automaton(self) -> _Automaton:
        """Tables for texts that come in pieces, or that a value is in: most messages need none."""
        return _Automaton(self._patterns)

    def prepare(self) -> Scrubber:
        """Make the tables now, which many long values take milliseconds for; itself, for a thread to give back."""
        _ = self._automaton
        return self

    def begin(self, *, cut: bool = False) -> Scrubbing:
        """A pass over one text. ``cut``: the text begins in the middle of an older one whose beginning is lost."""
        return Scrubbing(self._automaton, self._patterns if cut else ())

    def whole(self, data: bytes) -> bytes:
        """A finished text, scrubbed; as long as before."""
        if not any(pattern in data for pattern in self._patterns):
            return data
        work = self.begin()
        return work.feed(data) + work.end()

    def text(self, text: str) -> str:
        """A message, scrubbed; has one ``*`` for each byte of UTF-8 that it hides.

        It keeps its template unless a secret is in that, or reaches over the end of an argument.
        """
        covered = self.whole(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
        if covered == text:
            return text
        if isinstance(text, Text):
            made = with_each(text, self.text)
            return made if made == covered else covered
        return covered


class Scrubbing:
    """One pass over a text that comes in pieces."""

    def __init__(self, automaton: _Automaton, cut_patterns: Iterable[bytes]) -> None:
        self._automaton = automaton
        self._state = 0
        self._held = bytearray()
        self._position = 0
        # Patterns of which the text may begin with a later part, and how far each has been followed.
        self._cut = [(pattern, start) for pattern in cut_patterns for start in range(1, len(pattern) - SHORTEST + 1)]

    def feed(self, data: bytes) -> bytes:
        """What is certain by now: all but the end that may still belong to a secret."""
        out = self._held + data
        self._cover_cut(out, data)
        self._state = self._automaton.cover(out, len(self._held), self._state)
        keep = len(out) if self._cut else self._automaton.depth[self._state]
        self._held = out[len(out) - keep :]
        return bytes(out[: len(out) - keep])

    def end(self) -> bytes:
        """What was held back: nothing more comes."""
        rest, self._held, self._cut = bytes(self._held), bytearray(), []
        return rest

    def _cover_cut(self, out: bytearray, data: bytes) -> None:
        """Follow the patterns whose beginning may be lost; while one is followed, everything is held back."""
        for byte in data:
            if not self._cut:
                return
            self._position += 1
            self._cut = [(pattern, at + 1) for pattern, at in self._cut if pattern[at] == byte]
            if any(at == len(pattern) for pattern, at in self._cut):
                out[: self._position] = b"*" * self._position
            self._cut = [(pattern, at) for pattern, at in self._cut if at < len(pattern)]


class _Automaton:
    """Where the search is after each byte. State 0: nothing has begun.

    ``depth`` of a state: how many of the last bytes are the beginning of a pattern. ``ends``: how long the longest
    pattern is that ends here; 0 for none.
    """

    def __init__(self, patterns: Iterable[bytes]) -> None:
        self.depth, self.ends, self._fail = [0], [0], [0]
        self._next: dict[int, int] = {}  # state << 8 | byte -> state
        prefixes: set[bytes] = set()
        for pattern in patterns:
            self._add(pattern)
            prefixes.add(pattern[:SHORTEST])
        self._link()
        self._beginning = re.compile(_any_of(prefixes) if prefixes else b"(?!)", re.DOTALL)

    def _add(self, pattern: bytes) -> None:
        state = 0
        for byte in pattern:
            key = state << 8 | byte
            if key not in self._next:
                self._next[key] = len(self.depth)
                self.depth.append(self.depth[state] + 1)
                self.ends.append(0)
                self._fail.append(0)
            state = self._next[key]
        self.ends[state] = len(pattern)

    def _link(self) -> None:
        """For each state the one to fall back to: the longest other beginning that its bytes end with."""
        for key, state in sorted(self._next.items(), key=lambda edge: self.depth[edge[1]]):
            if self.depth[state] > 1:
                fallback = self._fail[state] = self._step(self._fail[key >> 8], key & 255)
                self.ends[state] = self.ends[state] or self.ends[fallback]

    def _step(self, state: int, byte: int) -> int:
        while state and state << 8 | byte not in self._next:
            state = self._fail[state]
        return self._next.get(state << 8 | byte, 0)

    def cover(self, out: bytearray, at: int, state: int) -> int:
        """Search ``out`` from ``at`` on and cover what is found, in place; the state after the last byte."""
        data = bytes(out)  # what is searched must not change under the search
        first = last = at  # an interval that is to be covered, not yet written: occurrences may overlap
        while at < len(data):
            if state == 0:
                found = self._beginning.search(data, at)
                at = found.start() if found else max(at, len(data) - SHORTEST + 1)
                if at == len(data):
                    break
            state = self._step(state, data[at])
            at += 1
            if length := self.ends[state]:
                if at - length > last:
                    out[first:last] = b"*" * (last - first)
                    first = at - length
                first, last = min(first, at - length), at
        out[first:last] = b"*" * (last - first)
        return state


def _any_of(words: Iterable[bytes]) -> bytes:
    """A regular expression for the words, which are of one length, as a tree: much faster than one beside the other."""
    rests: dict[int, set[bytes]] = {}
    for word in words:
        if word:
            rests.setdefault(word[0], set()).add(word[1:])
    if not rests:
        return b""
    return b"(?:%b)" % b"|".join(re.escape(bytes([first])) + _any_of(rest) for first, rest in sorted(rests.items()))
