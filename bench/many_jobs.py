"""A database with many jobs in it, as a team has after some years: written past the API, which would take an hour."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta

from sqlalchemy import Connection, create_engine, insert, make_url, text
from sqlalchemy.ext.asyncio import create_async_engine

from pai_backend.model.job import State
from pai_backend.store.rows import Values, changing_values, fixed_values, gpu_types_text, tags_text
from pai_backend.store.tables import jobs
from pai_backend.testing.builders import T0, make_job, make_uid

BUSIEST = "ada"
"""The user who has half of all jobs."""
RARE = "needle"
"""A word in the names of a few jobs."""
TAGS = {"vision": 0.5, "slow": 0.05, "paper": 0.001}
"""Tag -> share of the jobs that have it."""
GPU_TYPES = {"A100": 0.6, "V100": 0.3, "K80": 0.001}
"""GPU type -> share of the jobs that are of it."""
CLUSTERS = ("default", "research", "teaching")
_MODELS = ("resnet", "bert", "gpt", "mnist", "unet", "yolo", "llama", "whisper")
_STATES = (*[State.SUCCEEDED.value] * 14, *[State.FAILED.value] * 4, State.STOPPED.value, State.RUNNING.value)
_BATCH = 5000


async def fill(url: str, count: int) -> None:
    """Add ``count`` settled jobs, which no controller looks at, to a database that has its tables.

    PostgreSQL is then told to look at its tables, as its autovacuum does by itself within minutes.
    """
    if url.startswith("sqlite"):
        fill_sqlite(url, count)
        return
    engine = create_async_engine(make_url(url).set(drivername="postgresql+asyncpg"))
    async with engine.begin() as begun:
        await begun.run_sync(_insert, count)
    async with engine.connect() as plain:
        alone = await plain.execution_options(isolation_level="AUTOCOMMIT")
        await alone.execute(text("VACUUM (ANALYZE) jobs, job_groups"))
    await engine.dispose()


def fill_sqlite(url: str, count: int, *, first: int = 0) -> None:
    """Add ``count`` jobs to a database of SQLite that has ``first`` of them already."""
    with create_engine(url).begin() as conn:
        _insert(conn, count, first)


def _insert(conn: Connection, count: int, first: int = 0) -> None:
    chance = random.Random(1 + first)
    numbers = iter(range(first, first + count))
    while batch := [_row(number, chance) for number in _some(numbers, _BATCH)]:
        conn.execute(insert(jobs), batch)


def _some(numbers: Iterator[int], most: int) -> Iterator[int]:
    for _, number in zip(range(most), numbers, strict=False):
        yield number


_JOB = make_job()
_ROW: Values = {**fixed_values(_JOB), **changing_values(_JOB)}


def _row(number: int, chance: random.Random) -> Values:
    """The row of one job."""
    uid = make_uid(number)
    user = BUSIEST if number % 2 else f"user{chance.randrange(200)}"
    word = RARE if number % 10_000 == 0 else chance.choice(_MODELS)
    name, cluster = f"{word}_{chance.getrandbits(32):08x}", chance.choice(CLUSTERS)
    alias = f"{name.replace('_', '-')}-{number}"
    mine = [tag for tag, share in TAGS.items() if chance.random() < share]
    begun = T0 + timedelta(seconds=7 * number)
    varied = {
        "uid": uid,
        "name": name,
        "username": user,
        "alias": alias,
        "virtual_cluster": cluster,
        "search": f"{name}\n{alias}\n{user}\n{cluster}".lower(),
        "state": chance.choice(_STATES),
        "phase": "ended",
        "priority": chance.choice((None, None, "prod", "test", "oppo")),
        "tags": tags_text(mine),
        "gpu_types": gpu_types_text(each for each, share in GPU_TYPES.items() if chance.random() < share),
        "retries": chance.randrange(4),
        "task_count": chance.randrange(1, 17),
        "gpu_count": chance.randrange(0, 65),
        "exit_status": 0,
        "submitted_at": begun,
        "launched_at": begun + timedelta(seconds=chance.randrange(600)),
        "completed_at": begun + timedelta(seconds=600 + chance.randrange(86400)),
        "settled": True,
        # What a job of a few warnings keeps there.
        "rest": _ROW["rest"] + " " * 400,
    }
    return {**_ROW, **varied, "version": 5, "last_seq": 9, "dirty": False}
