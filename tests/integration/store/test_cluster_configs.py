"""Versions of the cluster configuration: recorded, in force, remembered."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pai_backend.model.errors import StaleVersion
from pai_backend.store.base import Fenced
from pai_backend.store.sql import Store
from pai_backend.store.versions import MOST_KEPT, VersionOrigin
from pai_backend.testing.builders import T0

SECOND = timedelta(seconds=1)


async def controller(store: Store) -> int:
    lease = await store.leadership.acquire("one", 10, T0, force=True)
    assert lease is not None
    return lease.epoch


async def numbers(store: Store) -> tuple[int, int]:
    state = await store.configs.state()
    return state.number, state.in_force_number


@pytest.mark.asyncio
async def test_a_version_is_recorded_first_and_in_force_when_the_controller_says_so(store: Store) -> None:
    epoch = await controller(store)
    assert await numbers(store) == (0, 0)
    made = await store.configs.record("one: 1", "root", T0, 0)
    assert (made.version, made.origin, made.by, made.in_force_at) == (1, VersionOrigin.REST, "root", None)
    assert await numbers(store) == (1, 0)
    await store.configs.took_force(1, '{"kept":[]}', T0 + SECOND, epoch)
    await store.configs.took_force(1, "again", T0 + 2 * SECOND, epoch)
    assert await numbers(store) == (1, 1)
    (kept,) = await store.configs.history(10)
    assert (kept.recorded_at, kept.in_force_at, kept.effects) == (T0, T0 + SECOND, '{"kept":[]}')
    assert [await store.configs.text(number) for number in (1, 2)] == ["one: 1", None]
    assert [await store.configs.version(number) for number in (1, 2)] == [kept, None]


@pytest.mark.asyncio
async def test_of_two_who_have_seen_the_same_version_one_is_refused(store: Store, other_store: Store) -> None:
    await store.configs.record("one: 1", "root", T0, 0)
    with pytest.raises(StaleVersion, match="version 1, not 0"):
        await other_store.configs.record("two: 2", "admin", T0, 0)
    assert [each.by for each in await store.configs.history(10)] == ["root"]


@pytest.mark.asyncio
async def test_a_controller_that_lost_its_lease_changes_nothing(store: Store) -> None:
    epoch = await controller(store)
    await store.configs.record("one: 1", "root", T0, 0)
    await controller(store)
    with pytest.raises(Fenced):
        await store.configs.took_force(1, "", T0, epoch)
    with pytest.raises(Fenced):
        await store.configs.adopt_setting("file: 1", T0, epoch, fixed=False)
    assert await numbers(store) == (1, 0)


@pytest.mark.asyncio
async def test_the_first_setting_has_force_at_once_and_a_changed_one_is_a_new_version(store: Store) -> None:
    epoch = await controller(store)
    await store.configs.adopt_setting("", T0, epoch, fixed=False)
    assert await numbers(store) == (0, 0)
    for text, expected in (("a", (1, 1)), ("a", (1, 1)), ("b", (2, 1)), ("", (3, 1))):
        await store.configs.adopt_setting(text, T0, epoch, fixed=False)
        assert await numbers(store) == expected
    assert [await store.configs.text(number) for number in (1, 2, 3)] == ["a", "b", ""]


@pytest.mark.asyncio
async def test_what_was_applied_outlives_a_setting_that_stays_as_it_was(store: Store) -> None:
    epoch = await controller(store)
    await store.configs.adopt_setting("file", T0, epoch, fixed=False)
    await store.configs.record("applied", "root", T0, 1)
    await store.configs.adopt_setting("file", T0, epoch, fixed=False)
    assert await numbers(store) == (2, 1)


@pytest.mark.asyncio
async def test_a_fixed_setting_comes_back_over_what_was_applied(store: Store) -> None:
    epoch = await controller(store)
    await store.configs.adopt_setting("file", T0, epoch, fixed=True)
    await store.configs.record("applied", "root", T0, 1)
    for _ in range(2):
        await store.configs.adopt_setting("file", T0, epoch, fixed=True)
    assert await numbers(store) == (3, 1)
    assert await store.configs.text(3) == "file"


@pytest.mark.asyncio
async def test_old_versions_are_forgotten_but_never_the_one_in_force_nor_the_settings_last(store: Store) -> None:
    epoch = await controller(store)
    await store.configs.adopt_setting("file", T0, epoch, fixed=False)
    await store.configs.record("two", "root", T0, 1)
    await store.configs.record("three", "root", T0, 2)
    await store.configs.took_force(3, "", T0, epoch)
    for number in range(3, MOST_KEPT + 10):
        await store.configs.record(f"v{number + 1}", "root", T0, number)
    kept = [each.version for each in await store.configs.history(1000)]
    assert kept == [*range(MOST_KEPT + 10, 10, -1), 3, 1]
    assert (await store.configs.text(1), await store.configs.text(2)) == ("file", None)


@pytest.mark.asyncio
async def test_recording_wakes_whoever_waits_for_changes(store: Store) -> None:
    mark = await store.changes.wait(-1, 0)
    await store.configs.record("one", "root", T0, 0)
    assert await store.changes.wait(mark, 60) != mark
