"""Submitting: acknowledged once and for all, each caller with an outcome of its own."""

from __future__ import annotations

import asyncio

import pytest

from pai_backend.model.errors import DocumentError, InvalidParameters, NameTaken, NoSuchJob
from pai_backend.model.job import Job
from pai_backend.model.spec import DocumentWarning
from pai_backend.store.base import NewEvent
from pai_backend.store.sql import Store
from pai_backend.testing.builders import make_job, make_role, make_spec, make_uid
from tests.support.sealing import KEYS

SUBMITTED = NewEvent("job.submitted", {"by": "alice"})


async def submit(store: Store, job: Job, source: bytes = b"{}") -> Job:
    return await store.jobs.submit(job, source, "job.json", "application/json", [SUBMITTED])


@pytest.mark.asyncio
async def test_a_submitted_job_is_loaded_as_it_was_returned(store: Store) -> None:
    spec = make_spec(
        "train",
        roles=[make_role("ps", gpus=1), make_role("worker", instances=11)],
        env={"LIST": [1, 2.5, None, True], "TEXT": "训练 ☃ \0 \x1b", "BIG": 2**70},
    )
    warning = DocumentWarning(code="open-jupyter", message="listens beyond loopback")

    stored = await submit(store, make_job("train", spec=spec, warnings=[warning]))

    assert stored.version == 1
    assert await store.jobs.get(stored.uid) == stored
    assert [task.name for task in stored.tasks] == ["ps-0", *(f"worker-{index}" for index in range(11))]


@pytest.mark.asyncio
async def test_a_document_comes_back_byte_for_byte(store: Store) -> None:
    source = bytes(range(256)) + '\r\n{"名": 1}\r\n'.encode()

    await store.jobs.submit(make_job(), source, "训练 1.yaml", "text/yaml; charset=utf-8", [])

    assert await store.jobs.document(make_uid(1)) == (source, "训练 1.yaml", "text/yaml; charset=utf-8")


@pytest.mark.asyncio
async def test_the_document_of_no_job_is_an_error(store: Store) -> None:
    with pytest.raises(NoSuchJob):
        await store.jobs.document(make_uid(1))


@pytest.mark.asyncio
async def test_one_taken_name_among_many_concurrent_submits_fails_alone(store: Store) -> None:
    await submit(store, make_job("job-7", uid=make_uid(99)))
    jobs = [make_job(f"job-{number}", uid=make_uid(number)) for number in range(16)]

    outcomes = await asyncio.gather(*(submit(store, job) for job in jobs), return_exceptions=True)

    refused = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, NameTaken)]
    assert refused == [7]
    assert "--name OTHER" in outcomes[7].hint  # type: ignore[union-attr]
    for number, outcome in enumerate(outcomes):
        if number != 7:
            assert await store.jobs.get(make_uid(number)) == outcome


@pytest.mark.asyncio
async def test_of_two_concurrent_submits_with_one_name_exactly_one_wins(store: Store, other_store: Store) -> None:
    # Two of each store, so that both the same transaction and different ones are covered.
    submits = [
        submit(who, make_job("train", uid=make_uid(number)))
        for number, who in enumerate([store, store, other_store, other_store])
    ]

    outcomes = await asyncio.gather(*submits, return_exceptions=True)

    assert [type(outcome) for outcome in outcomes].count(Job) == 1
    assert [type(outcome) for outcome in outcomes].count(NameTaken) == 3
    assert len(await store.jobs.unfinished()) == 1


@pytest.mark.asyncio
async def test_two_users_may_have_jobs_of_one_name_and_get_different_aliases(store: Store) -> None:
    first, second = await asyncio.gather(
        submit(store, make_job("train", uid=make_uid(0x1234), user="alice")),
        submit(store, make_job("train", uid=make_uid(0x5678), user="bob")),
    )

    assert first.alias == "train"
    assert second.alias == f"train-{second.uid[1:5]}"
    assert await store.jobs.by_alias("train") == first
    assert await store.jobs.by_alias(second.alias) == second


@pytest.mark.asyncio
async def test_an_alias_suffix_that_is_taken_too_grows(store: Store) -> None:
    uid = make_uid(0x1234)
    await submit(store, make_job("train", uid=make_uid(1), user="alice"))
    await submit(store, make_job(f"train-{uid[1:5]}", uid=make_uid(2), user="alice"))

    third = await submit(store, make_job("train", uid=uid, user="bob"))

    assert third.alias == f"train-{uid[1:9]}"


@pytest.mark.asyncio
async def test_text_that_is_not_unicode_is_refused_before_it_reaches_others(store: Store) -> None:
    bad = make_job("bad", uid=make_uid(2), spec=make_spec("bad", roles=[make_role(command="echo \ud800")]))

    good, refusal = await asyncio.gather(submit(store, make_job()), submit(store, bad), return_exceptions=True)

    assert isinstance(refusal, DocumentError)
    assert await store.jobs.get(make_uid(1)) == good


@pytest.mark.asyncio
@pytest.mark.parametrize("filename", ["a\0b.json", "\udcff.json"])
async def test_a_file_name_that_cannot_be_stored_is_refused(store: Store, filename: str) -> None:
    with pytest.raises(InvalidParameters, match="file name"):
        await store.jobs.submit(make_job(), b"", filename, "application/json", [])


@pytest.mark.asyncio
async def test_a_caller_that_goes_away_leaves_a_whole_job_or_none(store: Store) -> None:
    leaving = asyncio.create_task(submit(store, make_job("leaving", uid=make_uid(1))))
    staying = asyncio.create_task(submit(store, make_job("staying", uid=make_uid(2))))
    await asyncio.sleep(0)  # both are in the queue now
    leaving.cancel()

    assert (await staying).name == "staying"
    found = {job.name for job in await store.jobs.unfinished()}
    assert found in ({"staying"}, {"staying", "leaving"})
    if "leaving" in found:
        assert [event.type for event in await store.events.of_job(make_uid(1))] == ["job.submitted"]


@pytest.mark.asyncio
async def test_a_closed_store_has_finished_what_it_was_given(database_url: str) -> None:
    first = Store(database_url, KEYS)
    await first.open()
    submits = [
        asyncio.create_task(submit(first, make_job(f"job-{number}", uid=make_uid(number)))) for number in range(100)
    ]
    await asyncio.sleep(0)
    await first.aclose()

    names = {job.name for job in await asyncio.gather(*submits)}

    second = Store(database_url, KEYS)
    await second.open()
    try:
        assert {job.name for job in await second.jobs.unfinished()} == names
    finally:
        await second.aclose()
