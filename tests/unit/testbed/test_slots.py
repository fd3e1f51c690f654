"""Slots: two runs never have the same, the last who leaves sweeps, and what is kept stays."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.kubernetes.cluster import network, slots
from tests.kubernetes.cluster.addresses import SLOTS, Addresses
from tests.kubernetes.cluster.processes import Daemon
from tests.kubernetes.cluster.slots import NoSlot, Slot, claim, join, leave, sweep_unused

pytestmark = [pytest.mark.asyncio, pytest.mark.skipif(sys.platform != "linux", reason="clusters need Linux")]


@pytest.fixture(autouse=True)
def nothing_routed(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Slots whose addresses this machine routes elsewhere."""
    routed: set[int] = set()

    async def taken(addresses: Addresses) -> bool:
        return addresses.slot in routed

    monkeypatch.setattr(network, "taken", taken)
    return routed


async def sweep(slot: Slot) -> None:
    """Cautious on purpose: a directory with something in it is not to be swept in these tests."""
    if slot.directory.exists():
        slot.directory.rmdir()


async def test_two_that_use_slots_have_different_ones(tmp_path: Path) -> None:
    one, other = await claim(sweep, tmp_path), await claim(sweep, tmp_path)
    assert (one.number, other.number) == (0, 1)
    await leave(one, sweep)
    again = await claim(sweep, tmp_path)
    assert again.number == 0
    await leave(again, sweep)
    await leave(other, sweep)
    assert list(slots.slots(tmp_path)) == []


async def test_the_last_who_leaves_sweeps(tmp_path: Path) -> None:
    one = await claim(sweep, tmp_path)
    other = await join(one.number, tmp_path)
    await leave(one, sweep)
    assert one.directory.exists()
    await leave(other, sweep)
    assert not one.directory.exists()


async def test_what_a_killed_run_has_left_is_swept_by_the_next_claim(tmp_path: Path) -> None:
    (tmp_path / "3").mkdir()
    mine = await claim(sweep, tmp_path)
    assert not (tmp_path / "3").exists()
    await leave(mine, sweep)


async def test_addresses_that_lead_elsewhere_are_left_alone(tmp_path: Path, nothing_routed: set[int]) -> None:
    nothing_routed |= {0, 1}
    mine = await claim(sweep, tmp_path)
    assert mine.number == 2
    await leave(mine, sweep)


async def test_all_in_use_says_so(tmp_path: Path) -> None:
    mine = [await claim(sweep, tmp_path) for _ in range(SLOTS)]
    with pytest.raises(NoSlot, match="make cluster-stop"):
        await claim(sweep, tmp_path)
    for slot in mine:
        await leave(slot, sweep)


async def test_what_is_kept_stays_while_it_runs_and_until_it_is_let_go(tmp_path: Path) -> None:
    kept = await claim(sweep, tmp_path)
    part = Daemon(kept.directory, "part")
    part.start(["sleep", "600"], tmp_path)
    kept.keep()
    await leave(kept, sweep)
    other = await claim(sweep, tmp_path)
    assert other.number == 1
    assert await sweep_unused(sweep, tmp_path) == 0
    await leave(other, sweep)
    # A restart of the machine ends it, and lets nobody keep it.
    await part.kill()
    part.log.unlink()
    (kept.directory / "kept").unlink()
    assert await sweep_unused(sweep, tmp_path) == 1


async def test_a_kept_cluster_of_which_nothing_runs_is_swept(tmp_path: Path) -> None:
    kept = await claim(sweep, tmp_path)
    kept.keep()
    swept = []

    async def sweep_all(slot: Slot) -> None:
        swept.append(slot.number)
        (slot.directory / "kept").unlink()
        await sweep(slot)

    os.close(kept.lock)  # as for a process that was killed
    following = await claim(sweep_all, tmp_path)
    assert swept == [0]
    await leave(following, sweep)
