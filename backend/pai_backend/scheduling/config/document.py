"""YAML text as nodes with places: every fault can name its line and column.

PyYAML's composer is used and its constructor is not, so that no value loses its place and no tag runs code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

import yaml

from pai_backend.model.errors import Fault
from pai_backend.model.text import Text

MAX_BYTES = 4 << 20
"""A cluster of 10,000 nodes written out node by node is about 0.5 MiB."""
MAX_DEPTH = 64
TOO_DEEP = Text("nested more than {most} deep", most=MAX_DEPTH)
LESS_DEEP = Text("Close brackets, and name types of cells instead.")
MAX_EVENTS = 400_000  # keys, values, beginnings and ends: ten times those of such a cluster
MAX_REPORTED = 100
"""Faults, and warnings, that are told."""
MAX_NAMED = 20
_SHORT_NUMBER = re.compile(r"[+-]?[0-9]{1,9}")
_DIRECTIVE = re.compile(r"(?:\A|[\r\n\x85\u2028\u2029])%")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the parser in C takes a tenth of the time
Path = tuple[str | int, ...]


class TooManyFaults(Exception):
    """``MAX_REPORTED`` faults are recorded, and reading ends: a text can have as many as it has lines."""


class Faults:
    """Collects the faults of one document instead of stopping at the first."""

    def __init__(self) -> None:
        self.errors: list[Fault] = []
        self.warnings: list[Fault] = []

    def error(self, path: Path, node: yaml.Node | None, message: str, hint: str) -> None:
        """Something that makes the document unusable. Raises TooManyFaults."""
        self.errors.append(_fault(path, node, message, hint))
        if len(self.errors) >= MAX_REPORTED:
            raise TooManyFaults

    def warn(self, path: Path, node: yaml.Node | None, message: str, hint: str) -> None:
        """A warning: something odd that does no harm. Those past ``MAX_REPORTED`` are left out."""
        if len(self.warnings) < MAX_REPORTED:
            self.warnings.append(_fault(path, node, message, hint))


def some(names: Iterable[str]) -> str:
    """The first names of many, for a hint: all of them could be a megabyte, in each of a thousand hints."""
    first = list(islice(names, MAX_NAMED + 1))
    return ", ".join(first[:MAX_NAMED]) + (", …" if len(first) > MAX_NAMED else "") if first else "none"


def _fault(path: Path, node: yaml.Node | None, message: str, hint: str) -> Fault:
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return _at(None if node is None else node.start_mark, message, hint, f"${steps}")


def _at(mark: object, message: str, hint: str, path: str = "$") -> Fault:
    """A fault at one of PyYAML's marks, whose types differ between its parsers."""
    line, column = getattr(mark, "line", None), getattr(mark, "column", None)
    if line is None or column is None:
        return Fault(path=path, message=message, hint=hint)
    return Fault(path=path, message=message, line=line + 1, column=column + 1, hint=hint)


def compose(text: str, faults: Faults) -> yaml.MappingNode | None:
    """The document's root mapping, or None with the fault recorded. Aliases are refused: they can be cyclic."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        faults.error(
            (),
            None,
            Text("the configuration is larger than {most} bytes", most=MAX_BYTES),
            Text("Leave out inferred children."),
        )
        return None
    try:
        if not _can_be_composed(text, faults):
            return None
        root = yaml.compose(text, Loader=_LOADER)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "nested too deeply or not text"
        if (
            "maximum nesting depth" in problem
        ):  # libyaml 0.2.6 gives up before it says of any bracket that it was opened
            faults.errors.append(_at(mark, TOO_DEEP, LESS_DEEP))
            return None
        faults.errors.append(
            _at(
                mark,
                Text("this is not YAML: {problem}", problem=problem),
                Text("Check indentation, colons and quotes here."),
            )
        )
        return None
    if not isinstance(root, yaml.MappingNode):
        faults.error((), root, Text("the configuration must be a mapping"), Text("Start with `physicalCluster:`."))
        return None
    return root


def _can_be_composed(text: str, faults: Faults) -> bool:
    """Whether the text is neither cyclic nor deep nor long, as its events tell; what hinders it is recorded.

    The parser's time for open brackets grows with their square. Raises YAMLError.
    """
    if directive := _DIRECTIVE.search(text):  # the time for many of them grows with their square, too
        line = text.count("\n", 0, directive.end()) + 1
        hint = Text("Leave the line out; indent a text that begins with %.")
        faults.errors.append(
            Fault(path="$", message=Text("directives (%) are not supported here"), line=line, hint=hint)
        )
        return False
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=_LOADER)):
        if isinstance(event, yaml.AliasEvent):
            faults.errors.append(
                _at(event.start_mark, Text("aliases are not supported here"), Text("Write the cells out."))
            )
            return False
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            faults.errors.append(_at(event.start_mark, TOO_DEEP, LESS_DEEP))
            return False
        if count > MAX_EVENTS:
            message = Text("the configuration has more than {most} keys and values", most=MAX_EVENTS)
            faults.error((), None, message, Text("Leave out inferred children."))
            return False
    return True


def members(node: yaml.MappingNode, path: Path, faults: Faults) -> dict[str, yaml.Node]:
    """A mapping's members by key; the later of two equal keys is a fault."""
    found: dict[str, yaml.Node] = {}
    for key, value in node.value:
        name = str(key.value) if isinstance(key, yaml.ScalarNode) else ""
        if not name:
            faults.error(path, key, Text("a key must be a plain word"), Text("Use a word as key."))
        elif name in found:
            faults.error((*path, name), key, Text("{name} is given twice", name=name), Text("Keep one of the two."))
        else:
            found[name] = value
    return found


