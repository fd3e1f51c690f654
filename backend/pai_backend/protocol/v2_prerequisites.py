"""What the parts of the v2 reader share, and the prerequisites that its task roles choose by name.

Shared are the collected faults, the scopes of tags, and small kinds of fields; prerequisites are images, data, scripts
and outputs.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from pai_backend.model.spec import ImageAuth
from pai_backend.model.text import Text
from pai_backend.protocol import v2_tables as tables
from pai_backend.protocol.field_table import kind_of
from pai_backend.protocol.fields import Members, Path, Reader
from pai_backend.protocol.template import Template, Values, values_of
from pai_backend.protocol.tree import Node, Unreadable, shown

MAX_USES: Final = 10_000
"""Lines of plugins, counted again for each role that uses them; three plugins for each of 1 000 roles are 3 000."""

_COMPARED = 50
"""Names that a misspelled one is compared with at most: comparing is dear, and a long list does not help."""


@dataclass(frozen=True)
class LocatedText:
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

    def text(self, owner: Members, name: str) -> LocatedText | None:
        """A text field that is there and not empty, with its place."""
        if not owner.text(name) or not isinstance(owner.node.value, dict) or name not in owner.node.value:
            return None
        return LocatedText(owner.node.value[name], (*owner.path, name))

    def texts(self, owner: Members, name: str) -> tuple[LocatedText, ...]:
        """The items of a list field, all of which must be texts; none when it was left out."""
        found = []
        for number, node in enumerate(owner.items(name)):
            path = (*owner.path, name, number)
            if isinstance(node.value, str):
                found.append(LocatedText(node, path))
            elif not isinstance(node.value, Unreadable):
                message = Text(
                    "{name}[{number}] must be text, not {given}", name=name, number=number, given=kind_of(node)
                )
                self.reader.fault(path, node.at, message, _text_remedy(node))
        return tuple(found)

    def commands(self, owner: Members, name: str) -> tuple[LocatedText, ...]:
        """Like :meth:`texts`, of a list that must not be empty when it is there."""
        if owner.given(name) and not owner.items(name) and isinstance(owner.values[name], Node):
            self.reader.fault(
                (*owner.path, name), owner.at(name), Text("{name} is empty", name=name), Text("Add a command.")
            )
        return self.texts(owner, name)

    def not_empty(self, owner: Members, name: str, hint: Text) -> None:
        """A fault for a list or object without members."""
        node = owner.values[name]
        if isinstance(node, Node) and isinstance(node.value, dict | list) and not node.value:
            self.reader.fault((*owner.path, name), node.at, Text("{name} is empty", name=name), hint)

    def is_null(self, owner: Members, name: str) -> bool:
        """Whether the field is there and empty."""
        return isinstance(owner.node.value, dict) and name in owner.node.value and owner.node.value[name].value is None

    def check_version(self, owner: Members) -> None:
        """The version of a component: text or a number."""
        node = owner.values["version"]
        if isinstance(node, Node) and isinstance(node.value, bool | list | dict):
            message = Text("version must be text or a number, not {given}", given=kind_of(node))
            self.reader.fault((*owner.path, "version"), node.at, message, Text("Put it in quotes."))

    def flag(self, owner: Members, name: str, default: bool) -> bool:
        """A field that is true or false; ``default`` when it was left out or null."""
        node = owner.values.get(name)
        if not isinstance(node, Node) or node.value is None:
            return default
        return self.reader.boolean(node, (*owner.path, name))

    def no_such(self, path: Path, at: int, message: Text, word: str, known: Collection[str]) -> None:
        """A fault for a name that the document does not have; the hint is the one of ``known`` that resembles it."""
        if self.reader.room_for_fault():
            self.reader.fault(path, at, message, nearest(word, known))

    def use(self, plugin_lines: int, path: Path, at: int) -> bool:
        """Count lines of plugins that a role uses; False, and once a fault, when there are too many in all."""
        if self.uses_left < 0:
            return False
        self.uses_left -= plugin_lines
        if self.uses_left >= 0:
            return True
        message = Text("the task roles use plugins with more than {most} lines in all", most=MAX_USES)
        self.reader.fault(path, at, message, Text("Use fewer plugins, or put their commands into one script."))
        return False


def nearest(word: str, known: Collection[str]) -> Text:
    """The remedy for a misspelled name."""
    if not known:
        return Text("The document has none.")
    some = list(known)[:_COMPARED]
    if len(word) <= 40 and (close := difflib.get_close_matches(word, some, n=1, cutoff=0.6)):
        return Text("Did you mean {close}?", close=shown(close[0]))
    names = ", ".join(shown(name) for name in some[:10])
    return Text("Known here: {names}.", names=f"{names}, …" if len(known) > 10 else names)


def _text_remedy(node: Node) -> Text:
    if isinstance(node.value, dict):
        return Text("YAML reads 'key: value' in it: put the line in quotes, or after | on lines of its own.")
    return Text("Remove the item, or write a text.") if node.value is None else Text("Put it in quotes.")


IMAGE: Final = "dockerimage"
CHOSEN: Final = ("data", "script", "output")
"""Types that a role chooses beside its image; each is a scope of tags."""
KINDS: Final = (IMAGE, *CHOSEN)

_DEFAULTS: Final = {"version": "latest", "protocolVersion": "2"}
"""What tags print of fields that are left out or empty. Source: the protocol's page."""
_FILLED = ("uri", "version", "contributor", "description")
"""Fields whose own ``$parameters`` tags are filled before a role's texts name them."""


