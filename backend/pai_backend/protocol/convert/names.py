"""Names of v1 that v2 does not allow, made into names that it does.

A character that v2 does not take becomes ``_``, as it does in the variables that a shell can read, so that a command
that uses those still finds them. The old names are kept beside the new ones, so that the way back is open.
Source: v2's expressions for names; ``launch.plan`` for the spelling of variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

MAX_NAME: Final = 255
_NOT_IN_JOB = re.compile(r"[^A-Za-z0-9_-]")
_NOT_IN_IDENTIFIER = re.compile(r"[^A-Za-z0-9_]")


def job_name(name: str) -> str:
    """The name of a job as v2 allows it."""
    return _NOT_IN_JOB.sub("_", name)


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """Name -> identifier, distinct where the names are; those that are identifiers already stay as they are."""
    given = list(dict.fromkeys(names))
    taken = {name for name in given if _identifier(name) == name}
    found = {}
    for name in given:
        found[name] = name if name in taken else _free(_identifier(name), taken)
        taken.add(found[name])
    return found


def _identifier(name: str) -> str:
    plain = _NOT_IN_IDENTIFIER.sub("_", name)
    return (f"_{plain}" if plain[:1].isdigit() else plain)[:MAX_NAME]


def _free(name: str, taken: set[str]) -> str:
    """``name``, or the first of ``name_2``, ``name_3`` … that is not taken."""
    number, one = 1, name
    while one in taken:
        number += 1
        ending = f"_{number}"
        one = name[: MAX_NAME - len(ending)] + ending
    return one