def mapping(node: yaml.Node | None, path: Path, faults: Faults, known: tuple[str, ...] = ()) -> dict[str, yaml.Node]:
    """Members of a mapping; null is empty. With ``known``, any other key is a warning."""
    if is_null(node) or node is None:
        return {}
    if not isinstance(node, yaml.MappingNode):
        faults.error(path, node, Text("a mapping is expected here"), Text("Write `key: value` lines."))
        return {}
    found = members(node, path, faults)
    for name in found:
        if known and name not in known:
            faults.warn(
                (*path, name),
                found[name],
                Text("unknown key {name}", name=name),
                Text("Known here: {names}.", names=", ".join(known)),
            )
    return found


def sequence(node: yaml.Node | None, path: Path, faults: Faults) -> Iterator[tuple[Path, yaml.Node]]:
    """Items of a list with their paths; null is empty."""
    if node is None or is_null(node):
        return
    if not isinstance(node, yaml.SequenceNode):
        faults.error(path, node, Text("a list is expected here"), Text("Write one `- ` line an item."))
        return
    for index, item in enumerate(node.value):
        yield (*path, index), item


def text(node: yaml.Node | None, path: Path, faults: Faults, *, needed: bool = False) -> str:
    """A scalar as written; "" when absent. Numbers are taken as text, since addresses are written either way."""
    if node is None or is_null(node):
        if needed:
            faults.error(path, node, Text("{key} is missing", key=path[-1]), Text("Add it."))
        return ""
    if not isinstance(node, yaml.ScalarNode):
        faults.error(path, node, Text("a plain value is expected here"), Text("Write a word or a number."))
        return ""
    return str(node.value)


def number(node: yaml.Node | None, path: Path, faults: Faults, *, least: int, default: int | None = None) -> int:
    """An integer of at least ``least``; ``default`` when absent, a fault when there is none."""
    if node is None or is_null(node):
        if default is None:
            faults.error(
                path,
                node,
                Text("{key} is missing", key=path[-1]),
                Text("Give a number of at least {least}.", least=least),
            )
        return least if default is None else default
    value = _integer(node)
    if value is None or value < least:
        faults.error(
            path,
            node,
            Text("{key} must be a whole number of at least {least}", key=path[-1], least=least),
            Text("Correct the number."),
        )
        return least
    return value


def flag(node: yaml.Node | None, path: Path, faults: Faults) -> bool:
    """A boolean; false when absent."""
    if node is None or is_null(node):
        return False
    if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:bool":
        return str(node.value).lower() in ("true", "yes", "on")
    faults.error(path, node, Text("{key} must be true or false", key=path[-1]), Text("Write `true` or leave it out."))
    return False


def is_null(node: yaml.Node | None) -> bool:
    """Whether the value is written as null or left empty."""
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _integer(node: yaml.Node) -> int | None:
    if not isinstance(node, yaml.ScalarNode) or node.tag != "tag:yaml.org,2002:int":
        return None
    digits = str(node.value).replace("_", "")  # a tag may call any text a number
    return int(digits) if _SHORT_NUMBER.fullmatch(digits) else None
