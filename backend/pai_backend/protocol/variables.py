"""Names of environment variables in documents: what a process cannot be given, and what its author should know."""

from __future__ import annotations

import re

from pai_backend.model.text import Text
from pai_backend.protocol.fields import Path, Reader
from pai_backend.protocol.tree import Node, shown

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOT_A_VARIABLE = re.compile(r"[=\x00-\x1f\x7f]")
_RESERVED = ("PAI_", "QIZHI_")


def check_variable(name: str, node: Node, path: Path, reader: Reader) -> bool:
    """Whether a process can have a variable of that name, else a fault; warns of one that its tasks may not see."""
    if not name or _NOT_A_VARIABLE.search(name):
        message = Text("the name of a variable must not be empty and holds neither '=' nor control characters")
        reader.fault(path, node.key_at, message, Text("Use letters, digits and '_'."))
        return False
    if (name.startswith(_RESERVED) or not _VARIABLE.fullmatch(name)) and reader.room_for_warning():
        _warn(name, path, reader)
    return True


def _warn(name: str, path: Path, reader: Reader) -> None:
    """Warn of a variable that is the platform's or that no shell can read."""
    if name.startswith(_RESERVED):
        hint = Text("Choose another prefix: a variable that the platform sets keeps the platform's value.")
        reader.warn("reserved-variable", path, Text("the name {name} belongs to the platform", name=shown(name)), hint)
    else:
        hint = Text("Use letters, digits and '_' to reach it in a command.")
        reader.warn(
            "unreachable-variable", path, Text("a shell cannot read a variable called {name}", name=shown(name)), hint
        )
