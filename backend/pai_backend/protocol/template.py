"""Filling the tags of a v2 document's texts, with a fault for each that stands for nothing.

``$parameters`` is the whole job's; ``$data``, ``$script`` and ``$output`` are what the role chose; ``$secrets``
is only looked up: its tags stay, and no value of it gets into a spec, a fault or a warning.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from pai_backend.model.tags import WHOLE, Tag, UnresolvedTag, find, is_only_tags, printed, scalar, value_of
from pai_backend.model.text import Text
from pai_backend.model.user_secret import SecretUse, is_secret_name
from pai_backend.protocol.fields import Path, Reader
from pai_backend.protocol.tree import Node
from pai_backend.protocol.yaml_scalars import spelling

MAX_RENDERED: Final = 4 * 1_048_576
"""Characters of all commands together, once filled: four times the largest document."""

MAX_TAGS: Final = 15_000
"""Tags in the texts of all roles together; the seeds' example has eleven a role."""

Values = Mapping[str, Any]
Chosen = Mapping[str, Values | None]
"""What a role chose, by scope; None for a choice that is itself at fault."""
NOTHING: Final[Chosen] = {}


class Template:
    """The scopes of one document and how much of them has been put into texts.

    ``secrets`` is None when they are themselves at fault: their tags are not looked up then. ``node`` is where the
    ``parameters`` stand in the document.
    """

    def __init__(
        self, reader: Reader, text: str, parameters: Values, secrets: Values | None, node: Node | None = None
    ) -> None:
        self._reader = reader
        self.text = text
        self._parameters = parameters
        self._parameters_node = node
        self._secrets = secrets
        self._left = MAX_RENDERED
        self._tags_left = MAX_TAGS
        self._reported: set[tuple[int, int]] = set()
        self._last = (-1, 0, 0)  # offset of a text, offset in it, and where that stands in the document
        self._found: dict[str, tuple[Tag, ...]] = {}  # in each text; many roles have the same
        self._whole: str | None = None
        self._known_secrets: set[tuple[str, ...]] = set()
        self._users: dict[str, SecretUse] = {}

    @property
    def users_secrets(self) -> tuple[SecretUse, ...]:
        """The names that tags take and the document has no secret of, each where it comes first."""
        return tuple(use for name, use in self._users.items() if name not in (self._secrets or {}))

    @property
    def exhausted(self) -> bool:
        """Whether the commands have already become too long in all; the fault is recorded."""
        return self._left < 0

    def fill(self, node: Node, path: Path, chosen: Chosen = NOTHING) -> str:
        """The text of ``node`` with its tags filled; those of ``$secrets`` stay.

        ``chosen`` has the prerequisites that the role chose, by scope. A tag that stands for nothing is a
        fault at its place and stays.
        """
        value = node.value if isinstance(node.value, str) else ""
        if "<%" not in value:
            return value
        parts: list[str] = []
        done = 0
        tags = self._found.get(value)
        if tags is None:
            tags = self._found[value] = tuple(islice(find(value), MAX_TAGS + 1))
        for tag in tags:
            self._tags_left -= 1
            if self._tags_left < 0:
                self._too_many_tags(node, path)
                break
            filled = self._value(tag, node, path, chosen)
            if filled is not None:
                parts += value[done : tag.start], filled
                done = tag.end
                self.spend(len(filled), node, path)
        return "".join((*parts, value[done:]))

    def written(self, node: Node) -> str:
        """A scalar as tags print it: a number as its author wrote it."""
        return _text(_printable(node, self.text))

    def names_all(self, text: str) -> bool:
        """Whether a tag of ``text`` names the whole of ``$parameters``."""
        return any(tag.scope == WHOLE and not tag.steps for tag in find(text))

    def is_only_secrets(self, text: str) -> bool:
        """Whether ``text`` is only tags of secrets, and of parameters that are only such tags."""
        if not is_only_tags(text):
            return False
        try:
            filled = [value_of(tag, self._parameters) for tag in find(text) if tag.scope == "parameters"]
        except UnresolvedTag:
            return True  # a fault, which fill has reported
        leaves = [leaf for value in filled for leaf in (value if isinstance(value, list) else [value])]
        return all(is_only_tags(_text(leaf)) for leaf in leaves)

    def users_among(self, text: str, scopes: tuple[str, ...] = ("parameters", "secrets")) -> str:
        """A secret that ``text`` takes, or a parameter that it takes, and the document does not have; empty: none."""
        for tag in islice(find(text), MAX_TAGS):
            if tag.flaw or tag.scope not in scopes:
                continue
            if tag.scope == "secrets":
                found = tag.steps[0] if tag.steps[0] not in (self._secrets or {}) else ""
            else:
                try:
                    found = self.users_among(printed(tag, self._parameters), ("secrets",))
                except UnresolvedTag:
                    found = ""
            if found:
                return found
        return ""

    def revealed(self, text: str, node: Node, path: Path, scopes: tuple[str, ...] = ("parameters", "secrets")) -> str:
        """``text`` with the values of its secrets as well: itself a secret, and no part of a spec.

        What ``fill`` could not fill stays here too. Counts what it puts in, as ``fill`` does.
        """
        parts: list[str] = []
        done = 0
        for tag in islice(find(text), MAX_TAGS):
            if tag.flaw or tag.scope not in scopes:
                continue
            try:
                value = printed(tag, self._parameters if tag.scope == "parameters" else self._secrets or {})
            except UnresolvedTag:
                continue
            if tag.scope == "parameters":
                value = self.revealed(value, node, path, ("secrets",))
            if not self.spend(len(value), node, path):
                break
            parts += text[done : tag.start], value
            done = tag.end
        return "".join((*parts, text[done:]))

    def spend(self, characters: int, node: Node, path: Path) -> bool:
        """Count ``characters`` of a command; False, and once a fault, when there are too many in all."""
        if self._left < 0:
            return False
        self._left -= characters
        if self._left >= 0:
            return True
        message = Text(
            "the commands have more than {max_rendered} characters once their tags and aliases are filled",
            max_rendered=MAX_RENDERED,
        )
        self._reader.fault(path, node.at, message, Text("Put long texts into files of the image or the data."))
        return False

    def _value(self, tag: Tag, node: Node, path: Path, chosen: Chosen) -> str | None:
        """What the tag is replaced by; None when it stays."""
        if self._left < 0:
            return None
        try:
            if tag.flaw:
                raise UnresolvedTag(tag.text, tag.flaw)
            if tag.scope == "secrets":
                self._check_secret(tag, tag, node, path)
                return None
            values = self._scope(tag, chosen)
            if values is None:
                return None
            filled = self._printed(tag, values)
            self._check_inserted(filled, tag, node, path)
        except UnresolvedTag as error:
            self._report(error, tag, node, path)
            return None
        return filled

    def _printed(self, tag: Tag, values: Values) -> str:
        """What a tag stands for; the whole of ``$parameters`` as JSON. Raises UnresolvedTag."""
        if tag.steps or tag.scope != WHOLE:
            return printed(tag, values)
        if self._whole is None:
            if self._parameters_node is None or not isinstance(self._parameters_node.value, dict):
                raise UnresolvedTag(tag.text, Text("the document has no parameters"))
            plain = self._parameters_node.plain()
            self._whole = json.dumps(plain, ensure_ascii=False, separators=(",", ":"), default=str)
        return self._whole

    def _scope(self, tag: Tag, chosen: Chosen) -> Values | None:
        if tag.scope == "parameters":
            return self._parameters
        if tag.scope not in chosen:
            raise UnresolvedTag(tag.text, Text("the task role chooses no {scope}", scope=tag.scope))
        return chosen[tag.scope]

    def _check_inserted(self, filled: str, outer: Tag, node: Node, path: Path) -> None:
        """A value is not scanned again, so that a tag inside it would reach the shell; ``$secrets`` alone may stand."""
        for tag in find(filled):
            if tag.flaw:
                continue
            if tag.scope != "secrets":
                raise UnresolvedTag(outer.text, Text("its value holds a tag itself, which is not filled"))
            self._check_secret(tag, outer, node, path)

    def _check_secret(self, tag: Tag, outer: Tag, node: Node, path: Path) -> None:
        """Raise UnresolvedTag unless there is such a secret, or the user may keep one; each is looked up once.

        ``outer`` is the tag in the text of ``node``, by whose value ``tag`` may have come.
        """
        if self._secrets is None or tag.steps in self._known_secrets:
            return
        name = tag.steps[0]
        if name not in self._secrets and len(tag.steps) == 1 and is_secret_name(name):
            line, column = self._reader.line_column(self._place(outer, node))
            self._users[name] = SecretUse(name, path, line, column)
        else:
            printed(tag, self._secrets)
        self._known_secrets.add(tag.steps)

    def _report(self, error: UnresolvedTag, tag: Tag, node: Node, path: Path) -> None:
        """One fault for one tag, however many roles come upon it."""
        if (node.at, tag.start) in self._reported:
            return
        self._reported.add((node.at, tag.start))
        if self._reader.room_for_fault():
            hint = Text("Tags are written <% $parameters.name %>; name one that the document has.")
            message = Text("the tag {tag} has no value: {reason}", tag=error.tag, reason=error.reason)
            self._reader.fault(path, self._place(tag, node), message, hint)

    def _too_many_tags(self, node: Node, path: Path) -> None:
        if self._tags_left == -1:
            message = Text(
                "the commands have more than {max_tags} tags, those that roles share counted again", max_tags=MAX_TAGS
            )
            self._reader.fault(path, node.at, message, Text("Export a variable once, and use that."))

    def _place(self, tag: Tag, node: Node) -> int:
        """Where the tag stands in the document: folding and quoting leave the order of all '<%' as it is.

        Goes on from where the last one of the same text was found, so that many cost no more than one.
        """
        text_at, since, at = self._last
        if text_at != node.at or since > tag.start:
            since, at = 0, node.at
        before = node.value.count("<%", since, tag.start) if isinstance(node.value, str) else 0
        for _ in range(before + 1):
            found = self.text.find("<%", at)
            if found < 0:  # one was written as an escape
                return node.at
            at = found + 2
        self._last = (node.at, tag.start, at - 2)
        return at - 2


def _text(value: Any) -> str:
    """A scalar's text; nothing for what cannot be printed, of which ``fill`` has made a fault."""
    return "" if value is None or isinstance(value, list | Mapping) else scalar(value)


def values_of(node: Node | None, text: str) -> dict[str, Any]:
    """The members of an object as tags print them: numbers are texts, spelled as the document ``text`` has them."""
    if node is None or not isinstance(node.value, dict):
        return {}
    return {key: _printable(member, text) for key, member in node.value.items()}


def _printable(node: Node, text: str) -> Any:
    value = node.value
    if isinstance(value, dict):
        return {key: _printable(member, text) for key, member in value.items()}
    if isinstance(value, list):
        return [_printable(item, text) for item in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return spelling(text, node.at) or str(value)
    return value
