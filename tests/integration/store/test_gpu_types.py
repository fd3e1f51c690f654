"""Jobs by the type of their GPUs: what they ask for, what they hold, and what an earlier version knew of them."""

from __future__ import annotations

import random

import pytest
from sqlalchemy import Connection, insert, inspect

from pai_backend.lifecycle.restart import restarted
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job, Phase, State
from pai_backend.store import migrate
from pai_backend.store.base import JobFilter
from pai_backend.store.cipher import Cipher
from pai_backend.store.save import prepare
from pai_backend.store.sql import Store
from pai_backend.store.tables import documents, jobs, tasks
from pai_backend.testing.builders import T0, make_job, make_placement, make_role, make_spec, make_tasks, make_uid
from tests.integration.store.test_opening import empty
from tests.integration.store.test_save import new_epoch, save
from tests.support.sealing import KEYS
from tests.support.stores import opened

pytestmark = pytest.mark.asyncio

UNCOMPRESSED = "".join(random.Random(5).choices([chr(number) for number in range(0x4E00, 0x9FA5)], k=255))


def on(job: Job, *gpu_types: str) -> Job:
    """The job as it runs, a task on a GPU of each type; on no GPU where the type is empty."""
    placed = tuple(
        task.model_copy(
            update={
                "state": State.RUNNING,
                "phase": Phase.RUNNING,
                "placement": make_placement(gpus=[0] if gpu_type else [], gpu_type=gpu_type or "V100"),
            }
        )
        for task, gpu_type in zip(job.tasks, gpu_types, strict=True)
    )
    return job.model_copy(update={"state": State.RUNNING, "phase": Phase.RUNNING, "tasks": placed})


def asking(number: int, *sku_types: str | None, gpu_type: str | None = None, gpus: int = 1) -> Job:
    """A job with a role for each type, or for none."""
    roles = [make_role(f"r{at}", gpus=gpus, sku_type=each) for at, each in enumerate(sku_types)]
    name = f"job-{number}"
    return make_job(name, uid=make_uid(number), spec=make_spec(name, roles=roles, gpu_type=gpu_type))


async def of_type(store: Store, *gpu_types: str) -> set[JobUid]:
    rows, total = await store.jobs.page(JobFilter(gpu_types=gpu_types))
    assert total == len(rows)
    return {row.uid for row in rows}


async def types_of(store: Store, uid: JobUid) -> tuple[str, ...]:
    rows, _ = await store.jobs.page(JobFilter())
    return next(row.gpu_types for row in rows if row.uid == uid)


async def test_a_job_that_waits_is_of_the_types_that_its_roles_ask_for(store: Store) -> None:
    for job in (
        asking(1, "A100", "V100"),
        asking(2, None, "A100", gpu_type="K80"),
        asking(3, None),
        asking(4, "A100", gpus=0),
    ):
        await store.jobs.submit(job, b"", "", "", [])

    assert await of_type(store, "A100") == {make_uid(1), make_uid(2)}
    assert await of_type(store, "K80", "V100") == {make_uid(1), make_uid(2)}
    assert await of_type(store, "A1", "a100", "100") == set(), "a type is found whole, and its case counts"
    assert await types_of(store, make_uid(2)) == ("A100", "K80")
    assert await types_of(store, make_uid(4)) == (), "a role without GPUs is of no type"


async def test_a_job_that_took_what_was_free_is_of_the_types_it_got_until_its_next_attempt(store: Store) -> None:
    job, epoch = await store.jobs.submit(asking(1, None, None, "A100"), b"", "", "", []), await new_epoch(store)
    assert await of_type(store, "K80") == set()

    runs = await save(store, on(job, "K80", "", "A100"), job, epoch)
    assert await of_type(store, "K80") == {job.uid}, "what was found before is out of date"
    assert await types_of(store, job.uid) == ("A100", "K80"), "one task holds no GPU"

    ended = tuple(task.model_copy(update={"state": State.FAILED, "phase": Phase.ENDED}) for task in runs.tasks)
    over = await save(store, runs.model_copy(update={"state": State.FAILED, "tasks": ended}), runs, epoch)
    assert await of_type(store, "K80") == {job.uid}, "it held one"

    again = restarted(over, T0).model_copy(update={"attempt": 1, "tasks": make_tasks(job.uid, job.spec, 1)})
    await save(store, again, over, epoch)
    assert await of_type(store, "K80") == set()
    assert await of_type(store, "A100") == {job.uid}


async def test_types_with_endless_names_do_not_burst_the_index(store: Store) -> None:
    """An index of PostgreSQL has room for 2,704 bytes a row, and a name for 255 characters."""
    stored = await store.jobs.submit(asking(1, UNCOMPRESSED, "A100"), b"", "", "", [])

    assert await types_of(store, stored.uid) == ("A100",)


async def test_jobs_of_an_earlier_version_are_of_the_types_that_their_latest_tasks_hold(database_url: str) -> None:
    held = on(asking(1, None, None), "V100", "Ü")
    first = asking(2, "A100")
    retried = (
        on(first, "K80").tasks
        + on(first.model_copy(update={"tasks": make_tasks(first.uid, first.spec, 1)}), "V100").tasks
    )
    waiting = asking(3, "A100")
    without = on(asking(4, None), "")
    cipher = Cipher(KEYS.read())

    def before(conn: Connection) -> None:
        migrate.upgrade(conn, None, to="0025")
        columns = {column["name"] for column in inspect(conn).get_columns("jobs")}
        assert "gpu_types" not in columns
        for job in (held, first.model_copy(update={"tasks": retried}), waiting, without):
            rows = prepare(job, b"", "", "", [], {}, cipher)
            known = {name: each for name, each in rows.values.items() if name in columns}
            conn.execute(insert(jobs).values({**known, "alias": job.alias}))
            conn.execute(insert(documents).values(rows.document))
            conn.execute(insert(tasks), rows.tasks)

    database = empty(database_url)
    await database.open()
    try:
        await database.write(before, announce=False)
    finally:
        await database.aclose()

    async with opened(database_url) as store:
        rows, _ = await store.jobs.page(JobFilter())
        assert {row.uid: row.gpu_types for row in rows} == {
            held.uid: ("V100", "Ü"),
            first.uid: ("V100",),
            waiting.uid: (),
            without.uid: (),
        }
        assert await of_type(store, "V100") == {held.uid, first.uid}
        assert await of_type(store, "Ü") == {held.uid}
