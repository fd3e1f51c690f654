"""The audit of the store, on both databases: one chain over all processes, in the transactions of what it tells."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, text

from jupyter_pai.audit import BEGINNING, Broken, ChainCheck
from pai_backend.model.audit import AuditEvent, ChainLink, chained, hash_of
from pai_backend.model.errors import Bug, NoSuchJob
from pai_backend.model.job import Job
from pai_backend.store import migrate
from pai_backend.store.auditing import AuditFilter
from pai_backend.store.base import NewEvent
from pai_backend.store.cipher import key_id, new_key
from pai_backend.store.deeds import Deed, doing
from pai_backend.store.grants import Act
from pai_backend.store.keyring import GivenKeys, KeyFile, KeySource
from pai_backend.store.people_tables import groups as table
from pai_backend.store.sql import Store
from pai_backend.testing.builders import make_job, make_uid
from tests.integration.store.test_opening import empty
from tests.support.sealing import KEYS
from tests.support.stores import opened
from tests.unit.model.test_audit import wired

pytestmark = pytest.mark.asyncio

T0 = datetime(2026, 11, 28, tzinfo=UTC)


def event(number: int = 0, type_: str = "test.done", at: datetime = T0) -> AuditEvent:
    return AuditEvent(type_, at, "ann", "ann", subject=str(number))


def deed() -> Deed:
    return Deed("job.submitted", T0, by="ann", source="10.0.0.1", token="0123", request="r1")


async def submit(store: Store, name: str, user: str = "ann", number: int = 1) -> Job:
    job = make_job(name, user=user, uid=make_uid(number))
    return await store.jobs.submit(job, b"{}", "job.json", "application/json", [NewEvent("job.submitted")])


@asynccontextmanager
async def opened_with(url: str, keys: KeySource) -> AsyncIterator[Store]:
    store = Store(url, keys)
    await store.open()
    try:
        yield store
    finally:
        await store.aclose()


async def verified(store: Store) -> list[AuditEvent]:
    """All events, after the chain was checked as a client checks it."""
    root, head, sealed = await store.audit.ends()
    found = await store.audit.page(AuditFilter(after=root.position, limit=100_000))
    check = ChainCheck({"position": root.position, "hash": root.hash}, [{"position": head.position, "hash": head.hash}])
    for each in wired(found):
        check.add(each)
    check.end()
    assert sealed == (head if head.position else None)
    return found


async def test_an_event_is_written_with_the_first_change_of_its_request(store: Store) -> None:
    doing_it = deed()
    with doing(doing_it):
        job = await submit(store, "one")
        await store.jobs.request_stop(job.uid, "ann", T0)
    (told,) = await verified(store)
    assert (told.type, told.user, told.by, told.subject, told.job) == (
        "job.submitted",
        job.user,
        "ann",
        job.id,
        job.uid,
    )
    assert (told.source, told.token, told.request, told.result) == ("10.0.0.1", "0123", "r1", "done")
    assert doing_it.written


async def test_what_is_refused_or_undone_leaves_nothing(store: Store) -> None:
    with doing(refused := deed()), pytest.raises(NoSuchJob):
        await store.jobs.request_stop(make_uid(999), "ann", T0)

    def half(conn: Connection) -> None:
        conn.execute(insert(table), {"name": "lab", "description": "", "external_name": ""})
        raise Bug("it breaks here")

    with doing(undone := deed()), pytest.raises(Bug):
        await store._writer.run(half)
    assert (await store.groups.directory()).groups == {}
    assert await verified(store) == []
    assert (refused.written, undone.written) == (False, False)


async def test_neighbours_in_one_transaction_are_told_apart(store: Store) -> None:
    async def one(number: int) -> None:
        with doing(Deed("test.done", T0, by=f"user{number}", subject=str(number))):
            if number % 3 == 2:
                with pytest.raises(NoSuchJob):
                    await store.jobs.request_stop(make_uid(999), "ann", T0)
            elif number % 3 == 1:
                await store.grants.lock_out(f"user{number}", Act("root", T0))
            else:
                await submit(store, f"job-{number}", f"user{number}", number + 1)

    await asyncio.gather(*map(one, range(30)))
    told = await verified(store)
    submitted = [each for each in told if each.job is not None]
    assert {each.by for each in submitted} == {f"user{number}" for number in range(0, 30, 3)}
    assert all(each.user == each.by for each in submitted)
    assert {each.user for each in told if each.type == "user.locked-out"} == {f"user{n}" for n in range(1, 30, 3)}


async def test_processes_continue_one_chain(store: Store, other_store: Store) -> None:
    await asyncio.gather(*(one.audit.add(event(number)) for number in range(40) for one in (store, other_store)))
    assert len(await verified(store)) == 80


async def test_old_events_are_forgotten_and_the_rest_stays_a_chain(store: Store) -> None:
    await store.audit.add(event(1, "user.removed", T0))
    for number in range(2, 6):
        await store.audit.add(event(number, at=T0 + timedelta(days=number)))
    cut = partial(store.audit.cut, T0 + timedelta(days=4), Act("jupyter-pai", T0 + timedelta(days=9)))
    assert await cut(sent_to=["hook"]) == 0, "nothing was sent to it yet"
    assert await cut() == 3
    kept = await verified(store)
    assert [each.subject for each in kept] == ["4", "5", "3"]
    assert (kept[-1].type, kept[-1].detail) == ("audit.cut", "3 events")
    everything = await store.audit.page(AuditFilter())
    assert [each.type for each in everything] == ["audit.cut", "test.done", "test.done", "user.removed"]
    assert await cut() == 0
    await store.audit.add(event(6))
    assert len(await verified(store)) == 4


async def test_what_is_changed_past_the_backend_is_found(store: Store) -> None:
    for number in range(5):
        await store.audit.add(event(number))
    _, true_head, _ = await store.audit.ends()

    def forge(conn: Connection) -> None:
        """All is made anew, as someone does who writes into the database and has no key."""
        events = [event(number) for number in range(4)]
        conn.execute(text("DELETE FROM audit_events WHERE position = 5"))
        for each in chained(events, ChainLink()):
            conn.execute(
                text("UPDATE audit_events SET hash = :hash WHERE position = :position"),
                {"hash": each.hash, "position": each.position},
            )
            last = each
        conn.execute(
            text("UPDATE audit_chain SET position = :position, hash = :hash WHERE name = 'head'"),
            {"position": last.position, "hash": last.hash},
        )

    await store._database.write(forge, announce=False)
    _, _, sealed = await store.audit.ends()
    assert sealed is not None
    assert sealed == true_head, "the seal stays, and says that there were five"
    check = ChainCheck(BEGINNING, [{"position": sealed.position, "hash": sealed.hash}])
    for each in wired(await store.audit.page(AuditFilter(after=0))):
        check.add(each)
    with pytest.raises(Broken, match="Event 5 must be there"):
        check.end()


async def test_the_seal_is_made_anew_when_keys_are_rotated(database_url: str) -> None:
    old = KEYS.read()
    async with opened(database_url) as store:
        await store.audit.add(event())
    async with opened_with(database_url, GivenKeys((new_key(), *old))) as rotated:
        assert await rotated.reseal(lambda _: None) == []
        await verified(rotated)
        assert len(await rotated.sealed_with()) == 1
        await rotated.audit.add(event())
        await verified(rotated)


async def test_a_process_that_runs_since_before_a_rotation_seals_with_the_new_key(
    database_url: str, tmp_path: Path
) -> None:
    file = KeyFile(tmp_path / "secret.key")
    async with opened_with(database_url, file) as running, opened_with(database_url, file) as rotating:
        await running.audit.add(event(1))
        newest = key_id((await asyncio.to_thread(file.add))[0])
        assert await rotating.reseal(lambda _: None) == []
        await running.audit.add(event(2))
        assert await rotating.sealed_with() == {newest}
        await verified(running)


@pytest.mark.parametrize(
    ("which", "found"),
    [
        (AuditFilter(types=("job.*",)), ["4", "3"]),
        (AuditFilter(types=("job.deleted", "key.*")), ["4", "1"]),
        (AuditFilter(types=("job_.*",)), []),
        (AuditFilter(seen_by="bob"), ["4", "2"]),
        (AuditFilter(by="ann", user="bob"), ["2"]),
        (AuditFilter(result="ForbiddenUserError"), ["3"]),
        (AuditFilter(since=T0 + timedelta(days=2), until=T0 + timedelta(days=4)), ["3", "2"]),
        (AuditFilter(before=3, limit=1), ["2"]),
        (AuditFilter(after=1, limit=2), ["2", "3"]),
    ],
)
async def test_filters_find_what_they_say(store: Store, which: AuditFilter, found: list[str]) -> None:
    for number, (type_, user, by, result) in enumerate(
        [
            ("key.removed", "ann", "ann", "done"),
            ("share.given", "bob", "ann", "done"),
            ("job.tagged", "ann", "ann", "ForbiddenUserError"),
            ("job.deleted", "ann", "bob", "done"),
        ],
        1,
    ):
        at = T0 + timedelta(days=number)
        await store.audit.add(AuditEvent(type_, at, user, by, subject=str(number), result=result))
    assert [each.subject for each in await store.audit.page(which)] == found


async def test_the_audit_of_keys_becomes_the_beginning_of_the_chain(database_url: str) -> None:
    database = empty(database_url)
    await database.open()
    rows = [
        {"at": 1_700_000_000_000_000 + n, "type": "key.registered", "username": "ann", "by_user": "ann",
         "source": "", "subject": f"SHA256:é{n}", "job": None, "detail": ""} for n in range(1500)
    ]  # fmt: skip

    def old(conn: Connection) -> None:
        migrate.upgrade(conn, None, to="0019")
        names = ", ".join(rows[0])
        conn.execute(
            text(f"INSERT INTO key_events ({names}) VALUES ({', '.join(f':{name}' for name in rows[0])})"), rows
        )

    try:
        await database.write(old, announce=False)
    finally:
        await database.aclose()
    async with opened(database_url) as store:
        _, head, sealed = await store.audit.ends()
        assert (head.position, sealed) == (1500, None)
        found = await store.audit.page(AuditFilter(after=0, limit=2000))
        before = "0" * 64
        for each in found:
            assert hash_of(each, before) == each.hash
            before = each.hash
        await store.audit.add(event())
        assert len(await verified(store)) == 1501
