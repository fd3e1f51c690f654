"""How a process is told to end, and when it is to hurry."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from pai_backend.config.settings import ProcessRole, Settings
from pai_backend.processes import app
from pai_backend.processes.components import Components

pytestmark = pytest.mark.asyncio

DRAIN_AND_ALL_S = 99


@pytest.fixture
def alarms(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    set_to: list[int] = []
    monkeypatch.setattr(signal, "alarm", set_to.append)
    return set_to


@pytest.fixture
def lifeline() -> Iterator[tuple[int, list[int]]]:
    """The end that a child reads, and the supervisor's, which is the only one in the list while it lives."""
    read, write = os.pipe()
    held = [write]
    yield read, held
    for descriptor in (read, *held):
        os.close(descriptor)


def _components(tmp_path: Path) -> Components:
    return Components(Settings(data_dir=tmp_path), (ProcessRole.GATEWAY,), "1.0", asyncio.Event())


async def _told(number: signal.Signals) -> None:
    """Send ourselves a signal and wait until the loop has seen it."""
    seen = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, seen.set)
    os.kill(os.getpid(), number)
    os.kill(os.getpid(), signal.SIGUSR1)
    await asyncio.wait_for(seen.wait(), 60)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_process_alone_ends_when_told_and_hurries_when_told_again(
    tmp_path: Path, alarms: list[int], number: signal.Signals
) -> None:
    components = _components(tmp_path)
    app._end_on_request(components, None, DRAIN_AND_ALL_S)
    await _told(number)
    assert (components.stop.is_set(), components.hurry.is_set(), alarms) == (True, False, [DRAIN_AND_ALL_S])
    await _told(number)
    assert (components.hurry.is_set(), alarms) == (True, [DRAIN_AND_ALL_S, app.DEADLINE_S])


async def test_a_child_heeds_its_supervisor_alone_and_ends_as_told_when_that_is_gone(
    tmp_path: Path, alarms: list[int], lifeline: tuple[int, list[int]]
) -> None:
    components, (read, held) = _components(tmp_path), lifeline
    app._end_on_request(components, read, DRAIN_AND_ALL_S)
    await _told(signal.SIGINT)
    assert not components.stop.is_set(), "an interrupt of the terminal is the supervisor's to pass on"
    os.close(held.pop())
    await asyncio.wait_for(components.stop.wait(), 60)
    assert (components.hurry.is_set(), alarms) == (False, [DRAIN_AND_ALL_S]), "logins have the whole drain"
    for _ in range(2):
        await _told(signal.SIGTERM)
        assert (components.hurry.is_set(), alarms) == (False, [DRAIN_AND_ALL_S])
