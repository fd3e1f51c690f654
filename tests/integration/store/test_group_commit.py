"""Writes that come together share a transaction, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, event, text

from pai_backend.model.errors import NameTaken, Unavailable
from pai_backend.model.job import Job
from pai_backend.store.sql import Store
from pai_backend.store.writer import LIMIT
from pai_backend.testing.builders import T0, make_job, make_uid


@contextmanager
def counted(store: Store, what: str) -> Iterator[list[str]]:
    """Notes each ``commit`` or ``rollback`` of the writing engine."""
    seen: list[str] = []

    def note(_conn: Connection) -> None:
        seen.append(what)

    engine = store._database.backing.writing_engine()
    event.listen(engine, what, note)
    try:
        yield seen
    finally:
        event.remove(engine, what, note)


@pytest.mark.asyncio
async def test_submits_that_come_together_share_a_transaction(store: Store) -> None:
    jobs = [make_job(f"job-{number}", uid=make_uid(number)) for number in range(2 * LIMIT)]

    with counted(store, "commit") as commits:
        await asyncio.gather(*(store.jobs.submit(job, b"", "", "", []) for job in jobs))

    assert len(commits) == 2
    assert len(await store.jobs.unfinished()) == 2 * LIMIT


@pytest.mark.asyncio
async def test_different_writes_share_a_transaction_in_their_order(store: Store) -> None:
    job = make_job()

    with counted(store, "commit") as commits:
        outcomes = await asyncio.gather(
            store.jobs.submit(job, b"", "", "", []),
            store.jobs.request_stop(job.uid, "alice", T0),
            store.leadership.acquire("one", 10.0, T0),
            store.jobs.submit(make_job("other", uid=make_uid(2)), b"", "", "", []),
        )

    assert len(commits) == 1
    assert outcomes[1] == await store.jobs.get(job.uid)


@pytest.mark.asyncio
async def test_a_refusal_costs_the_others_of_its_group_nothing(store: Store) -> None:
    jobs = [
        make_job("train", uid=make_uid(0x10), user="alice"),
        make_job("train", uid=make_uid(0x20), user="alice"),  # refused: her name
        make_job("train", uid=make_uid(0x30), user="bob"),  # another alias
    ]

    with counted(store, "commit") as commits, counted(store, "rollback") as rollbacks:
        outcomes = await asyncio.gather(
            *(store.jobs.submit(job, b"", "", "", []) for job in jobs), return_exceptions=True
        )

    assert [type(outcome) for outcome in outcomes] == [Job, NameTaken, Job]
    assert (len(commits), len(rollbacks)) == (1, 0)


def _insert_nothing(_conn: Connection, requests: Sequence[str]) -> list[str | Exception]:
    return list(requests)


def _fail(conn: Connection) -> str:
    conn.execute(text("INSERT INTO secrets VALUES ('half', '', '')"))
    raise ArithmeticError("a defect")


@pytest.mark.asyncio
async def test_a_defect_in_one_write_undoes_it_alone(store: Store) -> None:
    with counted(store, "rollback") as rollbacks:
        before, defect, after = await asyncio.gather(
            store.jobs.submit(make_job("before", uid=make_uid(1)), b"", "", "", []),
            store._writer.run(_fail),
            store.jobs.submit(make_job("after", uid=make_uid(2)), b"", "", "", []),
            return_exceptions=True,
        )

    assert isinstance(defect, ArithmeticError)
    assert [await store.jobs.get(make_uid(1)), await store.jobs.get(make_uid(2))] == [before, after]
    assert await store.secrets.get("half", "nothing of it is there") == "nothing of it is there"
    assert len(rollbacks) == 2, "the shared transaction, then the culprit's own"


@pytest.mark.asyncio
async def test_a_database_that_is_away_fails_all_at_once_without_trying_each(store: Store) -> None:
    attempts: list[int] = []

    def away(_conn: Connection, requests: Sequence[int]) -> list[int | Exception]:
        attempts.append(len(requests))
        raise Unavailable("away")

    outcomes = await asyncio.gather(*(store._writer.put(away, number) for number in range(5)), return_exceptions=True)

    assert attempts == [5]
    assert [type(outcome) for outcome in outcomes] == [Unavailable] * 5
    assert await store._writer.put(_insert_nothing, "next") == "next"
