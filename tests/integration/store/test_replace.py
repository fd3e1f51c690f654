"""A new job in the place of the one that has its name, in the store."""

from __future__ import annotations

import pytest

from pai_backend.lifecycle.events import PredecessorEnded
from pai_backend.lifecycle.step import step, to_place
from pai_backend.model.errors import NameTaken
from pai_backend.model.job import Desired, State
from pai_backend.store.base import slot
from pai_backend.store.sql import Store
from pai_backend.testing.builders import T0, make_job, make_role, make_spec, make_uid

TWO = make_spec(roles=[make_role(instances=2)])


@pytest.mark.asyncio
async def test_name_alias_and_host_keys_go_over_and_the_new_job_waits(store: Store) -> None:
    old = await store.jobs.submit(make_job(uid=make_uid(1), spec=TWO), b"", "", "", [])
    await store.task_keys.put(slot(old.uid, 0, 0), "private", "ssh-ed25519 AAAA")

    new = await store.jobs.submit(make_job(uid=make_uid(2)), b"", "", "", [], replace=True)

    before = await store.jobs.get(old.uid)
    assert (new.name, new.alias, new.replaces) == (old.name, old.alias, old.uid)
    assert new == await store.jobs.get(new.uid)
    assert new.why == f"waits until {before.id}, which it replaces, has ended"
    assert before.name == f"{old.name}-{old.uid[1:5]}"
    assert before.alias not in (old.alias, "")
    assert (before.desired, before.stop_reason) == (Desired.STOP, "replaced by another job of its name")
    assert [event.type for event in await store.events.of_job(old.uid)] == ["job.replaced", "job.stop-requested"]
    assert {each.uid for each in await store.jobs.dirty()} == {old.uid, new.uid}
    assert await store.task_keys.kept([slot(new.uid, 0, 0)]) == {slot(new.uid, 0, 0): "private"}
    assert (await store.jobs.find(old.name, old.user)).uid == new.uid
    assert (await store.jobs.find(before.name, old.user)).uid == old.uid

    assert to_place(new, T0) == ()
    freed, _ = step(new, PredecessorEnded(), T0)
    assert (freed.why, to_place(freed, T0)) == ("", freed.tasks)


@pytest.mark.asyncio
async def test_nothing_waits_for_a_job_that_has_ended(store: Store) -> None:
    old = await store.jobs.submit(make_job(uid=make_uid(1), state=State.FAILED), b"", "", "", [])
    new = await store.jobs.submit(make_job(uid=make_uid(2)), b"", "", "", [], replace=True)
    assert (new.alias, new.replaces, to_place(new, T0)) == (old.alias, None, new.tasks)
    assert [event.type for event in await store.events.of_job(old.uid)] == ["job.replaced"]


@pytest.mark.asyncio
async def test_each_in_a_row_gives_its_name_to_the_next(store: Store) -> None:
    first = await store.jobs.submit(make_job(uid=make_uid(1)), b"", "", "", [])
    second = await store.jobs.submit(make_job(uid=make_uid(2)), b"", "", "", [], replace=True)
    third = await store.jobs.submit(make_job(uid=make_uid(3)), b"", "", "", [], replace=True)
    assert (first.alias, second.alias, third.alias) == (first.alias,) * 3
    assert third.replaces == first.uid, "the second never ran, the first still may"
    names = {(await store.jobs.get(uid)).name for uid in (first.uid, second.uid, third.uid)}
    assert len(names) == 3


@pytest.mark.asyncio
async def test_without_the_wish_a_taken_name_is_refused_with_both_ways(store: Store) -> None:
    await store.jobs.submit(make_job(uid=make_uid(1)), b"", "", "", [])
    with pytest.raises(NameTaken) as refusal:
        await store.jobs.submit(make_job(uid=make_uid(2)), b"", "", "", [])
    assert "--name OTHER" in refusal.value.hint
    assert "--replace" in refusal.value.hint


@pytest.mark.asyncio
async def test_another_users_job_of_that_name_is_left_alone(store: Store) -> None:
    other = await store.jobs.submit(make_job(uid=make_uid(1), user="bob"), b"", "", "", [])
    mine = await store.jobs.submit(make_job(uid=make_uid(2), user="alice"), b"", "", "", [], replace=True)
    assert mine.replaces is None
    assert mine.alias != other.alias
    assert await store.jobs.get(other.uid) == other
