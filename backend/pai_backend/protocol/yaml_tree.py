"""One YAML document as a tree that keeps the place of every key and value, like ``locate`` for JSON.

The events come from libyaml (from PyYAML's own parser where that is missing) and are counted as they come,
what an alias repeats included, so that no text is dear to read: neither a long one, nor a deep one, nor one
whose aliases grow. Refused are duplicate keys, keys that are no scalars, tags other than YAML's own, aliases
that contain themselves, and what ``yaml_scalars`` refuses. Merge keys (``<<``) are followed, as upstream does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import yaml
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.scanner import Scanner

from pai_backend.model.errors import Bug
from pai_backend.model.text import Text
from pai_backend.protocol import tree, yaml_scalars, yaml_trouble
from pai_backend.protocol.diagnose import SyntaxTrouble
from pai_backend.protocol.tree import MAX_DEPTH, MAX_FLAWS, UNREADABLE, Flaw, Node, PathStep, Positions, Value

MAX_NODES: Final = 45_000
"""Keys and values of a text, those that aliases repeat counted again. 1 000 roles like the seeds' are 42 000."""

MAX_COLLECTIONS: Final = 10_000
"""Lists and objects, which are dearer to read than other values; 1 000 full roles and a deployment have 8 000."""
MAX_ANCHORS: Final = 2_000
"""Two for each of 1 000 roles."""
MAX_CHARACTERS: Final = 4 * 1_048_576
"""Characters of all values, those that aliases repeat counted again: four times the largest document."""

_MERGE = "<<"
_MERGES = -1  # key_at of a key that merges: it is none of its own
_LITERAL = frozenset("'|>")  # styles whose text is the value as it stands
_SHORTEN = Text("Shorten the document, or split the job.")
_NO_PLACE = "the parser gave an event without its place"
_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = frozenset((f"{_TAG}str", "!"))
_SCALAR_TAGS: Final[Mapping[str, tuple[type, ...]]] = {
    f"{_TAG}int": (int,),
    f"{_TAG}float": (int, float),
    f"{_TAG}bool": (bool,),
    f"{_TAG}null": (type(None),),
}
_MAPPING_TAG, _SEQUENCE_TAG = f"{_TAG}map", f"{_TAG}seq"


class _Events(Protocol):
    def get_event(self) -> yaml.Event | None: ...


