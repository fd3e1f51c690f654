"""The port lists of OpenPAI v1: their table, and the rules between the entries of one role.

Source: the seeds' field list (portType); OpenPAI v1 for the ports that every task gets unasked.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from typing import Final

from pai_backend.model.spec import PortSpec
from pai_backend.model.text import Text
from pai_backend.protocol.field_table import Field, FieldKind, Table
from pai_backend.protocol.fields import Members, Path, Reader
from pai_backend.protocol.tree import shown

IMPLICIT_PORTS: Final = (PortSpec(label="http", implicit=True), PortSpec(label="ssh", implicit=True))
"""OpenPAI v1 gives every task one port of each, declared or not."""
MAX_LABELS: Final = 256
"""Entries of one port list: each is a name in the variables and addresses of every task."""
LAST_PORT: Final = 65535

_LABEL = re.compile(r"[A-Za-z0-9._~]+")
PORT: Final = Table(
    Text("a port list entry"),
    {
        "label": Field(
            FieldKind.TEXT,
            required=True,
            pattern=_LABEL,
            allowed=Text("letters, digits, '.', '_' and '~'"),
            longest=255,
            empty=False,
        ),
        "beginAt": Field(FieldKind.INTEGER, default=0, low=0, high=LAST_PORT),
        "portNumber": Field(FieldKind.INTEGER, default=1, low=1, high=LAST_PORT),
    },
    elsewhere={"port": Text('Did you mean "beginAt"?'), "name": Text('Did you mean "label"?')},
)


Make = Callable[[str, int, int], PortSpec]


def make(label: str, count: int, begin_at: int) -> PortSpec:
    """The port of a list entry; what ``read`` is given may keep equal ones, as the roles of a large job have them."""
    return PortSpec(label=label, count=count, begin_at=begin_at)


def read(role: Members, reader: Reader, port: Make = make) -> tuple[PortSpec, ...] | None:
    """The declared ports of a role and the implicit ones after them; None when one is faulty."""
    nodes = role.items("portList")
    if not nodes:
        return IMPLICIT_PORTS
    path = (*role.path, "portList")
    if len(nodes) > MAX_LABELS:
        message = Text("{count} entries in a port list, more than {most}", count=len(nodes), most=MAX_LABELS)
        reader.fault(path, role.at("portList"), message, Text("Use portNumber for many ports of one label."))
        return None
    entries = [
        members
        for number, node in enumerate(nodes)
        if (members := reader.members(node, (*path, number), PORT)) is not None
    ]
    reader.distinct(entries, "label", Text("port list entry"))
    ports: list[PortSpec] = []
    ranges = Ranges(reader)
    for entry in entries:
        label, first, count = entry.text("label"), entry.integer("beginAt"), entry.integer("portNumber")
        if label is None or first is None or count is None:
            continue
        if first:
            ranges.add((*entry.path, "beginAt"), entry.at("beginAt"), label, first, first + count - 1)
        ports.append(port(label, count, first))
    if len(ports) < len(nodes):
        return None
    declared = {entry.text("label") for entry in entries}
    return (*ports, *(implicit for implicit in IMPLICIT_PORTS if implicit.label not in declared))


class Ranges:
    """The fixed ranges of one port list, which must be ports and must not overlap."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._taken: list[tuple[int, int, str]] = []  # (first, last, label), in order, none touching another

    def add(self, path: Path, at: int, label: str, first: int, last: int) -> None:
        """Add a range; one that is no range of ports, or overlaps one added before, is a fault at ``path``."""
        if last > LAST_PORT:
            message = Text(
                "the ports {first} to {last} go beyond {last_port}", first=first, last=last, last_port=LAST_PORT
            )
            self._reader.fault(
                path, at, message, Text("Begin lower, ask for fewer, or use 0 for ports chosen at random.")
            )
            return
        place = bisect_left(self._taken, (first, last, label))
        for other_first, other_last, other in self._taken[max(place - 1, 0) : place + 1]:
            if first <= other_last and other_first <= last:
                message = Text(
                    "the ports {first} to {last} overlap those of label {label} ({other_first} to {other_last})",
                    first=first,
                    last=last,
                    label=shown(other),
                    other_first=other_first,
                    other_last=other_last,
                )
                self._reader.fault(
                    path, at, message, Text("Give each label its own range, or use 0 for ports chosen at random.")
                )
                return
        self._taken.insert(place, (first, last, label))
