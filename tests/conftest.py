"""The order of all tests: those that one worker must have together come first, the longest group before the others.

A worker that were given such a group last would be waited for by all others. What a group shares (a cluster, a browser,
a backend) ends with it: until the end of the whole run it would cost all others a part of the machine.

The tests of a file that share a fixture of it are a group, too. xdist gives tests without a group to all workers in
turn, and each worker would start a backend of its own for one or two tests.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator

import pytest
from _pytest.runner import runtestprotocol

from tests.attack.table import pytest_terminal_summary  # noqa: F401 - a hook
from tests.support import repeatable

LONGEST = (
    "kubernetes",
    "room-kubernetes",
    "containers",
    "kubernetes-deploy",
    "kubernetes-faults",
    "kubernetes-policies",
    "ui-further-labs",
    "ui",
    "attack",
    "room-local",
    "hdfs",
    "schema",
    "task-accounts",
    "secrets",
)

repeatable.register_profiles()  # before any test is imported: what they set is added to the profile


@pytest.hookimpl(trylast=True)  # when --hypothesis-profile was followed
def pytest_configure(config: pytest.Config) -> None:
    """Let generated examples depend on the commit alone, unless asked for random ones.

    Backends that tests start reserve no disk: there are hundreds, whose directories stay for a while.

    Workers take tests in our order: xdist's own puts the groups of most tests first, not those that take longest.

    Also take interrupts: a run in the background of a script ignores them, and what tests start would inherit that.
    """
    config.option.loadscopereorder = False
    if not repeatable.is_random():
        repeatable.ignore_loaded_modules()
    if "PAI_ATTACK_PYTHON" not in os.environ:  # a backend of then does not know the key
        os.environ.setdefault("PAI_BACKEND_DISK_RESERVE_BYTES", "0")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Look for no garbage in what is imported and collected, then or later: that takes a sixth of the time."""
    # Hooks registered last are called first: before that of xdist, which reads the groups, after those of packages.
    session.config.pluginmanager.register(FileGroups())
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)  # when every package has told the groups of its tests
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put them into this order."""
    items.sort(key=_rank)


class FileGroups:
    """Makes a group of the tests of a file that share a fixture, unless their package has told another group."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Mark them."""
        for item in items:
            if not _group(item) and _shares_fixture(item):
                item.add_marker(pytest.mark.xdist_group(_file(item)))


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run the last test of a group as if it were the last of all, which ends all that was made for the session."""
    if nextitem is None or _group(item) in ("", _file(item), _group(nextitem)):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    runtestprotocol(item, nextitem=None)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _group(item: pytest.Item) -> str:
    marker = item.get_closest_marker("xdist_group")
    return str(marker.args[0]) if marker is not None and marker.args else ""


def _file(item: pytest.Item) -> str:
    """The group of the tests of a file, which shares nothing with others."""
    return item.nodeid.partition("::")[0]


def _shares_fixture(item: pytest.Item) -> bool:
    """Whether the test takes a fixture that is made once for its file."""
    assert isinstance(item, pytest.Function)
    known = item._fixtureinfo.name2fixturedefs
    return any(known[name][-1].scope == "module" for name in item.fixturenames if name in known)


def _rank(item: pytest.Item) -> int:
    group = _group(item)
    return LONGEST.index(group) if group in LONGEST else len(LONGEST) + (not group)
