"""What the parts of the v2 reader share: the collected faults, the scopes of tags, and small kinds of fields."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from pai_backend.protocol.fields import Members, Path, Reader, kind_of
from pai_backend.protocol.locate import Node, Unreadable
from pai_backend.protocol.position import shown
from pai_backend.protocol.template import Template

MAX_USES: Final = 10_000
"""Lines of plugins, counted again for each role that uses them; three plugins for each of 1 000 roles are 3 000."""

_COMPARED = 50
"""Names that a misspelled one is compared with at most: comparing is dear, and a long list helps nobody."""


@dataclass(frozen=True)
class Located:
    """A text of the document: its node and its path."""

    node: Node
    path: Path


@dataclass
class Reading:
    """One document that is being read as v2. ``secrets`` are its values, for the document alone; ``roles`` the names
    of its task roles. ``gang``: they start together.
    """

    reader: Reader
    template: Template
    secrets: dict[str, Any]
    draft: bool = False
    roles: Collection[str] = ()
    gang: bool = True
    uses_left: int = MAX_USES

    @property
    def exhausted(self) -> bool:
        """Whether plugins or commands have met their limit; the fault is recorded."""
        return self.uses_left < 0 or self.template.exhausted

    def text(self, owner: Members, name: str) -> Located | None:
        """A text field that is there and not empty, with its place."""
        if not owner.text(name) or not isinstance(owner.node.value, dict) or name not in owner.node.value:
            return None
        return Located(owner.node.value[name], (*owner.path, name))

    def texts(self, owner: Members, name: str) -> tuple[Located, ...]:
        """The items of a list field, all of which must be texts; none when it was left out."""
        found = []
        for number, node in enumerate(owner.items(name)):
            path = (*owner.path, name, number)
            if isinstance(node.value, str):
                found.append(Located(node, path))
            elif not isinstance(node.value, Unreadable):
                message = f"{name}[{number}] must be text, not {kind_of(node)}"
                self.reader.fault(path, node.at, message, _text_remedy(node))
        return tuple(found)

    def commands(self, owner: Members, name: str) -> tuple[Located, ...]:
        """Like :meth:`texts`, of a list that must not be empty when it is there."""
        if owner.given(name) and not owner.items(name) and isinstance(owner.values[name], Node):
            self.reader.fault((*owner.path, name), owner.at(name), f"{name} is empty", "Add a command.")
        return self.texts(owner, name)

    def not_empty(self, owner: Members, name: str, hint: str) -> None:
        """A fault for a list or object without members."""
        node = owner.values[name]
        if isinstance(node, Node) and isinstance(node.value, dict | list) and not node.value:
            self.reader.fault((*owner.path, name), node.at, f"{name} is empty", hint)

    def is_null(self, owner: Members, name: str) -> bool:
        """Whether the field is there and empty."""
        return isinstance(owner.node.value, dict) and name in owner.node.value and owner.node.value[name].value is None

    def check_version(self, owner: Members) -> None:
        """The version of a component: text or a number."""
        node = owner.values["version"]
        if isinstance(node, Node) and isinstance(node.value, bool | list | dict):
            message = f"version must be text or a number, not {kind_of(node)}"
            self.reader.fault((*owner.path, "version"), node.at, message, "Put it in quotes.")

    def flag(self, owner: Members, name: str, default: bool) -> bool:
        """A field that is true or false; ``default`` when it was left out or null."""
        node = owner.values.get(name)
        if not isinstance(node, Node) or node.value is None:
            return default
        return self.reader.boolean(node, (*owner.path, name))

    def no_such(self, path: Path, at: int, message: str, word: str, known: Collection[str]) -> None:
        """A fault for a name that the document does not have, which stands for ``{}`` in ``message``."""
        if self.reader.room_for_fault():
            self.reader.fault(path, at, message.format(shown(word)), nearest(word, known))

    def use(self, plugin_lines: int, path: Path, at: int) -> bool:
        """Count lines of plugins that a role uses; False, and once a fault, when there are too many in all."""
        if self.uses_left < 0:
            return False
        self.uses_left -= plugin_lines
        if self.uses_left >= 0:
            return True
        message = f"the task roles use plugins with more than {MAX_USES} lines in all"
        self.reader.fault(path, at, message, "Use fewer plugins, or put their commands into one script.")
        return False


def nearest(word: str, known: Collection[str]) -> str:
    """The remedy for a misspelled name."""
    if not known:
        return "The document has none."
    some = list(known)[:_COMPARED]
    if len(word) <= 40 and (close := difflib.get_close_matches(word, some, n=1, cutoff=0.6)):
        return f"Did you mean {shown(close[0])}?"
    names = ", ".join(shown(name) for name in some[:10])
    return f"Known here: {names}{', …' if len(known) > 10 else ''}."


def _text_remedy(node: Node) -> str:
    if isinstance(node.value, dict):
        return "YAML reads 'key: value' in it: put the line in quotes, or after | on lines of its own."
    return "Remove the item, or write a text." if node.value is None else "Put it in quotes."
