"""The order of all tests: those that one worker must have together come first, the longest group before the others.

A worker that were given such a group last would be waited for by all others.
"""

from __future__ import annotations

import signal

import pytest

from tests.support import repeatable

LONGEST = (
    "kubernetes",
    "room-kubernetes",
    "kubernetes-deploy",
    "kubernetes-faults",
    "kubernetes-policies",
    "ui",
    "hdfs",
)

repeatable.register_profiles()  # before any test is imported: what they set is added to the profile


@pytest.hookimpl(trylast=True)  # when --hypothesis-profile was followed
def pytest_configure() -> None:
    """Let generated examples depend on the commit alone, unless asked for random ones.

    Also take interrupts: a run in the background of a script ignores them, and what tests start would inherit that.
    """
    if not repeatable.is_random():
        repeatable.ignore_loaded_modules()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)  # when every package has told the groups of its tests
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put them into this order."""
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    marker = item.get_closest_marker("xdist_group")
    group = str(marker.args[0]) if marker is not None and marker.args else ""
    return LONGEST.index(group) if group in LONGEST else len(LONGEST)
