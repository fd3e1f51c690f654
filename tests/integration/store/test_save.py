"""The controller's writes: fenced by epoch and version, all or nothing, with events that have no gaps."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import Connection, event

from pai_backend.model.errors import Bug
from pai_backend.model.ids import PortLease
from pai_backend.model.job import Job, JobExit, NewEvent, Phase, State, Task, TaskExit
from pai_backend.store.base import Conflict, Fenced, PortTaken, slot
from pai_backend.store.sql import Store
from pai_backend.testing.builders import T0, make_job, make_role, make_spec, make_tasks, make_uid

STATE = NewEvent("job.state", {"state": "RUNNING"})


async def submitted(store: Store, number: int = 1, instances: int = 1) -> Job:
    job = make_job(
        f"job-{number}",
        uid=make_uid(number),
        spec=make_spec(f"job-{number}", roles=[make_role(instances=instances)]),
    )
    return await store.jobs.submit(job, b"", "", "", [NewEvent("job.submitted")])


async def new_epoch(store: Store, holder: str = "one") -> int:
    lease = await store.leadership.acquire(holder, 10.0, T0, force=True)
    assert lease is not None
    return lease.epoch


def running(job: Job) -> Job:
    tasks = tuple(task.model_copy(update={"state": State.RUNNING, "phase": Phase.RUNNING}) for task in job.tasks)
    return job.model_copy(update={"state": State.RUNNING, "phase": Phase.RUNNING, "tasks": tasks, "launched_at": T0})


async def save(
    store: Store,
    job: Job,
    seen: Job,
    epoch: int,
    *,
    lease: tuple[PortLease, ...] = (),
    release: tuple[str, ...] = (),
) -> Job:
    return await store.jobs.save(job, seen=seen, epoch=epoch, events=[STATE], at=T0, lease=lease, release=release)


@pytest.mark.asyncio
async def test_a_saved_job_is_loaded_as_it_was_returned(store: Store) -> None:
    job, epoch = await submitted(store, instances=3), await new_epoch(store)
    exit_of_task = TaskExit(code=3, message="said no", at=T0)
    tasks = (job.tasks[0], job.tasks[1].model_copy(update={"exit": exit_of_task}), job.tasks[2])
    changed = job.model_copy(
        update={
            "state": State.FAILED,
            "phase": Phase.ENDED,
            "why": "no GPU is free",
            "tasks": tasks,
            "exit": JobExit(status=3, message="worker-1 exited with 3", role="worker", index=1),
            "backoff_until": T0 + timedelta(microseconds=1),
            "completed_at": T0 + timedelta(days=1),
        }
    )

    saved = await save(store, changed, job, epoch)

    assert saved.version == job.version + 1
    assert await store.jobs.get(job.uid) == saved
    assert saved == changed.model_copy(update={"version": saved.version})


@pytest.mark.asyncio
async def test_a_stale_version_is_a_conflict_and_changes_nothing(store: Store) -> None:
    job, epoch = await submitted(store), await new_epoch(store)
    await store.jobs.request_stop(job.uid, "alice", T0)
    before = await store.jobs.get(job.uid)

    with pytest.raises(Conflict):
        await save(store, running(job), job, epoch, lease=(PortLease("laptop", 15000, slot(job.uid, 0, 0)),))

    assert await store.jobs.get(job.uid) == before
    assert await store.ports.leases() == []
    assert len(await store.events.of_job(job.uid)) == 2


@pytest.mark.asyncio
async def test_of_two_concurrent_saves_of_one_version_exactly_one_wins(store: Store, other_store: Store) -> None:
    job, epoch = await submitted(store), await new_epoch(store)

    outcomes = await asyncio.gather(
        *(save(who, running(job), job, epoch) for who in (store, store, other_store)), return_exceptions=True
    )

    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict", "Conflict", "Job"]
    assert [event.seq for event in await store.events.of_job(job.uid)] == [1, 2]


@pytest.mark.asyncio
async def test_an_old_epoch_is_fenced_however_fresh_the_job(store: Store, other_store: Store) -> None:
    job, old = await submitted(store), await new_epoch(store, "old")
    new = await new_epoch(other_store, "new")

    with pytest.raises(Fenced):
        await save(store, running(job), job, old)
    saved = await save(other_store, running(job), job, new)

    assert await store.jobs.get(job.uid) == saved


@pytest.mark.asyncio
async def test_saves_of_an_old_and_a_new_epoch_in_one_group_are_told_apart(store: Store) -> None:
    first, second = await submitted(store, 1), await submitted(store, 2)
    old = await new_epoch(store)
    new = await new_epoch(store)

    fenced, saved = await asyncio.gather(
        save(store, running(first), first, old), save(store, running(second), second, new), return_exceptions=True
    )

    assert isinstance(fenced, Fenced)
    assert isinstance(saved, Job)
    assert await store.jobs.get(first.uid) == first


@pytest.mark.asyncio
async def test_a_port_goes_to_one_of_two_concurrent_saves(store: Store, other_store: Store) -> None:
    first, second, third = [await submitted(store, number) for number in (1, 2, 3)]
    epoch = await new_epoch(store)

    outcomes = await asyncio.gather(
        *(
            save(who, running(job), job, epoch, lease=(PortLease("laptop", 15000, slot(job.uid, 0, 0)),))
            for who, job in ((store, first), (store, second), (other_store, third))
        ),
        return_exceptions=True,
    )

    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Job", "PortTaken", "PortTaken"]
    (winner,) = [outcome for outcome in outcomes if isinstance(outcome, Job)]
    assert await store.ports.leases() == [PortLease("laptop", 15000, slot(winner.uid, 0, 0))]
    for job in (first, second, third):
        assert (await store.jobs.get(job.uid)).state is (State.RUNNING if job.uid == winner.uid else State.WAITING)


@pytest.mark.asyncio
async def test_a_port_taken_leaves_nothing_of_its_save(store: Store) -> None:
    first, second, epoch = await submitted(store, 1), await submitted(store, 2), await new_epoch(store)
    mine, theirs = slot(first.uid, 0, 0), slot(second.uid, 0, 0)
    await save(store, running(first), first, epoch, lease=(PortLease("laptop", 15001, mine),))

    with pytest.raises(PortTaken, match="15001"):
        await save(
            store,
            running(second),
            second,
            epoch,
            lease=(PortLease("laptop", 15000, theirs), PortLease("laptop", 15001, theirs)),
        )

    assert await store.ports.leases() == [PortLease("laptop", 15001, mine)]
    assert await store.jobs.get(second.uid) == second
    assert len(await store.events.of_job(second.uid)) == 1


@pytest.mark.asyncio
async def test_a_lease_is_kept_over_attempts_and_moves_when_released(store: Store) -> None:
    first, second, epoch = await submitted(store, 1), await submitted(store, 2), await new_epoch(store)
    mine, theirs = slot(first.uid, 0, 0), slot(second.uid, 0, 0)
    kept, more = PortLease("laptop", 15000, mine), PortLease("laptop", 15001, mine)

    first = await save(store, running(first), first, epoch, lease=(kept, more))
    first = await save(store, first, first, epoch, lease=(kept,))
    assert await store.ports.leases() == [kept, more]
    # Both in one group: what the first releases the second may have.
    await asyncio.gather(
        save(store, first, first, epoch, release=(mine,)),
        save(store, running(second), second, epoch, lease=(PortLease("laptop", 15000, theirs),)),
    )

    assert await store.ports.leases() == [PortLease("laptop", 15000, theirs)]


@pytest.mark.asyncio
async def test_one_port_number_on_two_machines_is_two_ports(store: Store) -> None:
    job, epoch = await submitted(store, instances=2), await new_epoch(store)
    leases = (PortLease("a", 15000, slot(job.uid, 0, 0)), PortLease("b", 15000, slot(job.uid, 0, 1)))

    await save(store, running(job), job, epoch, lease=leases)

    assert await store.ports.leases() == list(leases)


@pytest.mark.asyncio
async def test_events_of_a_job_have_no_gaps_however_many_write(store: Store, other_store: Store) -> None:
    jobs = [await submitted(store, number) for number in range(4)]
    epoch = await new_epoch(store)

    async def until_saved(who: Store, number: int) -> None:
        for _ in range(8):
            while True:
                seen = await who.jobs.get(jobs[number].uid)
                try:
                    await save(who, running(seen), seen, epoch)
                    break
                except Conflict:
                    continue

    await asyncio.gather(*(until_saved(who, number) for number in range(4) for who in (store, other_store)))

    for job in jobs:
        assert [event.seq for event in await store.events.of_job(job.uid)] == list(range(1, 18))
        assert (await store.jobs.get(job.uid)).version == 17


@pytest.mark.asyncio
async def test_a_retry_keeps_the_tasks_of_the_first_attempt_as_history(store: Store) -> None:
    job, epoch = await submitted(store, instances=2), await new_epoch(store)
    retried = job.model_copy(update={"attempt": 1, "tasks": make_tasks(job.uid, job.spec, attempt=1)})

    saved = await save(store, retried, job, epoch)

    assert (await store.jobs.get(job.uid)).tasks == saved.tasks == retried.tasks
    past = [Task.model_validate(task) for task in await store.jobs.past_tasks(job.uid)]
    assert past == [*job.tasks, *retried.tasks]


@pytest.mark.asyncio
async def test_only_tasks_that_differ_are_written(store: Store) -> None:
    job, epoch = await submitted(store, instances=50), await new_epoch(store)
    equal = Task.model_validate(job.tasks[7].model_dump())  # another object, but nothing differs
    changed = job.tasks[9].model_copy(update={"state": State.RUNNING})
    tasks = (*job.tasks[:7], equal, job.tasks[8], changed, *job.tasks[10:])
    written: list[object] = []

    def note(
        _conn: Connection, _cursor: object, statement: str, parameters: object, _context: object, _many: bool
    ) -> None:
        if "UPDATE tasks" in statement or "INSERT INTO tasks" in statement:
            written.append(parameters)

    engine = store._database.backing.writing_engine()
    event.listen(engine, "before_cursor_execute", note)
    try:
        await save(store, job.model_copy(update={"tasks": tasks}), job, epoch)
    finally:
        event.remove(engine, "before_cursor_execute", note)

    assert len(written) == 1
    assert str(changed.uid) in str(written)
    assert str(equal.uid) not in str(written)


@pytest.mark.asyncio
async def test_a_task_that_vanishes_within_an_attempt_is_a_bug(store: Store) -> None:
    job, epoch = await submitted(store, instances=2), await new_epoch(store)

    with pytest.raises(Bug, match="lost tasks"):
        await save(store, job.model_copy(update={"tasks": job.tasks[:1]}), job, epoch)

    assert await store.jobs.get(job.uid) == job


@pytest.mark.asyncio
async def test_a_bug_in_one_save_does_not_harm_the_others_of_its_group(store: Store) -> None:
    jobs = [await submitted(store, number) for number in range(4)]
    epoch = await new_epoch(store)
    broken = jobs[1].model_copy(update={"tasks": ()})

    outcomes = await asyncio.gather(
        *(save(store, broken if job is jobs[1] else running(job), job, epoch) for job in jobs), return_exceptions=True
    )

    assert [type(outcome) for outcome in outcomes] == [Job, Bug, Job, Job]
    assert await store.jobs.get(jobs[3].uid) == outcomes[3]


@pytest.mark.asyncio
async def test_a_job_is_unfinished_until_it_is_final_and_forgotten(store: Store) -> None:
    job, epoch = await submitted(store), await new_epoch(store)
    assert [found.uid for found in await store.jobs.unfinished()] == [job.uid]

    final = await save(store, job.model_copy(update={"state": State.SUCCEEDED}), job, epoch)
    assert await store.jobs.unfinished() == [final]

    forgotten = tuple(task.model_copy(update={"forgotten": True}) for task in final.tasks)
    await save(store, final.model_copy(update={"tasks": forgotten}), final, epoch)
    assert await store.jobs.unfinished() == []


@pytest.mark.asyncio
async def test_a_job_is_dirty_from_an_intent_to_the_next_save(store: Store) -> None:
    late = make_job("late", uid=make_uid(1), submitted_at=T0 + timedelta(seconds=1))
    early = make_job("early", uid=make_uid(2), submitted_at=T0)
    epoch = await new_epoch(store)
    for job in (late, early):
        await store.jobs.submit(job, b"", "", "", [])
    dirty = await store.jobs.dirty()
    assert [job.name for job in dirty] == ["early", "late"]

    for job in dirty:
        await save(store, running(job), job, epoch)
    assert await store.jobs.dirty() == []

    stopped = await store.jobs.request_stop(late.uid, "alice", T0, "no longer needed")
    assert await store.jobs.dirty() == [stopped]
