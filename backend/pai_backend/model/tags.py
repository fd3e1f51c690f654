"""The tags ``<% $scope.a.b[0] %>`` that OpenPAI v2 documents put into their texts, and filling them.

``protocol`` fills all scopes but ``secrets`` when it reads a document and refuses tags that name nothing.
``<% $secrets.x %>`` stays in the spec; its value is put in when a task's plan is built, nowhere before.
A text is scanned once: what a tag stands for is put in as it is, neither escaped nor scanned again.
Source: OpenPAI protocol v2, its sections on parameters, secrets and prerequisites.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from pai_backend.model.text import NO_TEXT, Text

SCOPES: Final = ("parameters", "secrets", "data", "script", "output")
"""What the first word of a tag may be."""

WHOLE: Final = "parameters"
"""The scope that a tag without steps may name as a whole. Source: the protocol's page."""

# "<%" with a "$" or a lone word behind it is meant as a tag; a shell's or a template's other "<%" is not.
_TAG = re.compile(r"<%\s*+(?:(\$[A-Za-z_][^\s%<>]*+)\s*+%>|(\$[A-Za-z_][\w.\[\]]*+)|[A-Za-z_][\w.\[\]]*+\s*+%>)")
_WHOLE, _BROKEN = 1, 2  # groups of _TAG
_SCOPE = re.compile(r"\$([^.\[]*+)")
_STEP = re.compile(r"\.([^.\[\]]++)|\[([0-9]{1,9})\]")
_INDEX = re.compile(r"[0-9]{1,9}")
_OBJECT = (dict, Mapping)  # a dict is told much faster
_SHOWN = 80
"""Longest tag that an error repeats in full, in characters."""


class UnresolvedTag(KeyError):
    """A tag stands for nothing. ``tag`` is the tag as written, ``reason`` why; neither holds a value."""

    def __init__(self, tag: str, reason: Text) -> None:
        super().__init__(tag, reason)
        self.tag = tag if len(tag) <= _SHOWN else tag[: _SHOWN - 1] + "…"
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.tag}: {self.reason}"


@dataclass(frozen=True)
class Tag:
    """A tag in a text, which starts at offset ``start`` and goes on behind it at ``end``.

    ``flaw`` says why it cannot be filled; ``scope`` and ``steps`` mean nothing then.
    """

    text: str
    start: int
    end: int
    scope: str = ""
    steps: tuple[str, ...] = ()
    flaw: Text = NO_TEXT


def find(text: str) -> Iterator[Tag]:
    """All tags of ``text`` in order, those with a flaw included. Takes time linear in the length of ``text``."""
    if "<%" not in text:
        return
    for found in _TAG.finditer(text):
        yield _tag(found)


def is_only_tags(text: str) -> bool:
    """Whether ``text`` is only tags that can be filled, which is true of an empty one. Even a blank is text."""
    done = 0
    for tag in find(text):
        if not tag.flaw:
            if tag.start > done:
                return False
            done = tag.end
    return done == len(text)


def index_of(step: str) -> int | None:
    """The number of the item that a step of a tag leads to in a list; None for a name."""
    return int(step) if _INDEX.fullmatch(step) else None


def value_of(tag: Tag, values: Mapping[str, Any]) -> Any:
    """The value that ``tag`` leads to in ``values``, the members of its scope. Raises UnresolvedTag."""
    value: Any = values
    name = f"${tag.scope}"
    for step in tag.steps:
        value = _member(value, step, tag, name)
        name = f"{name}.{step}"
    return value


def printed(tag: Tag, values: Mapping[str, Any]) -> str:
    """What ``tag`` stands for in ``values``, the members of its scope, as text.

    Scalars are printed as YAML 1.2 has them, a list of scalars with commas between its items (as upstream
    does). Raises UnresolvedTag when there is no such value, or none that is a text.
    """
    value = value_of(tag, values)
    name = f"${'.'.join((tag.scope, *tag.steps))}"
    if isinstance(value, list | tuple):
        if any(item is None or isinstance(item, list | tuple | Mapping) for item in value):
            raise UnresolvedTag(tag.text, Text("{name} is a list of more than texts and numbers", name=name))
        return ",".join(scalar(item) for item in value)
    if isinstance(value, Mapping):
        raise UnresolvedTag(tag.text, Text("{name} is an object, not a text", name=name))
    if value is None:
        raise UnresolvedTag(tag.text, Text("{name} is null", name=name))
    return scalar(value)


def fill(text: str, scope: str, values: Mapping[str, Any]) -> str:
    """``text`` with each tag of ``scope`` replaced by its value; tags of other scopes stay as they are.

    Raises UnresolvedTag, a ``KeyError`` that names the tag, when one of that scope stands for nothing.
    """
    parts: list[str] = []
    done = 0
    for tag in find(text):
        if tag.scope == scope and not tag.flaw:
            parts += text[done : tag.start], printed(tag, values)
            done = tag.end
    return "".join((*parts, text[done:])) if parts else text


def _tag(found: re.Match[str]) -> Tag:
    """The tag, or what is wrong with it."""
    start, end = found.span()
    if found[_BROKEN] is not None:
        return Tag(found[0], start, end, flaw=Text("it has no end '%>', or a space or '<' inside it"))
    word = found[_WHOLE]
    if word is None:
        return Tag(found[0], start, end, flaw=Text("a tag begins with '$' and the name of its scope"))
    return Tag(found[0], start, end, *_parsed(word))


@lru_cache(maxsize=1024)
def _parsed(word: str) -> tuple[str, tuple[str, ...], Text]:
    """Scope, steps and flaw of what stands between the marks; the roles of a job mostly use the same few."""
    found = _SCOPE.match(word)
    scope = "" if found is None else found[1]
    if scope not in SCOPES:
        return "", (), Text("no such scope; known are ${scopes}", scopes=", $".join(SCOPES))
    rest = word[1 + len(scope) :]
    if _STEP.sub("", rest):
        return "", (), Text("its steps are written .name or [0]")
    if not rest and scope != WHOLE:
        return "", (), Text("it names the whole of ${scope}; add .name", scope=scope)
    return scope, tuple(name or number for name, number in _STEP.findall(rest)), NO_TEXT


def _member(value: Any, step: str, tag: Tag, name: str) -> Any:
    """The member of ``value``, which is called ``name``, that ``step`` leads to."""
    if isinstance(value, _OBJECT):
        if step not in value:
            raise UnresolvedTag(tag.text, Text("{name} has no member of that name", name=name))
        return value[step]
    index = index_of(step)
    if not isinstance(value, list | tuple):
        if value is None:
            raise UnresolvedTag(tag.text, Text("{name} is null", name=name))
        lacks = Text("no object") if index is None else Text("no list")
        raise UnresolvedTag(tag.text, Text("{name} is {lacks}", name=name, lacks=lacks))
    if index is None:
        raise UnresolvedTag(tag.text, Text("{name} is a list; its items are numbered from [0]", name=name))
    if index >= len(value):
        raise UnresolvedTag(tag.text, Text("{name} has {count} items, numbered from [0]", name=name, count=len(value)))
    return value[index]


def scalar(value: Any) -> str:
    """A scalar as a tag prints it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