class _PurePython(Reader, Scanner, Parser):
    """PyYAML's parser in Python, for a PyYAML that was built without libyaml; some 30 times slower."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)


def _pure_python(text: str) -> _Events:
    return _PurePython(text)


def _libyaml(text: str) -> _Events:
    from yaml._yaml import CParser  # there only when PyYAML was built with it

    return CParser(text)


parser: Callable[[str], _Events] = _libyaml if yaml.__with_libyaml__ else _pure_python
"""Makes the parser of a text."""


class YamlStop(Exception):
    """Reading cannot go on; the flaw is recorded."""


@dataclass(slots=True)
class YamlBudget:
    """What all documents of one text may have together."""

    nodes: int = MAX_NODES
    collections: int = MAX_COLLECTIONS
    characters: int = MAX_CHARACTERS


@dataclass(slots=True)
class _Anchored:
    """What an alias stands for, with what it and all within it have; ``node`` is None while it is being read."""

    node: Node | None
    nodes: int
    characters: int
    levels: int = 0


@dataclass(slots=True)
class _Open:
    """A collection that is being read. ``members`` is None for a list; ``key`` the key whose value comes next."""

    node: Node
    members: dict[str, Node] | None
    items: list[Node]
    anchor: str | None
    before: YamlBudget | None  # when it began, if it has an anchor
    levels: int = 1  # of lists and objects, aliases followed
    key: str | None = None
    key_at: int = -1
    merged: list[Node] = field(default_factory=list)


def build(text: str, start: int, end: int, positions: Positions, budget: YamlBudget, flaws: list[Flaw]) -> Node | None:
    """The tree of the YAML document at ``text[start:end]``, or None when it is empty.

    Offsets are those of ``text``. Adds what is wrong to ``flaws`` and raises YamlStop when reading cannot go on;
    a flawed value that leaves the structure readable becomes ``UNREADABLE``. Takes from ``budget``.
    """
    return _Builder(text, start, end, positions, budget, flaws).document()


class _Builder:
    """One pass over the events of one document. ``open`` are the collections around the place, ``above`` the last."""

    def __init__(
        self, text: str, start: int, end: int, positions: Positions, budget: YamlBudget, flaws: list[Flaw]
    ) -> None:
        self.text = text
        self.start, self.end = start, end
        self.positions = positions
        self.budget = budget
        self.flaws = flaws
        self.open: list[_Open] = []
        self.above: _Open | None = None
        self.anchors: dict[str, _Anchored] = {}
        self.plain: dict[str, yaml_scalars.Plain] = {}  # what plain scalars stand for; most come again and again
        self.root: Node | None = None

    def document(self) -> Node | None:
        """Read all events. Raises YamlStop as :func:`build` says."""
        try:
            events = parser(self.text[self.start : self.end])
            self._read(events.get_event)
        except yaml.YAMLError as error:
            trouble = yaml_trouble.syntax(self.text, self.start, self.end, error)
            raise self._stop(trouble) from None
        return self.root

    def _read(self, next_event: Callable[[], yaml.Event | None]) -> None:
        """The loop over the events, the commonest first."""
        scalar, take = yaml.ScalarEvent, self._scalar
        while True:
            event = next_event()
            if isinstance(event, scalar):
                take(event)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._begin(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._finish()
            elif isinstance(event, yaml.AliasEvent):
                self._alias(event)
            elif isinstance(event, yaml.DocumentEndEvent):
                self._ends(event)
                return
            elif event is None or isinstance(event, yaml.StreamEndEvent):
                return

    def _place(self, event: yaml.Event) -> int:
        """The offset where ``event`` begins."""
        if event.start_mark is None:
            raise Bug(_NO_PLACE)
        return self.start + event.start_mark.index

    def _ends(self, event: yaml.Event) -> None:
        """Only comments may follow a document. What does is not read: directives there can be dear."""
        at = self._place(event)
        if at < self.end:
            hint = Text("Check the indentation; a further document begins with a line ---.")
            raise self._stop(SyntaxTrouble(at, Text("the document goes on after its end"), hint))

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        """A key or a value. Most events are these, so what the other kinds share is written out here."""
        mark = event.start_mark
        if mark is None:
            raise Bug(_NO_PLACE)
        at = self.start + mark.index
        raw = event.value
        budget = self.budget
        budget.nodes -= 1
        budget.characters -= len(raw)
        if budget.nodes < 0:
            self._spend(0, 0, at)
        above = self.above
        members = None if above is None else above.members
        if above is not None and members is not None and above.key is None:
            if raw in members or raw == _MERGE or event.tag or event.anchor or event.style == '"':
                self._unusual_key(above, event, at)
            else:
                above.key, above.key_at = raw, at
            return
        if event.tag is not None:
            node = Node(self._tagged(event.tag, event, at), at)
        elif event.style in _LITERAL:
            node = Node(raw, at)
        elif event.style:
            node = Node(self._content(raw, at), at)
        else:
            node = Node(self.plain[raw] if raw in self.plain else self._plain(raw, at), at)
        if event.anchor is not None:
            self._anchor(event.anchor, _Anchored(node, 1, len(raw)), at)
        if above is None or members is None or above.key is None or above.key_at == _MERGES:
            self._attach(node)
        else:
            node.key_at = above.key_at
            members.setdefault(above.key, node)
            above.key = None

    def _plain(self, raw: str, at: int) -> Value:
        """The value of a plain scalar, remembered for the next one that looks like it."""
        value = yaml_scalars.plain(raw, at)
        if isinstance(value, SyntaxTrouble):
            return self._flaw(value)
        self.plain[raw] = value
        return value

    def _content(self, raw: str, at: int) -> Value:
        """The value of a scalar in double quotes, whose escapes may be characters that cannot be used."""
        trouble = tree.content(raw, at)
        return raw if trouble is None else self._flaw(trouble)

    def _tagged(self, tag: str, event: yaml.ScalarEvent, at: int) -> Value:
        """The value of a scalar with a tag."""
        if tag in _TEXT_TAGS:
            return self._content(event.value, at)
        if tag not in _SCALAR_TAGS:
            return self._flaw(yaml_trouble.foreign_tag(at))
        value = yaml_scalars.plain(event.value, at)
        if isinstance(value, SyntaxTrouble):
            return self._flaw(value)
        if type(value) not in _SCALAR_TAGS[tag]:
            return self._flaw(
                SyntaxTrouble(at, Text("the value is not what its tag says"), Text("Remove the tag, or fix the value."))
            )
        return value

    def _unusual_key(self, above: _Open, event: yaml.ScalarEvent, at: int) -> None:
        """A key that merges, one with a tag, an anchor or escapes, or one that is there already."""
        if event.anchor is not None:
            self._anchor(event.anchor, _Anchored(Node(event.value, at), 1, len(event.value)), at)
        if event.tag is not None and event.tag not in _TEXT_TAGS:
            self._flaw(yaml_trouble.foreign_tag(at))
        self._content(event.value, at)
        if event.value == _MERGE and not event.style:
            above.key, above.key_at = _MERGE, _MERGES
        else:
            self._key(above, event.value, at)

    def _key(self, above: _Open, raw: str, at: int) -> None:
        """A key of the mapping ``above``; its value comes next."""
        above.key, above.key_at = raw, at
        if above.members is not None and raw in above.members:
            line, column = self.positions.line_column(above.members[raw].key_at)
            message = Text("this key is already given at line {line}, column {column}", line=line, column=column)
            self._flaw(SyntaxTrouble(at, message, Text("Keep one of the two.")))

    def _begin(self, event: yaml.CollectionStartEvent) -> None:
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        at = self._place(event)
        above = self.above
        if above is not None and above.members is not None and above.key is None:
            raise self._stop(
                SyntaxTrouble(at, Text("a key that is a list or an object"), Text("Keys are texts; put it in quotes."))
            )
        self._descend(1, at)
        tag: str | None = event.tag
        if tag is not None and tag not in (_MAPPING_TAG if is_mapping else _SEQUENCE_TAG, "!"):
            self._flaw(yaml_trouble.foreign_tag(at))
        self._spend(1, 0, at)
        self.budget.collections -= 1
        if self.budget.collections < 0:
            message = Text("more than {most} lists and objects", most=MAX_COLLECTIONS)
            raise self._stop(SyntaxTrouble(at, message, _SHORTEN))
        members: dict[str, Node] | None = {} if is_mapping else None
        items: list[Node] = []
        node = Node(items if members is None else members, at)
        if event.anchor is not None:
            self._anchor(event.anchor, _Anchored(None, 0, 0), at)
        before = None if event.anchor is None else replace(self.budget)
        self.above = _Open(node, members, items, event.anchor, before)
        self.open.append(self.above)

    def _finish(self) -> None:
        done = self.open.pop()
        self.above = self.open[-1] if self.open else None
        if done.merged and done.members is not None:
            for node in done.merged:
                self._merge(done.members, node)
        if done.anchor is not None and done.before is not None:
            nodes = done.before.nodes - self.budget.nodes + 1
            characters = done.before.characters - self.budget.characters
            self.anchors[done.anchor] = _Anchored(done.node, nodes, characters, done.levels)
        if self.above is not None and self.above.levels <= done.levels:
            self.above.levels = done.levels + 1
        self._attach(done.node)

    def _merge(self, members: dict[str, Node], node: Node) -> None:
        """Add what a merge key brings; keys that are there, and those of an earlier merge, win."""
        sources = node.value if isinstance(node.value, list) else [node]
        for source in sources:
            if not isinstance(source.value, dict):
                hint = Text("After << stands an alias of an object, or a list of such.")
                self._flaw(SyntaxTrouble(node.at, Text("this cannot be merged"), hint))
                return
            for key, member in source.value.items():
                members.setdefault(key, member)

    def _alias(self, event: yaml.AliasEvent) -> None:
        at = self._place(event)
        found = self.anchors.get(event.anchor or "")
        if found is None:
            hint = Text("Put the anchor (&name) before the alias, or the text in quotes when '*' is meant.")
            raise self._stop(SyntaxTrouble(at, Text("an alias without an anchor before it"), hint))
        if found.node is None:
            raise self._stop(
                SyntaxTrouble(at, Text("an alias inside of what it stands for"), Text("Write the value out instead."))
            )
        self._spend(found.nodes, found.characters, at)
        self._descend(found.levels, at)
        above = self.above
        if above is not None:
            above.levels = max(above.levels, found.levels + 1)
        if above is not None and above.members is not None and above.key is None:
            if not isinstance(found.node.value, str):
                raise self._stop(SyntaxTrouble(at, Text("a key that is not text"), Text("Write the key out instead.")))
            self._key(above, found.node.value, at)
            return
        self._attach(Node(found.node.value, found.node.at))

    def _anchor(self, name: str, anchored: _Anchored, at: int) -> None:
        self.anchors[name] = anchored
        if len(self.anchors) > MAX_ANCHORS:
            raise self._stop(SyntaxTrouble(at, Text("more than {most} anchors", most=MAX_ANCHORS), _SHORTEN))

    def _attach(self, node: Node) -> None:
        """Put a finished value where it belongs."""
        above = self.above
        if above is None:
            self.root = node
        elif above.members is None:
            above.items.append(node)
        else:
            if above.key_at == _MERGES:
                above.merged.append(node)
            elif above.key is not None:
                node.key_at = above.key_at
                above.members.setdefault(above.key, node)
            above.key = None

    def _descend(self, levels: int, at: int) -> None:
        if len(self.open) + levels > MAX_DEPTH:
            message = Text("more than {most} levels of lists and objects", most=MAX_DEPTH)
            raise self._stop(SyntaxTrouble(at, message, yaml_trouble.LESS_DEEP))

    def _spend(self, nodes: int, characters: int, at: int) -> None:
        self.budget.nodes -= nodes
        self.budget.characters -= characters
        if self.budget.nodes < 0:
            message = Text("more than {most} keys and values, those that aliases repeat counted again", most=MAX_NODES)
            raise self._stop(SyntaxTrouble(at, message, _SHORTEN))
        if self.budget.characters < 0:
            message = Text("more than {most} characters, those that aliases repeat counted again", most=MAX_CHARACTERS)
            raise self._stop(SyntaxTrouble(at, message, _SHORTEN))

    def _flaw(self, trouble: SyntaxTrouble) -> Value:
        """Record what is wrong with one key or value; reading goes on."""
        self.flaws.append(Flaw(self._path(), trouble.at, trouble.message, trouble.hint))
        if len(self.flaws) >= MAX_FLAWS:
            raise YamlStop
        return UNREADABLE

    def _stop(self, trouble: SyntaxTrouble) -> YamlStop:
        """Record what ends the reading."""
        self.flaws.append(Flaw(self._path(), trouble.at, trouble.message, trouble.hint))
        return YamlStop()

    def _path(self) -> tuple[PathStep, ...]:
        """Where the reader is now."""
        path: list[PathStep] = []
        for one in self.open:
            if one.members is None:
                path.append(len(one.items))
            elif one.key is not None:
                path.append(one.key)
        return tuple(path)
