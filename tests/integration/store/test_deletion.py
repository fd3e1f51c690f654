"""Deleting finished jobs: what goes, what stays, who may ask, and what followers hear."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from sqlalchemy import Column, Connection, Table, func, select

from pai_backend.model.errors import NoSuchJob, NotFinished
from pai_backend.model.ids import JobUid, PortLease
from pai_backend.model.job import Job, NewEvent, Phase, State
from pai_backend.model.rights import limits_of
from pai_backend.store.base import CannotTakeBack, JobFilter, Sight, UserKey, peer_key_slot, slot
from pai_backend.store.deletion import FRESH, TOLD, Deletion, DeletionCause, Retention
from pai_backend.store.grants import Act, Certificate, Share
from pai_backend.store.orphans import Orphan
from pai_backend.store.people_tables import metadata
from pai_backend.store.sql import Store
from pai_backend.store.taking_back import LostJob
from pai_backend.testing.builders import T0, make_job, make_uid

LATER = T0 + timedelta(days=2)
ACT = Act("alice", T0)


async def finished(store: Store, number: int = 0, *, forgotten: bool = True, completed_at: datetime = T0) -> Job:
    """Store a job that has ended, with its tasks forgotten by the engine or not."""
    job = make_job(f"job-{number}", uid=make_uid(number))
    job = await store.jobs.submit(job, b"document", "job.yaml", "application/yaml", [NewEvent("job.submitted", {})])
    tasks = tuple(task.model_copy(update={"forgotten": forgotten, "phase": Phase.ENDED}) for task in job.tasks)
    changes = {"state": State.SUCCEEDED, "phase": Phase.ENDED, "tasks": tasks, "completed_at": completed_at}
    return await store.jobs.save(
        job.model_copy(update=changes),
        seen=job,
        epoch=await controlling(store),
        events=[NewEvent("job.succeeded", {})],
        at=completed_at,
        lease=[PortLease("laptop", 15000 + number, slot(job.uid, 0, 0))],
    )


async def controlling(store: Store) -> int:
    lease = await store.leadership.latest() or await store.leadership.acquire("test", 3600.0, T0, force=True)
    assert lease is not None
    return lease.epoch


def _counting(table: Table, column: Column[str], uid: JobUid) -> Callable[[Connection], int]:
    query = select(func.count()).select_from(table).where(column.startswith(uid))
    return lambda conn: int(conn.scalar(query) or 0)


async def rows_of(store: Store, uid: JobUid) -> dict[str, int]:
    """How many rows of each table are about a job, by whichever column names it."""
    found = {}
    for table in metadata.sorted_tables:
        columns = [column for name in ("uid", "job", "owner") if (column := table.c.get(name)) is not None]
        for column in columns:
            found[table.name] = await store._database.read(_counting(table, column, uid))
    return {name: count for name, count in found.items() if count}


@pytest.mark.asyncio
async def test_nothing_about_a_deleted_job_stays_but_the_mark_the_last_event_and_the_audit(store: Store) -> None:
    job, other = await finished(store, 1), await finished(store, 2)
    for each in (job, other):
        await store.task_keys.put(slot(each.uid, 0, 0), "pem", "ssh-ed25519 AAAA")
        await store.user_keys.add(UserKey(f"SHA256:{each.uid}", "alice", "ssh-ed25519 AAAA", "", T0, job=each.uid), ACT)
        made = Certificate(int(each.uid[1]), "alice", "SHA256:k", "ca", ("a",), limits_of([]), T0, LATER, job=each.uid)
        await store.grants.issue(made, ACT)
    await store.explanations.ask(job.uid, T0)
    await store.jobs.tag(job.uid, "old")
    before = await rows_of(store, other.uid)

    assert await store.deletion.request(job.uid, "alice", LATER)

    assert await rows_of(store, job.uid) == {"deletions": 1, "events": 1, "audit_events": 2}
    assert await rows_of(store, other.uid) == before
    assert before.keys() >= {"jobs", "tasks", "documents", "task_keys", "port_leases", "user_keys", "certificates"}
    with pytest.raises(NoSuchJob):
        await store.jobs.find(f"alice~{job.name}")
    assert await store.jobs.by_alias(job.alias) is None
    listed, total = await store.jobs.page(JobFilter())
    assert ([row.uid for row in listed], total) == ([other.uid], 1)
    assert sum((await store.jobs.counts()).values()) == 1


@pytest.mark.asyncio
async def test_a_job_that_has_not_ended_is_not_deleted(store: Store) -> None:
    job = await store.jobs.submit(make_job(), b"", "", "", [])

    with pytest.raises(NotFinished) as refusal:
        await store.deletion.request(job.uid, "alice", T0)

    assert "pai stop" in refusal.value.hint
    assert await store.jobs.get(job.uid) == job
    assert await store.deletion.pending(None, 10) == []


@pytest.mark.asyncio
async def test_deleting_no_job_is_an_error_also_after_it_was_deleted(store: Store) -> None:
    job = await finished(store)
    await store.deletion.request(job.uid, "alice", LATER)

    for uid in (job.uid, make_uid(7)):
        with pytest.raises(NoSuchJob):
            await store.deletion.request(uid, "alice", LATER)


@pytest.mark.asyncio
async def test_a_job_whose_tasks_the_engine_still_has_is_deleted_once_they_are_forgotten(store: Store) -> None:
    job, epoch = await finished(store, forgotten=False), await controlling(store)

    assert not await store.deletion.request(job.uid, "alice", LATER)
    assert not await store.deletion.request(job.uid, "bob", LATER)
    assert await store.deletion.pending(None, 10) == [Deletion(job.uid, LATER, gone=False)]
    assert await store.deletion.remove([job.uid], DeletionCause.RETENTION, LATER, epoch) == []
    stored = await store.jobs.get(job.uid)
    tasks = tuple(task.model_copy(update={"forgotten": True}) for task in stored.tasks)
    await store.jobs.save(stored.model_copy(update={"tasks": tasks}), seen=stored, epoch=epoch, events=[], at=LATER)

    assert await store.deletion.remove([job.uid], DeletionCause.RETENTION, LATER, epoch) == [job.uid]
    (told,), _ = await store.events.recent("0", Sight())
    assert (told.type, told.payload) == ("job.deleted", {"name": job.name, "by": "alice", "cause": "user"})


@pytest.mark.asyncio
async def test_followers_of_all_jobs_hear_of_it_and_miss_nothing_after_it(store: Store) -> None:
    """SQLite would give the positions of deleted events again: a follower behind them would not see the new ones."""
    job = await finished(store, 1)
    _, position = await store.events.recent(None, Sight("alice"))

    await store.deletion.request(job.uid, "alice", LATER)
    told, position = await store.events.recent(position, Sight("alice"))
    after = await finished(store, 2)
    news, _ = await store.events.recent(position, Sight("alice"))

    assert [(event.job, event.type) for event in told] == [(job.uid, "job.deleted")]
    assert [(event.job, event.type) for event in news] == [
        (after.uid, "job.submitted"),
        (after.uid, "job.succeeded"),
    ]
    assert (await store.events.recent("0", Sight("bob")))[0] == []


@pytest.mark.asyncio
async def test_a_mark_is_closed_once_and_swept_with_its_event_after_a_week(store: Store) -> None:
    job, epoch = await finished(store, 1), await controlling(store)
    await store.deletion.request(job.uid, "alice", LATER)
    assert await store.deletion.pending(None, 10) == [Deletion(job.uid, LATER, gone=True)]

    await store.deletion.close(job.uid, LATER, epoch)

    assert await store.deletion.pending(None, 10) == []
    await store.deletion.sweep(LATER + TOLD + timedelta(days=1), epoch)
    assert await rows_of(store, job.uid) == {"deletions": 1, "events": 1}, "the highest position stays"
    await finished(store, 2)
    await store.deletion.sweep(LATER + TOLD - timedelta(days=1), epoch)
    assert await rows_of(store, job.uid) == {"deletions": 1, "events": 1}
    await store.deletion.sweep(LATER + TOLD + timedelta(days=1), epoch)
    assert await rows_of(store, job.uid) == {}


@pytest.mark.asyncio
async def test_a_mark_of_a_job_whose_rows_are_there_cannot_be_closed(store: Store) -> None:
    job, epoch = await finished(store, forgotten=False), await controlling(store)
    await store.deletion.request(job.uid, "alice", LATER)

    await store.deletion.close(job.uid, LATER, epoch)

    assert len(await store.deletion.pending(None, 10)) == 1


@pytest.mark.asyncio
async def test_open_marks_are_read_page_by_page(store: Store) -> None:
    for number in range(5):
        job = await finished(store, number)
        await store.deletion.request(job.uid, "alice", LATER + timedelta(seconds=number // 2))

    found: list[Deletion] = []
    while page := await store.deletion.pending(found[-1] if found else None, 2):
        found += page

    assert sorted(each.job for each in found) == [make_uid(number) for number in range(5)]
    assert found == sorted(found, key=lambda each: (each.asked_at, each.job))


@pytest.mark.asyncio
async def test_finished_jobs_go_by_age_and_by_number_the_oldest_first(store: Store) -> None:
    now = T0 + timedelta(days=10)
    for number in range(4):
        await finished(store, number, completed_at=T0 + timedelta(days=number))
    await store.jobs.submit(make_job("waits", uid=make_uid(9)), b"", "", "", [])

    async def expired(limit: int = 10, **keep: object) -> list[JobUid]:
        return await store.deletion.expired(Retention(**keep), now, limit)  # type: ignore[arg-type]

    assert await expired() == []
    assert await expired(age=timedelta(days=8, hours=1)) == [make_uid(0), make_uid(1)]
    assert await expired(number=3) == [make_uid(0)]
    assert await expired(number=1) == [make_uid(0), make_uid(1), make_uid(2)]
    assert await expired(number=1, limit=2) == [make_uid(0), make_uid(1)]
    assert await expired(number=4) == []


@pytest.mark.asyncio
async def test_a_job_that_has_just_ended_is_not_deleted_to_make_room(store: Store) -> None:
    await finished(store, 1, completed_at=T0)
    await finished(store, 2, completed_at=T0)

    assert await store.deletion.expired(Retention(number=1), T0 + FRESH, 10) == []
    assert await store.deletion.expired(Retention(number=1), T0 + FRESH + timedelta(seconds=1), 10) == [make_uid(1)]


@pytest.mark.asyncio
async def test_jobs_go_when_the_database_is_larger_than_allowed(store: Store, database_url: str) -> None:
    await finished(store, 1, completed_at=T0)

    found = await store.deletion.expired(Retention(bytes=1), LATER, 10)
    small = await store.deletion.expired(Retention(bytes=2**30), LATER, 10)

    assert found == ([make_uid(1)] if database_url.startswith("sqlite") else [])
    assert small == []


@pytest.mark.asyncio
async def test_a_job_with_an_orphan_or_with_tasks_to_be_forgotten_is_never_removed(store: Store) -> None:
    epoch = await controlling(store)
    with_orphan, with_task = await finished(store, 1), await finished(store, 2, forgotten=False)
    orphan = Orphan(with_orphan.tasks[0].uid, "", "running", None, T0, "it is from another time")
    await store.recovery.put([orphan], (), epoch)

    assert await store.deletion.remove([with_orphan.uid, with_task.uid], DeletionCause.RETENTION, LATER, epoch) == []
    assert await store.deletion.expired(Retention(age=timedelta(hours=1)), LATER, 10) == []
    with pytest.raises(NotFinished, match="unknown to the database"):
        await store.deletion.request(with_orphan.uid, "alice", LATER)


@pytest.mark.asyncio
async def test_nothing_is_written_of_a_job_that_was_deleted_meanwhile(store: Store) -> None:
    """Whoever has looked it up before its deletion writes after it."""
    job, epoch = await finished(store, 1), await controlling(store)
    await store.deletion.request(job.uid, "alice", LATER)
    share = Share(job.uid, "bob", limits_of([]), T0, "alice")
    lost = LostJob(job, b"", "", "", {}, {})

    with pytest.raises(NoSuchJob):
        await store.grants.share(share, ACT)
    with pytest.raises(NoSuchJob):
        await store.task_keys.put(peer_key_slot(job.uid), "pem", "ssh-ed25519 AAAA")
    with pytest.raises(NoSuchJob):
        await store.events.note(job.uid, [NewEvent("ssh.login")], LATER)
    with pytest.raises(NoSuchJob):
        await store.jobs.tag(job.uid, "late")
    with pytest.raises(NoSuchJob):
        await store.jobs.request_stop(job.uid, "alice", LATER)
    with pytest.raises(CannotTakeBack, match="was deleted"):
        await store.recovery.take_back(lost, epoch, LATER)

    assert await rows_of(store, job.uid) == {"deletions": 1, "events": 1}
