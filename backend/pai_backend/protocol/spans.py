"""Where the values of a document are written, from the first character to the last, whatever its syntax.

The readers keep where a value begins, which is all that a fault needs; a caller that changes a text needs its end as
well, and must see an alias as what it is. A tree of spans has both, for JSON and for YAML alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import yaml

from pai_backend.model.errors import Bug
from pai_backend.protocol import yaml_scalars, yaml_tree
from pai_backend.protocol.tree import MAX_DEPTH, Node

MAX_EVENTS: Final = 2 * yaml_tree.MAX_NODES
"""Of one YAML text: twice the keys and values that a document is read with, for its lists and objects end as well."""
_NULL_TAG: Final = "tag:yaml.org,2002:null"
_JSON_SCALAR = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+|)*+"|[-+.0-9A-Za-z]++')


@dataclass(slots=True, eq=False)
class Span:
    """A value between two offsets of a text.

    ``text`` is a scalar's value, ``members`` are an object's keys and values, ``items`` a list's; ``target`` is what
    an alias stands for. ``is_null`` tells a null from the text of the same letters.
    """

    start: int
    end: int
    text: str | None = None
    members: Sequence[tuple[Span, Span]] = ()
    items: Sequence[Span] = ()
    target: Span | None = None
    is_null: bool = False

    def value(self) -> Span:
        """What the span stands for: itself, or what an alias leads to."""
        return self if self.target is None else self.target

    def fields(self) -> Iterator[tuple[str, Span]]:
        """The members of an object by their key, those of merge keys included."""
        pending = [self]
        seen: set[int] = set()
        while pending:
            one = pending.pop().value()
            if id(one) in seen:
                continue
            seen.add(id(one))
            for key, value in one.members:
                name = key.value().text
                if name is not None:
                    yield name, value
                if name == "<<":
                    pending += value.value().items or [value]

    def within(self, *, follow: bool) -> Iterator[Span]:
        """The span itself and all values in it, each once; with ``follow`` also what its aliases stand for."""
        pending = [self]
        seen: set[int] = set()
        while pending:
            one = pending.pop()
            if follow and one.target is not None:
                one = one.target
            if id(one) in seen:
                continue
            seen.add(id(one))
            yield one
            if one.text is None:
                pending += one.items
                pending += [value for _, value in one.members]


def of_json(text: str, root: Node) -> Span:
    """The spans of a text that ``locate`` read without a flaw."""
    if isinstance(root.value, dict):
        members = [(Span(node.key_at, node.key_at, key), of_json(text, node)) for key, node in root.value.items()]
        return Span(root.at, root.at, members=members)
    if isinstance(root.value, list):
        return Span(root.at, root.at, items=[of_json(text, node) for node in root.value])
    found = _JSON_SCALAR.match(text, root.at)
    if found is None:
        raise Bug("a scalar was read where none is")
    text = root.value if isinstance(root.value, str) else found[0]
    return Span(root.at, found.end(), text, is_null=root.value is None)


def of_yaml(text: str) -> Span | None:
    """The spans of one YAML document; None when it is empty, cannot be read, or is too large."""
    try:
        return _Builder(text).root()
    except yaml.YAMLError:
        return None


@dataclass(slots=True)
class _Open:
    """A collection that is being read; ``key`` waits for its value in an object."""

    span: Span
    members: list[tuple[Span, Span]]
    items: list[Span]
    is_object: bool
    key: Span | None = None


class _Builder:
    """One pass over the events of a text. ``open`` are the collections around the place."""

    def __init__(self, text: str) -> None:
        self._next = yaml_tree.parser(text).get_event
        self._open: list[_Open] = []
        self._anchors: dict[str, Span] = {}
        self._root: Span | None = None

    def root(self) -> Span | None:
        """Read all events. Raises yaml.YAMLError."""
        for _ in range(MAX_EVENTS):
            event = self._next()
            if isinstance(event, yaml.ScalarEvent):
                self._add(self._anchored(event, Span(*_marks(event), event.value, is_null=_is_null(event))))
            elif isinstance(event, yaml.CollectionStartEvent):
                # The parser's time for deep brackets grows with the square of their depth.
                if len(self._open) >= MAX_DEPTH:
                    return None
                self._begin(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._add(self._open.pop().span)
            elif isinstance(event, yaml.AliasEvent):
                if event.anchor not in self._anchors:
                    return None
                self._add(Span(*_marks(event), target=self._anchors[event.anchor]))
            elif event is None or isinstance(event, yaml.StreamEndEvent):
                return self._root
        return None

    def _begin(self, event: yaml.CollectionStartEvent) -> None:
        members: list[tuple[Span, Span]] = []
        items: list[Span] = []
        span = self._anchored(event, Span(*_marks(event), members=members, items=items))
        self._open.append(_Open(span, members, items, isinstance(event, yaml.MappingStartEvent)))

    def _anchored(self, event: yaml.NodeEvent, span: Span) -> Span:
        if event.anchor is not None:
            self._anchors[event.anchor] = span
        return span

    def _add(self, span: Span) -> None:
        """Put a finished value where it belongs."""
        if not self._open:
            self._root = span
            return
        above = self._open[-1]
        if not above.is_object:
            above.items.append(span)
        elif above.key is None:
            above.key = span
        else:
            above.members.append((above.key, span))
            above.key = None


def _is_null(event: yaml.ScalarEvent) -> bool:
    """Whether the scalar is a null: written plainly, with no tag or with null's own."""
    if event.tag is None and event.style:
        return False
    return event.tag in (None, _NULL_TAG) and event.value in yaml_scalars.NULLS


def _marks(event: yaml.Event) -> tuple[int, int]:
    if event.start_mark is None or event.end_mark is None:
        raise Bug("the parser gave an event without its place")
    return event.start_mark.index, event.end_mark.index
