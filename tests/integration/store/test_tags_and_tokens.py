"""Tags, and the digests of access tokens."""

from __future__ import annotations

import dataclasses
import random
import string
from datetime import timedelta

import pytest

from pai_backend.model.errors import Forbidden, InvalidParameters, NoSuchJob, NoSuchTag, NoSuchToken
from pai_backend.model.job import Job, State
from pai_backend.store import tagging, tokens
from pai_backend.store.base import AccessToken, JobFilter, UserKey
from pai_backend.store.grants import Act
from pai_backend.store.sql import Store
from pai_backend.testing.builders import T0, make_job, make_uid


async def submitted(store: Store, number: int) -> Job:
    return await store.jobs.submit(make_job(f"job{number}", uid=make_uid(number)), b"", "", "", [])


async def names(store: Store, which: JobFilter) -> set[str]:
    return {row.name for row in (await store.jobs.page(which))[0]}


@pytest.mark.asyncio
async def test_jobs_are_found_by_any_of_the_tags_asked_for_and_none_of_those_excluded(store: Store) -> None:
    jobs = [await submitted(store, number) for number in range(3)]
    await store.jobs.tag(jobs[0].uid, "slow")
    await store.jobs.tag(jobs[0].uid, "vision")
    await store.jobs.tag(jobs[1].uid, "vision")

    assert await names(store, JobFilter(with_tags=("vision",))) == {"job0", "job1"}
    assert await names(store, JobFilter(with_tags=("slow", "vision"))) == {"job0", "job1"}
    assert await names(store, JobFilter(without_tags=("slow", "other"))) == {"job1", "job2"}
    assert await names(store, JobFilter(with_tags=("vision",), without_tags=("slow",))) == {"job1"}


@pytest.mark.asyncio
async def test_a_tag_is_given_once_shown_in_order_and_taken_away(store: Store) -> None:
    job = await submitted(store, 1)
    for tag in ("b", "a", "b"):
        await store.jobs.tag(job.uid, tag)

    assert (await store.jobs.get(job.uid)).tags == ("a", "b")
    await store.jobs.untag(job.uid, "b")
    assert (await store.jobs.get(job.uid)).tags == ("a",)
    with pytest.raises(NoSuchTag):
        await store.jobs.untag(job.uid, "b")
    assert (await store.jobs.page(JobFilter()))[0][0].tags == ("a",)


@pytest.mark.asyncio
async def test_a_tag_disturbs_no_controller_and_outlives_its_save(store: Store) -> None:
    job = await submitted(store, 1)
    lease = await store.leadership.acquire("one", 10, T0)
    assert lease is not None
    await store.jobs.tag(job.uid, "mine")
    running = job.model_copy(update={"state": State.RUNNING})

    await store.jobs.save(running, seen=job, epoch=lease.epoch, events=[], at=T0)

    assert (await store.jobs.get(job.uid)).tags == ("mine",)


@pytest.mark.asyncio
async def test_a_job_has_a_bounded_number_of_tags(store: Store) -> None:
    job = await submitted(store, 1)
    for number in range(tagging.MOST):
        await store.jobs.tag(job.uid, f"t{number}")

    with pytest.raises(InvalidParameters):
        await store.jobs.tag(job.uid, "one too many")
    await store.jobs.tag(job.uid, "t0")
    with pytest.raises(NoSuchJob):
        await store.jobs.tag(make_uid(99), "t0")


def token(number: int, user: str = "alice", *, life_s: int | None = None) -> AccessToken:
    end = T0 + timedelta(seconds=life_s) if life_s is not None else None
    return AccessToken(f"{number:064x}", user, life_s is None, T0, end)


