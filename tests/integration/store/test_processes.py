"""Several processes on one database: opening, waking, and a kill at any instant."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pai_backend.store import migrate
from pai_backend.store.base import NewEvent, Sight
from pai_backend.store.postgres import WRITE_LOCK, PostgresBacking
from pai_backend.store.sql import Store
from pai_backend.testing.builders import T0, make_job, make_uid
from tests.support.postgres import PostgresServer
from tests.support.stores import opened

CHILD = Path(__file__).parents[2] / "support" / "store_process.py"
ANSWER_S = 100.0
LOOKS = 100


@asynccontextmanager
async def child(command: str, url: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A second process; killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(CHILD), command, url, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def tell(process: asyncio.subprocess.Process, text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{text}\n".encode())
    await process.stdin.drain()


async def hear(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(ANSWER_S):
        return (await process.stdout.readline()).decode().strip()


@pytest.mark.asyncio
async def test_two_processes_may_open_a_new_database_at_once(database_url: str) -> None:
    async with child("open", database_url) as one, child("open", database_url) as two:
        processes = (one, two)
        for process in processes:
            await tell(process, "go")

        assert [await hear(process) for process in processes] == ["open", "open"]
        assert [await process.wait() for process in processes] == [0, 0]
    async with opened(database_url) as store:
        assert await store._database.read(migrate.revision) == migrate.HEAD


@pytest.mark.asyncio
async def test_what_was_acknowledged_is_there_after_a_kill(database_url: str) -> None:
    acknowledged: set[str] = set()
    async with child("submit", database_url) as process:
        assert process.stdout is not None
        while len(acknowledged) < 100:
            acknowledged.add(await hear(process))
        process.send_signal(signal.SIGKILL)
        rest = (await process.stdout.read()).decode().splitlines(keepends=True)
        acknowledged |= {line.strip() for line in rest if line.endswith("\n")}
        assert await process.wait() == -signal.SIGKILL

    async with opened(database_url) as store:
        jobs = {job.name: job for job in await store.jobs.unfinished()}
        assert acknowledged <= set(jobs)
        for name, job in jobs.items():
            assert await store.jobs.document(job.uid) == (
                f"document of {name}".encode(),
                f"{name}.json",
                "application/json",
            ), "each job is whole, the unacknowledged ones too"
            assert [event.seq for event in await store.events.of_job(job.uid)] == [1]
        assert await store.jobs.submit(make_job("after", uid=make_uid(0)), b"", "", "", [])


@pytest.mark.asyncio
async def test_a_commit_of_another_process_wakes_who_waits(store: Store, database_url: str) -> None:
    async with child("once", database_url) as process:
        assert await hear(process) == "ready"
        mark = await settled_mark(store)

        waiting = asyncio.create_task(store.changes.wait(mark, ANSWER_S))
        await tell(process, "from-outside")
        async with asyncio.timeout(ANSWER_S / 2):  # woken, not timed out
            assert await waiting != mark
        assert [job.name for job in await store.jobs.dirty()] == ["from-outside"]


@pytest.mark.asyncio
async def test_a_commit_of_another_process_between_two_waits_is_not_missed(store: Store, database_url: str) -> None:
    mark = await settled_mark(store)
    async with child("once", database_url) as process:
        assert await hear(process) == "ready"
        await tell(process, "between")
        assert await hear(process) == "between"

    assert await store.changes.wait(mark, ANSWER_S) != mark


@pytest.mark.asyncio
async def test_a_commit_of_this_process_wakes_at_once(store: Store) -> None:
    mark = await settled_mark(store)
    waiting = [asyncio.create_task(store.changes.wait(mark, ANSWER_S)) for _ in range(3)]
    await asyncio.sleep(0)

    await store.jobs.submit(make_job(), b"", "", "", [NewEvent("job.submitted")])

    async with asyncio.timeout(60):
        marks = set(await asyncio.gather(*waiting))
    assert len(marks) == 1
    assert mark not in marks


@pytest.mark.asyncio
async def test_a_look_at_the_mark_finds_every_commit_of_others_and_none_else(store: Store, database_url: str) -> None:
    """Also those that leave no event; a snapshot for a request must have all that was committed before it."""
    async with opened(database_url) as other:
        mark = await settled_mark(store)
        for number in range(LOOKS):
            await other.jobs.submit(make_job(f"job{number}", uid=make_uid(number)), b"", "", "", [])
            seen, mark = mark, await store.changes.look()
            assert mark > seen, f"commit {number}"
            assert await store.changes.look() == mark
        await store.jobs.submit(make_job("own", uid=make_uid(LOOKS)), b"", "", "", [])
        assert await store.changes.look() > mark


@pytest.mark.asyncio
async def test_looks_at_the_same_time_all_find_a_commit(store: Store, database_url: str) -> None:
    async with opened(database_url) as other:
        mark = await settled_mark(store)
        await other.jobs.submit(make_job(), b"", "", "", [])
        assert all(seen > mark for seen in await asyncio.gather(*(store.changes.look() for _ in range(8))))


@pytest.mark.asyncio
async def test_a_lease_that_is_renewed_wakes_nobody(store: Store) -> None:
    await store.leadership.acquire("one", 10.0, T0)
    mark = await settled_mark(store)

    await store.leadership.renew(1, 10.0, T0)

    assert await store.changes.wait(mark, 0.3) == mark


@pytest.mark.asyncio
async def test_a_closed_store_sends_home_who_waits(database_url: str) -> None:
    async with opened(database_url) as store:
        mark = await settled_mark(store)
        waiting = asyncio.create_task(store.changes.wait(mark, ANSWER_S))
        await asyncio.sleep(0)
    async with asyncio.timeout(60):
        assert await waiting != mark


async def settled_mark(store: Store) -> int:
    """The mark once a look finds no change: PostgreSQL's first look counts as one."""
    mark = await store.changes.look()
    while (new := await store.changes.look()) != mark:
        mark = new
    return mark


