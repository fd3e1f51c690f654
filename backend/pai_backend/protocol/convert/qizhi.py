"""The variables of QIZHI, which OpenPAI has under other names: ``QIZHI_JOB_NAME`` is its ``PAI_JOB_NAME``.

Rewritten is what the task's own shell expands, and nothing that it passes on as it is: a text in single quotes may
be read by anything. For the names that are left so, the command sets the old variable from the new one first.
Source: the QIZHI guide's table, which is OpenPAI's with another prefix and one underscore more before a port's label.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from pai_backend.protocol.convert.expansions import expansions

_NAME = re.compile(r"(?<![A-Za-z0-9_])QIZHI_[A-Za-z0-9_]+")
_EXPANDED = re.compile(r"\$\{?[!#]?(QIZHI_[A-Za-z0-9_]+)")
_ASSIGNED = re.compile(r"(?:^|[\s;&|(])(QIZHI_[A-Za-z0-9_]+)\+?=")
_OWN_PORTS = re.compile(r"CONTAINER_HOST__(.+)_PORT_LIST")
_DIRECTORY = re.compile(r"\$QIZHI_(DEFAULT_FS_URI|JOB_NAME|USER_NAME|USERNAME)")


@dataclass(frozen=True)
class Rewritten:
    """A command with OpenPAI's variables. ``changed`` are the old names rewritten, ``left`` those that stayed."""

    command: str
    changed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def directory(text: str) -> str:
    """A directory field with OpenPAI's variables in the place of those that are filled in there."""
    return _DIRECTORY.sub(r"$PAI_\1", text)


def pai_name(name: str, labels: Collection[str]) -> str:
    """OpenPAI's name of the variable ``name``; ``labels`` are those of the task's ports."""
    rest = name.removeprefix("QIZHI_")
    own = _OWN_PORTS.fullmatch(rest)
    if own is not None and own[1] in labels and f"_{own[1]}" not in labels:
        rest = f"CONTAINER_HOST_{own[1]}_PORT_LIST"
    return f"PAI_{rest}"


def rewritten(command: str, labels: Collection[str]) -> Rewritten:
    """``command`` with OpenPAI's variables; names that it sets itself are its own and stay."""
    if "QIZHI_" not in command:
        return Rewritten(command)
    own = set(_ASSIGNED.findall(command))
    parts: list[str] = []
    changed: dict[str, None] = {}
    done = 0
    for at in expansions(command):
        found = _EXPANDED.match(command, at)
        if found is not None and found[1] not in own:
            parts += command[done : found.start(1)], pai_name(found[1], labels)
            done = found.end()
            changed[found[1]] = None
    result = "".join((*parts, command[done:]))
    left = [name for name in dict.fromkeys(_NAME.findall(result)) if name not in own]
    exports = "".join(f'export {name}="${{{pai_name(name, labels)}-}}"\n' for name in left)
    return Rewritten(exports + result, tuple(changed), tuple(left))
