"""One announcement at a time, until it ends, on both databases."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from pai_backend.store.auditing import AuditFilter
from pai_backend.store.grants import Act
from pai_backend.store.sql import Store
from pai_backend.testing.builders import T0

ACT = Act("root", T0, "192.0.2.7")


@pytest.mark.asyncio
async def test_it_ends_by_itself_at_its_time_and_the_next_replaces_it(store: Store) -> None:
    end = T0 + timedelta(hours=1)
    await store.announcements.announce("first", end, ACT)
    found = await store.announcements.current(end - timedelta(microseconds=1))
    assert found is not None
    assert (found.text, found.until, found.by, found.at) == ("first", end, "root", T0)
    assert await store.announcements.current(end) is None
    await store.announcements.announce("second", None, ACT)
    later = await store.announcements.current(T0 + timedelta(days=4000))
    assert later is not None
    assert later.text == "second"


@pytest.mark.asyncio
async def test_many_at_the_same_moment_leave_one_of_them_and_all_are_told_of(store: Store, other_store: Store) -> None:
    def announced(number: int) -> Act:
        return Act("root", T0 + timedelta(microseconds=number), "")

    both = (store, other_store)
    works = (both[number % 2].announcements.announce(f"text {number}", None, announced(number)) for number in range(40))
    await asyncio.gather(*works)
    found = await other_store.announcements.current(T0)
    assert found is not None
    assert found == await store.announcements.current(T0)
    events = await store.audit.page(AuditFilter(types=("announcement.*",)))
    assert {each.detail for each in events} == {f"text {number}" for number in range(40)}
    await other_store.announcements.end(ACT)
    assert await store.announcements.current(T0) is None