@pytest.mark.asyncio
async def test_a_token_is_known_until_its_time_is_over_and_then_forgotten(store: Store) -> None:
    short, lasting = token(1, life_s=10), token(2)
    await store.tokens.add(short)
    await store.tokens.add(lasting)

    assert await store.tokens.get(short.digest, T0 + timedelta(seconds=9)) == short
    later = T0 + timedelta(seconds=10)
    assert await store.tokens.get(short.digest, later) is None
    assert await store.tokens.of_user("alice", later) == [lasting]
    assert await store.tokens.of_user("alice", T0) == [short, lasting]


@pytest.mark.asyncio
async def test_a_user_has_a_bounded_number_of_tokens(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MOST", 2)
    for number in range(3):
        await store.tokens.add(token(number, life_s=100))
    for number in range(10, 12):
        await store.tokens.add(token(number))

    with pytest.raises(Forbidden, match="2 application tokens"):
        await store.tokens.add(token(12))
    await store.tokens.add(token(13, user="bob"))
    kept = {each.digest for each in await store.tokens.of_user("alice", T0)}
    assert kept == {token(number).digest for number in (1, 2, 10, 11)}, "the oldest session has made room"


ACT = Act("alice", T0, "192.0.2.7")


def key(number: int, user: str = "alice", comment: str = "") -> UserKey:
    return UserKey(f"SHA256:{number}", user, f"ssh-ed25519 {number}", comment, T0 + timedelta(seconds=number))


@pytest.mark.asyncio
async def test_keys_are_replaced_all_or_none(store: Store) -> None:
    await store.user_keys.add(key(1, comment="old"), ACT)
    await store.user_keys.add(key(2), ACT)
    await store.user_keys.add(key(9, "bob"), ACT)

    with pytest.raises(InvalidParameters):
        await store.user_keys.replace("alice", [key(3), key(9)], ACT)
    assert await store.user_keys.registered("alice") == [key(1, comment="old"), key(2)]
    moved = dataclasses.replace(key(1, comment="new"), added_at=T0 + timedelta(days=1))
    await store.user_keys.replace("alice", [moved, key(3), key(3)], ACT)
    assert await store.user_keys.registered("alice") == [key(1, comment="new"), key(3)]
    assert await store.user_keys.registered("bob") == [key(9, "bob")]


@pytest.mark.asyncio
async def test_a_token_is_revoked_by_its_owner_by_digest_or_beginning(store: Store) -> None:
    mine, other = AccessToken("a" * 64, "alice", True, T0, None), AccessToken("b" * 64, "bob", True, T0, None)
    await store.tokens.add(mine)
    await store.tokens.add(other)

    for unknown in ("b" * 64, "a" * 11, "", "c" * 12):
        with pytest.raises(NoSuchToken):
            await store.tokens.remove("alice", unknown, Act("alice", T0))
    await store.tokens.remove("alice", "a" * 12, Act("alice", T0))
    await store.tokens.remove("bob", "b" * 64, Act("bob", T0))
    assert await store.tokens.get(mine.digest, T0) is None
    assert await store.tokens.get(other.digest, T0) is None


@pytest.mark.asyncio
async def test_a_job_with_a_long_name_may_have_long_tags_up_to_what_an_index_takes(store: Store) -> None:
    # Text that does not compress: an index of PostgreSQL has room for 2,704 bytes a row.
    chance = random.Random(3)
    letters = [chr(number) for number in range(0x4E00, 0x9FA5)]
    job = make_job("".join(chance.choices(string.ascii_letters + string.digits, k=255)), uid=make_uid(77))
    stored = await store.jobs.submit(job, b"", "", "", [])
    tags = ["".join(chance.choices(letters, k=64)) for _ in range(6)]

    for tag in tags[:5]:
        await store.jobs.tag(stored.uid, tag)
    with pytest.raises(InvalidParameters, match="1000 bytes together"):
        await store.jobs.tag(stored.uid, tags[5])

    found, _ = await store.jobs.page(JobFilter(with_tags=(tags[0],)))
    assert set(found[0].tags) == set(tags[:5]), "each takes 195 bytes, with its quotes and comma"
