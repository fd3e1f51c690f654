"""How much environment a process can be given, and which variables go first when a job's are more.

Linux, execve(2): one variable is at most 32 pages (128 KiB); all variables and arguments together with their
pointers are at most a quarter of the stack limit, 2 MiB with the usual 8 MiB; macOS takes 1 MiB in all. The
platform's variables keep to ``TOTAL_BYTES``, so that programs still start from within the task, with
arguments of their own. A family of variables is given whole or not at all: half a list of peers is worse
than none. The file that ``PAI_JOB_INFO_FILE`` names has everything, always.
"""

from __future__ import annotations

from collections.abc import Mapping

VARIABLE_BYTES = 131_072  # MAX_ARG_STRLEN with pages of 4 KiB: name, "=", value and the closing NUL
TOTAL_BYTES = 768 * 1024  # below macOS's 1 MiB and well below Linux's 2 MiB
_POINTER_BYTES = 8  # counted by Linux since 4.13

LEFT_OUT_FIRST = (
    "PAI_*_PORT",
    "PAI_PORT_LIST_*",
    "PAI_HOST_IP_*",
    "PAI_TASK_ROLE_INSTANCES",
    "PAI_TASK_ROLE_*_HOST_LIST",
    "PAI_MIN_*_TASK_COUNT_*",
    "PAI_RESOURCE_*",
    "PAI_TASK_ROLE_TASK_COUNT_*",
    "PAI_*TASK_ROLE_LIST",
)
"""Families in the order in which they are left out: what is said of every port of every task first."""


def entry_bytes(name: str, value: str) -> int:
    """What one variable takes as a string, its NUL included."""
    return len(name.encode()) + len(value.encode()) + 2


def fitting(families: Mapping[str, Mapping[str, str]], taken_bytes: int) -> tuple[str, ...]:
    """Names of the families to leave out so that the rest fits beside ``taken_bytes`` of other variables.

    A family goes when one of its variables is too long by itself; then families go in the order of
    ``LEFT_OUT_FIRST`` until the rest fits. A family that is not in that list always stays.
    """
    sizes = {name: _family_bytes(family) for name, family in families.items()}
    out = [name for name in LEFT_OUT_FIRST if name in sizes and _has_oversized(families[name])]
    total = taken_bytes + sum(size for name, size in sizes.items() if name not in out)
    for name in LEFT_OUT_FIRST:
        if total <= TOTAL_BYTES:
            break
        if sizes.get(name) and name not in out:
            out.append(name)
            total -= sizes[name]
    return tuple(name for name in LEFT_OUT_FIRST if name in out)


def _family_bytes(family: Mapping[str, str]) -> int:
    """What the variables take; one whose name a shell cannot read is given twice."""
    return sum(
        (entry_bytes(name, value) + _POINTER_BYTES) * (1 if name.isidentifier() else 2)
        for name, value in family.items()
    )


def _has_oversized(family: Mapping[str, str]) -> bool:
    return any(entry_bytes(name, value) > VARIABLE_BYTES for name, value in family.items())
