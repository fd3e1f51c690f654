"""The names under which one variable is given: with the prefix of its dialect, and so that a shell can read it.

Role names and port labels stand in variable names as written. A name with ``.`` or ``~`` cannot be read by a
shell, so that variable is given a second time with ``_`` in their place, unless that name means something else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_NOT_SHELL = re.compile(r"[^A-Za-z0-9_]")


def qizhi_twins(table: Mapping[str, str]) -> dict[str, str]:
    """The variables of ``PAI_`` names under ``QIZHI_``, which the QIZHI guide prints."""
    return {"QIZHI_" + name[len("PAI_") :]: value for name, value in table.items() if name.startswith("PAI_")}


def second_spellings(table: Mapping[str, str]) -> dict[str, str]:
    """A name for each variable whose own a shell cannot read; of two that would share one, the first has it."""
    spelled: dict[str, str] = {}
    for name, value in table.items():
        if not name.isidentifier():
            spelled.setdefault(_NOT_SHELL.sub("_", name), value)
    return spelled
