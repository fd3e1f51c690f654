"""One announcement at a time, until it ends, on both databases."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import timedelta

import pytest

from pai_backend.store.announcements import Announcement
from pai_backend.store.auditing import AuditFilter
from pai_backend.store.grants import Act
from pai_backend.store.sql import Store
from pai_backend.testing.builders import T0

ACT = Act("root", T0, "192.0.2.7")


@pytest.mark.asyncio
async def test_it_ends_by_itself_at_its_time_and_the_next_replaces_it(store: Store) -> None:
    end = T0 + timedelta(hours=1)
    await store.announcements.announce(Announcement("first", end, "root", T0, end), ACT)
    found = await store.announcements.current(end - timedelta(microseconds=1))
    assert found is not None
    assert found == Announcement("first", end, "root", T0, end)
    assert (found.holds_starts(T0), found.holds_starts(end)) == (False, True)
    assert await store.announcements.current(end) is None
    await store.announcements.announce(Announcement("second", None, "root", T0), ACT)
    later = await store.announcements.current(T0 + timedelta(days=4000))
    assert later is not None
    assert (later.text, later.holds_starts(T0)) == ("second", False)


@pytest.mark.asyncio
async def test_many_at_the_same_moment_leave_one_of_them_and_all_are_told_of(store: Store, other_store: Store) -> None:
    def announced(number: int) -> Act:
        return Act("root", T0 + timedelta(microseconds=number), "")

    both = (store, other_store)

    def announce(number: int) -> Coroutine[None, None, None]:
        act = announced(number)
        return both[number % 2].announcements.announce(Announcement(f"text {number}", None, act.by, act.at), act)

    await asyncio.gather(*map(announce, range(40)))
    found = await other_store.announcements.current(T0)
    assert found is not None
    assert found == await store.announcements.current(T0)
    events = await store.audit.page(AuditFilter(types=("announcement.*",)))
    assert {each.detail for each in events} == {f"text {number}" for number in range(40)}
    await other_store.announcements.end(ACT)
    assert await store.announcements.current(T0) is None