# ---- PostgreSQL only ---------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_the_listener_comes_back_after_its_connection_is_cut(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pai_backend.store.postgres.LOOK_S", 2 * ANSWER_S)  # only a notification wakes sooner
    url = postgres_server.new_database()
    database = url.rsplit("/", 1)[1]
    async with opened(url) as store, opened(url) as other:
        mark = await settled_mark(store)
        waiting = asyncio.create_task(store.changes.wait(mark, ANSWER_S))

        cut = await asyncio.to_thread(
            postgres_server.sql,
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            f"WHERE datname = '{database}' AND pid <> pg_backend_pid()",
        )
        assert int(cut) >= 2
        assert await waiting != mark, "a lost listener wakes: something may have been missed"

        mark = await settled_mark(store)
        waiting = asyncio.create_task(store.changes.wait(mark, ANSWER_S))
        await other.jobs.submit(make_job(), b"", "", "", [])
        async with asyncio.timeout(ANSWER_S / 2):
            assert await waiting != mark
        assert (await store.jobs.find("alice~job")).name == "job"


@pytest.mark.asyncio
async def test_a_look_waits_for_a_notification_that_is_late(postgres_server: PostgresServer) -> None:
    """The server's process that tells this store of commits stands still while one is made and looked for."""
    url = postgres_server.new_database()
    async with opened(url) as store, opened(url) as other:
        mark = await settled_mark(store)
        listener = await listening_process(store)
        os.kill(listener, signal.SIGSTOP)
        try:
            await other.jobs.submit(make_job(), b"", "", "", [])
            look = asyncio.create_task(store.changes.look())
            for _ in range(5):  # enough for a look that asked another connection only
                await store.jobs.counts()
        finally:
            os.kill(listener, signal.SIGCONT)
        assert await look > mark


async def listening_process(store: Store) -> int:
    """The server's process that sends notifications to the store."""
    backing = store._database.backing
    assert isinstance(backing, PostgresBacking)
    assert backing._listener is not None
    driver = (await backing._listener.get_raw_connection()).driver_connection
    pid: int = driver.get_server_pid()  # type: ignore[union-attr]
    return pid


@pytest.mark.asyncio
async def test_events_of_interleaved_transactions_are_never_passed_over(postgres_server: PostgresServer) -> None:
    """A transaction draws position n and stays open; another wants n+1: no reader may see n+1 before n."""
    url = postgres_server.new_database()
    database = url.rsplit("/", 1)[1]
    async with opened(url) as store:
        job = await store.jobs.submit(make_job("first", uid=make_uid(1)), b"", "", "", [])
        _, start = await store.events.recent(None, Sight())
        insert = (
            f"BEGIN; SELECT pg_advisory_xact_lock({WRITE_LOCK}); "
            "INSERT INTO events (job, username, seq, at, type, payload) "
            f"VALUES ('{job.uid}', 'alice', 1, 0, 'slow', '{{}}');\n"
        )
        psql = await open_psql(postgres_server, database)
        try:
            assert psql.stdin is not None
            psql.stdin.write((insert + "\\echo inserted\n").encode())
            await psql.stdin.drain()
            while await hear(psql) != "inserted":
                continue
            quick = asyncio.create_task(
                store.jobs.submit(make_job("second", uid=make_uid(2)), b"", "", "", [NewEvent("quick")])
            )
            await until_a_writer_waits(postgres_server)

            assert await store.events.recent(start, Sight()) == ([], start)
            assert not quick.done()
            psql.stdin.write(b"COMMIT;\n\\echo committed\n")
            await psql.stdin.drain()
            await quick
            events, _ = await store.events.recent(start, Sight())
        finally:
            psql.kill()
            await psql.wait()
    assert [event.type for event in events] == ["slow", "quick"]


async def open_psql(server: PostgresServer, database: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *server.psql(database), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )


async def until_a_writer_waits(server: PostgresServer) -> None:
    async with asyncio.timeout(ANSWER_S):
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while await asyncio.to_thread(server.sql, waiting) != "1":
            continue
