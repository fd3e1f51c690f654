"""Workspace names: one holder at most, whatever is submitted, released or deleted; each user has their own."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from pai_backend.model.errors import AddressTaken, InvalidParameters, NameTaken, NoSuchAddress, NoSuchJob, ReadOnlyJob
from pai_backend.model.job import Desired, Job, Phase, State
from pai_backend.store.base import slot
from pai_backend.store.sql import Store
from pai_backend.store.submission_keys import LIFE, SubmissionKey
from pai_backend.testing.builders import T0, make_job, make_spec, make_uid


def workspace(number: int, name: str, address: str = "lab", user: str = "alice", state: State = State.WAITING) -> Job:
    spec = make_spec(name=name).model_copy(update={"address": address})
    return make_job(name, uid=make_uid(number), spec=spec, user=user, state=state)


async def deleted(store: Store, job: Job) -> None:
    """End the job, of which nothing runs, and delete it."""
    lease = await store.leadership.latest() or await store.leadership.acquire("test", 3600.0, T0, force=True)
    assert lease is not None
    tasks = tuple(task.model_copy(update={"forgotten": True, "phase": Phase.ENDED}) for task in job.tasks)
    over = {"state": State.STOPPED, "phase": Phase.ENDED, "tasks": tasks, "completed_at": T0}
    await store.jobs.save(job.model_copy(update=over), seen=job, epoch=lease.epoch, events=[], at=T0)
    assert await store.deletion.request(job.uid, "alice", T0)


async def submitted(store: Store, job: Job, *, replace: bool = False, key: SubmissionKey | None = None) -> Job:
    return await store.jobs.submit(job, b"", "", "", [], replace=replace, key=key)


async def holder(store: Store, user: str = "alice", name: str = "lab") -> str | None:
    (found,) = [each for each in await store.addresses.of_user(user) if each.name == name]
    return None if found.holder is None else found.holder.uid


@pytest.mark.asyncio
async def test_ten_holders_in_a_row_have_the_alias_and_the_host_key(store: Store) -> None:
    first = await submitted(store, workspace(1, "first"))
    assert first.alias == "lab"
    await store.task_keys.put(slot(first.uid, 0, 0), "private", "ssh-ed25519 AAAA")
    for number in range(2, 11):
        job = await submitted(store, workspace(number, f"job-{number}"), replace=True)
        before = await store.jobs.get(make_uid(number - 1))
        assert (job.alias, before.alias) == ("lab", before.name)
        assert (before.desired, before.stop_reason) == (
            Desired.STOP,
            "replaced by another job of the workspace name lab",
        )
        assert job.replaces == first.uid, "the first is the only one that may run"
        assert await holder(store) == job.uid
        assert await store.task_keys.kept([slot(job.uid, 0, 0)]) == {slot(job.uid, 0, 0): "private"}
        assert (await store.jobs.find("lab", "alice")).uid == job.uid
        assert await store.addresses.held_by(job) == "lab"
        assert await store.addresses.held_by(before) == ""


@pytest.mark.asyncio
async def test_a_holder_that_goes_on_is_kept_unless_the_user_says_so(store: Store) -> None:
    first = await submitted(store, workspace(1, "first"))
    with pytest.raises(AddressTaken) as refusal:
        await submitted(store, workspace(2, "second"))
    assert "--replace" in refusal.value.hint
    assert "--address OTHER" in refusal.value.hint
    assert await store.jobs.get(first.uid) == first
    with pytest.raises(NoSuchJob):
        await store.jobs.get(make_uid(2))


@pytest.mark.asyncio
async def test_a_holder_that_has_ended_makes_room_unasked(store: Store) -> None:
    await submitted(store, workspace(1, "first", state=State.STOPPED))
    second = await submitted(store, workspace(2, "second"))
    assert (second.alias, second.replaces, await holder(store)) == ("lab", None, second.uid)


@pytest.mark.asyncio
async def test_the_name_of_a_deleted_holder_stays_reserved_until_it_is_released(store: Store) -> None:
    await deleted(store, await submitted(store, workspace(1, "lab")))
    assert await holder(store) is None
    other = await submitted(store, make_job("lab", uid=make_uid(2), user="bob"))
    assert other.alias != "lab"
    second = await submitted(store, workspace(3, "second"))
    assert (second.alias, await holder(store)) == ("lab", second.uid)
    with pytest.raises(ReadOnlyJob, match="has not ended"):
        await store.addresses.release("alice", "lab")
    with pytest.raises(NoSuchAddress):
        await store.addresses.release("bob", "lab")


@pytest.mark.asyncio
async def test_a_released_name_is_free_again(store: Store) -> None:
    await submitted(store, workspace(1, "first", state=State.STOPPED))
    await store.addresses.release("alice", "lab")
    assert await store.addresses.of_user("alice") == []
    assert await store.addresses.held_by(await store.jobs.get(make_uid(1))) == ""
    with pytest.raises(NoSuchAddress):
        await store.addresses.release("alice", "lab")


@pytest.mark.asyncio
async def test_users_have_the_same_name_beside_each_other(store: Store) -> None:
    mine = await submitted(store, workspace(1, "job", user="alice"))
    other = await submitted(store, workspace(2, "job", user="bob"))
    assert (mine.alias, other.alias != "lab") == ("lab", True)
    for user, job in (("alice", mine), ("bob", other)):
        assert await holder(store, user) == job.uid
        assert (await store.jobs.find("lab", user)).uid == job.uid
        found = await store.jobs.by_alias("lab", user)
        assert found is not None
        assert found.uid == job.uid
    third = await submitted(store, workspace(3, "next", user="bob"), replace=True)
    assert (third.alias, await holder(store, "alice")) == (other.alias, mine.uid)


@pytest.mark.asyncio
async def test_a_name_that_means_another_job_is_refused_with_words(store: Store) -> None:
    await submitted(store, make_job("lab", uid=make_uid(1)))
    with pytest.raises(AddressTaken, match="lab is the name of the job alice~lab"):
        await submitted(store, workspace(2, "second"), replace=True)
    await submitted(store, make_job("Other", uid=make_uid(3)))
    with pytest.raises(AddressTaken, match="other is the alias of the job alice~Other"):
        await submitted(store, workspace(4, "fourth", address="other"))
    assert await store.addresses.of_user("alice") == []


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.asyncio
async def test_a_job_may_not_be_called_by_a_workspace_name_that_it_does_not_hold(store: Store, replace: bool) -> None:
    await submitted(store, workspace(1, "first"))
    with pytest.raises(AddressTaken) as refusal:
        await submitted(store, make_job("lab", uid=make_uid(2)), replace=replace)
    assert "--address lab" in refusal.value.hint
    theirs = await submitted(store, make_job("lab", uid=make_uid(3), user="bob"), replace=replace)
    assert theirs.name == "lab"


@pytest.mark.asyncio
async def test_a_job_gets_a_workspace_name_of_its_own_name_when_it_replaces_itself(store: Store) -> None:
    plain = await submitted(store, make_job("lab", uid=make_uid(1)))
    with pytest.raises(NameTaken):
        await submitted(store, workspace(2, "lab"))
    held = await submitted(store, workspace(2, "lab"), replace=True)
    assert (held.alias, held.replaces, await holder(store)) == ("lab", plain.uid, held.uid)
    after = await submitted(store, workspace(3, "other"), replace=True)
    before = await store.jobs.get(held.uid)
    assert (after.alias, before.name.startswith("lab-")) == ("lab", True)
    assert (await store.jobs.find("lab", "alice")).uid == after.uid


@pytest.mark.asyncio
async def test_a_job_takes_the_place_of_one_that_goes_on_not_of_two(store: Store) -> None:
    holding = await submitted(store, workspace(1, "first"))
    named = await submitted(store, make_job("second", uid=make_uid(2)))
    with pytest.raises(AddressTaken, match="neither has ended"):
        await submitted(store, workspace(3, "second"), replace=True)
    assert [await store.jobs.get(each.uid) for each in (holding, named)] == [holding, named]


@pytest.mark.asyncio
async def test_many_at_once_leave_one_holder(store: Store) -> None:
    jobs = [workspace(number, f"job-{number}") for number in range(1, 9)]
    outcomes = await asyncio.gather(*(submitted(store, job) for job in jobs), return_exceptions=True)
    made = [each for each in outcomes if isinstance(each, Job)]
    assert len(made) == 1
    assert all(isinstance(each, AddressTaken) for each in outcomes if not isinstance(each, Job))
    assert await holder(store) == made[0].uid


@pytest.mark.asyncio
async def test_a_replacement_without_the_name_leaves_it_reserved(store: Store) -> None:
    await submitted(store, workspace(1, "first"))
    plain = await submitted(store, make_job("first", uid=make_uid(2)), replace=True)
    assert (plain.alias != "lab", await holder(store)) == (True, None)


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.asyncio
async def test_a_submission_that_is_sent_again_with_its_key_makes_nothing_more(store: Store, replace: bool) -> None:
    key = SubmissionKey.of("k", b"document")
    if replace:
        await submitted(store, make_job("job", uid=make_uid(9), state=State.FAILED))
    first = await submitted(store, make_job("job", uid=make_uid(1)), replace=replace, key=key)
    again = await submitted(store, make_job("job", uid=make_uid(2)), replace=replace, key=key)
    assert again == first
    with pytest.raises(NoSuchJob):
        await store.jobs.get(make_uid(2))
    with pytest.raises(InvalidParameters, match="Another document"):
        await submitted(store, make_job(uid=make_uid(3)), key=SubmissionKey.of("k", b"other"))
    theirs = await submitted(store, make_job(uid=make_uid(4), user="bob"), key=SubmissionKey.of("k", b"other"))
    assert theirs.user == "bob"


@pytest.mark.asyncio
async def test_old_keys_are_forgotten(store: Store) -> None:
    key = SubmissionKey.of("k", b"")
    await submitted(store, make_job("a", uid=make_uid(1)), key=key)
    later = make_job("b", uid=make_uid(2)).model_copy(update={"submitted_at": T0 + LIFE + timedelta(seconds=1)})
    await submitted(store, later, key=SubmissionKey.of("other", b""))
    third = await submitted(store, make_job("c", uid=make_uid(3)), key=key)
    assert third.uid == make_uid(3)


@pytest.mark.asyncio
async def test_the_key_of_a_deleted_job_makes_another(store: Store) -> None:
    key = SubmissionKey.of("k", b"")
    await deleted(store, await submitted(store, make_job("job", uid=make_uid(1)), key=key))
    assert (await submitted(store, make_job("job", uid=make_uid(2)), key=key)).uid == make_uid(2)