@dataclass(frozen=True, eq=False)
class Prerequisite:
    """One prerequisite: its node with all fields, those that are checked, and what an image has besides."""

    kind: str
    name: str
    node: Node
    members: Members
    requires: tuple[LocatedText, ...]
    image: str = ""
    auth: ImageAuth | None = None
    password: str | None = None
    """What tags print of the password of another ``auth`` than an image's."""

    @property
    def path(self) -> Path:
        """Where it stands."""
        return self.members.path


@dataclass
class Prerequisites:
    """All prerequisites of the document, by type and name."""

    kinds: dict[str, dict[str, Prerequisite]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    faulty: set[str] = field(default_factory=set)
    """Names of those that are themselves at fault: who chose one must not read that it does not exist."""
    _values: dict[Prerequisite, Values] = field(default_factory=dict)

    def values(self, one: Prerequisite, reading: Reading) -> Values:
        """The fields of a prerequisite as tags print them; made when a role first chooses it."""
        if one not in self._values:
            self._values[one] = _values(one, reading)
        return self._values[one]

    def named(self, name: str) -> list[Prerequisite]:
        """Those of that name, whatever their types."""
        return [kind[name] for kind in self.kinds.values() if name in kind]

    def names(self) -> list[str]:
        """All names."""
        return list(dict.fromkeys(name for kind in self.kinds.values() for name in kind))

    def with_required(self, wanted: Iterable[Prerequisite]) -> list[Prerequisite]:
        """``wanted`` and what they require, each once, the required before what requires it."""
        wanted = list(wanted)
        if not any(one.requires for one in wanted):
            return wanted
        order: list[Prerequisite] = []
        entered: set[Prerequisite] = set()
        stack = [(one, False) for one in reversed(wanted)]
        while stack:
            one, done = stack.pop()
            if done:
                order.append(one)
            elif one not in entered:
                entered.add(one)
                stack.append((one, True))
                stack += [(need, False) for text in reversed(one.requires) for need in self._needed(text)]
        return order

    def _needed(self, text: LocatedText) -> list[Prerequisite]:
        return self.named(str(text.node.value))


def read_prerequisites(job: Members, reading: Reading) -> Prerequisites:
    """All prerequisites of ``job``."""
    found = Prerequisites()
    for number, node in enumerate(job.items("prerequisites")):
        one = _read(node, ("prerequisites", number), reading)
        if one is None:
            found.faulty |= _name(node)
            continue
        if one.name in found.kinds[one.kind]:
            message = Text(
                "another prerequisite of type {kind} is already called {one}", kind=one.kind, one=shown(one.name)
            )
            hint = Text("Give each prerequisite of a type its own name.")
            reading.reader.fault((*one.path, "name"), one.members.at("name"), message, hint)
        found.kinds[one.kind].setdefault(one.name, one)
    _check_required(found, reading)
    return found


def _read(node: Node, path: Path, reading: Reading) -> Prerequisite | None:
    """One prerequisite; None when its type or name is faulty."""
    kind = node.value.get("type") if isinstance(node.value, dict) else None
    is_image = kind is None or kind.value == IMAGE
    table = tables.IMAGE if is_image else tables.OPEN
    members = reading.reader.members(node if is_image else _known(node), path, table)
    if members is None or (name := members.text("name")) is None or (kind_text := members.text("type")) is None:
        return None
    reading.check_version(members)
    if kind_text not in KINDS:
        hint = Text("Write one of {kinds}.", kinds=", ".join(KINDS))
        reading.reader.fault((*path, "type"), members.at("type"), Text("no such type of prerequisite"), hint)
        return None
    requires = reading.texts(members, "require")
    if kind_text == IMAGE:
        image, auth = _image(members, reading), _auth(members, reading)
        return Prerequisite(IMAGE, name, node, members, requires, image, auth)
    _check_uri(kind_text, members, reading)
    return Prerequisite(kind_text, name, node, members, requires, password=_open_password(node, path, reading))


def _name(node: Node) -> set[str]:
    """The name of a prerequisite at fault, if it has one."""
    name = node.value.get("name") if isinstance(node.value, dict) else None
    return {name.value} if name is not None and isinstance(name.value, str) else set()


def _known(node: Node) -> Node:
    """The members of ``node`` that the table of open prerequisites has."""
    members = node.value if isinstance(node.value, dict) else {}
    return Node({key: member for key, member in members.items() if key in tables.OPEN.fields}, node.at, node.key_at)


def _values(one: Prerequisite, reading: Reading) -> Values:
    node, path = one.node, one.path
    values = values_of(node, reading.template.text)
    values |= {name: default for name, default in _DEFAULTS.items() if values.get(name) is None}
    if one.password is not None:
        values["auth"] = {**values["auth"], "password": one.password}
    if not isinstance(node.value, dict):
        return values
    for name in _FILLED:
        member = node.value.get(name)
        if member is None:
            continue
        if isinstance(member.value, str):
            values[name] = reading.template.fill(member, (*path, name))
        elif isinstance(member.value, list):
            values[name] = [
                reading.template.fill(item, (*path, name, number)) if isinstance(item.value, str) else kept
                for number, (item, kept) in enumerate(zip(member.value, values[name], strict=True))
            ]
    return values


def _image(members: Members, reading: Reading) -> str:
    node = members.node.value["uri"] if members.given("uri") and isinstance(members.node.value, dict) else None
    if node is None or members.text("uri") is None:
        return ""
    image = reading.template.fill(node, (*members.path, "uri"))
    if any(char.isspace() for char in image) and "<%" not in image:
        message = Text("uri holds a space")
        reading.reader.fault((*members.path, "uri"), node.at, message, Text("Use characters without spaces only."))
    return image


def _auth(members: Members, reading: Reading) -> ImageAuth | None:
    """The credentials of an image."""
    node = members.values["auth"]
    if not isinstance(node, Node) or not isinstance(node.value, dict):
        return None
    path = (*members.path, "auth")
    auth = reading.reader.members(node, path, tables.AUTH)
    if auth is None:
        return None
    username, registry = (
        reading.template.fill(node.value[name], (*path, name)) if auth.text(name) else ""
        for name in ("username", "registryuri")
    )
    password = _password(node.value["password"], members.path, reading) if auth.text("password") else ""
    return ImageAuth(username=username, password=password, registry_uri=registry)


def _open_password(node: Node, path: Path, reading: Reading) -> str | None:
    """The password of the ``auth`` that data, a script or an output may have among its further fields."""
    auth = node.value.get("auth") if isinstance(node.value, dict) else None
    password = auth.value.get("password") if auth is not None and isinstance(auth.value, dict) else None
    if password is None or password.value is None or isinstance(password.value, dict | list | Unreadable):
        return None
    return _password(password, path, reading)


def _password(node: Node, path: Path, reading: Reading) -> str:
    """The password of the prerequisite at ``path`` as a spec may hold it: only tags of secrets.

    One that is more, if only by a blank, becomes a secret of its own with the values of its tags put in. So masking,
    which leaves tags alone and hides the rest, leaves as many secrets as there were.
    """
    place, template = (*path, "auth", "password"), reading.template
    text = node.value if isinstance(node.value, str) else template.written(node)
    if template.names_all(text):
        hint = Text("Put the password into secrets, and write <% $secrets.name %> here.")
        reading.reader.fault(place, node.at, Text("all parameters together are not a password"), hint)
        return ""
    filled = template.fill(node, place)
    if template.exhausted or template.is_only_secrets(text):
        return filled
    if own := template.users_among(text):
        hint = Text("Put all of it into {own}, or into secrets of the document.", own=shown(own))
        message = Text("a password cannot be text beside a secret that the document does not have")
        reading.reader.fault(place, node.at, message, hint)
        return ""
    name = f"auth_{path[-1]}_password"
    while name in reading.secrets:
        name += "_"
    whole = template.revealed(text, node, place)
    reading.secrets[name] = whole
    is_whole = whole == (filled or text)
    message = Text("the password itself stands here") if is_whole else Text("a part of the password stands here")
    hint = Text("Put all of it into secrets, and write <% $secrets.name %> here.")
    reading.reader.warn("literal-password", place, message, hint)
    return f"<% $secrets.{name} %>"


def _check_uri(kind: str, members: Members, reading: Reading) -> None:
    """A text, or for data a list of texts."""
    node = members.values["uri"]
    if not isinstance(node, Node) or node.value is None or isinstance(node.value, str | Unreadable):
        return
    path = (*members.path, "uri")
    if not isinstance(node.value, list):
        reading.reader.fault(
            path, node.at, Text("uri must be text, not {given}", given=kind_of(node)), Text("Put it in quotes.")
        )
    elif kind != "data":
        message = Text("only data may have a list of uris, not {kind}", kind=kind)
        reading.reader.fault(path, node.at, message, Text("Write one text, or several prerequisites."))
    else:
        listed = Members(members.node, members.path, {"uri": node})
        reading.texts(listed, "uri")


def _check_required(found: Prerequisites, reading: Reading) -> None:
    """What a prerequisite requires must exist and must not require it in turn."""
    every = [one for kind in found.kinds.values() for one in kind.values()]
    for one in every:
        for text in one.requires:
            name = str(text.node.value)
            if not found.named(name) and name not in found.faulty:
                reading.no_such(
                    text.path,
                    text.node.at,
                    Text("{name} is not a prerequisite of this job", name=shown(name)),
                    name,
                    found.names(),
                )
    graph = {
        name: [str(text.node.value) for one in found.named(name) for text in one.requires] for name in found.names()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]  # the last is the first again
        one = found.named(circle[0])[0]
        names = ", ".join(shown(name) for name in circle[1:6])
        message = Text("these prerequisites require each other: {names}", names=names)
        reading.reader.fault(
            (*one.path, "require"), one.members.at("require"), message, Text("Remove one of the names.")
        )
