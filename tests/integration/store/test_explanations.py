"""Questions why a job waits, and the controller's answers."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pai_backend.store.base import Explanation, Fenced
from pai_backend.store.sql import Store
from pai_backend.testing.builders import T0, make_job, make_uid

SECOND = timedelta(seconds=1)


async def controller(store: Store) -> int:
    lease = await store.leadership.acquire("one", 10, T0)
    assert lease is not None
    return lease.epoch


@pytest.mark.asyncio
async def test_questions_are_open_until_they_are_answered_the_oldest_first(store: Store) -> None:
    uids = [(await store.jobs.submit(make_job(f"j{n}", uid=make_uid(n)), b"", "", "", [])).uid for n in range(3)]
    epoch = await controller(store)
    for number, uid in enumerate(uids):
        await store.explanations.ask(uid, T0 - number * SECOND)

    assert await store.explanations.asked(10) == [uids[2], uids[1], uids[0]]
    assert await store.explanations.asked(2) == [uids[2], uids[1]]
    await store.explanations.answer({uids[2]: '{"a":1}', uids[1]: ""}, T0 + SECOND, epoch)
    assert await store.explanations.asked(10) == [uids[0]]
    assert await store.explanations.get(uids[2]) == Explanation(T0 - 2 * SECOND, T0 + SECOND, '{"a":1}', open=False)


@pytest.mark.asyncio
async def test_a_question_asked_again_keeps_the_last_answer_until_there_is_a_new_one(store: Store) -> None:
    uid = (await store.jobs.submit(make_job("j", uid=make_uid(1)), b"", "", "", [])).uid
    epoch = await controller(store)
    assert await store.explanations.get(uid) is None
    await store.explanations.ask(uid, T0)
    assert await store.explanations.get(uid) == Explanation(T0, None, "", open=True)
    await store.explanations.answer({uid: "old"}, T0, epoch)
    await store.explanations.ask(uid, T0 + SECOND)
    assert await store.explanations.get(uid) == Explanation(T0 + SECOND, T0, "old", open=True)


@pytest.mark.asyncio
async def test_asking_disturbs_no_job_and_wakes_whoever_waits(store: Store) -> None:
    job = await store.jobs.submit(make_job("j", uid=make_uid(1)), b"", "", "", [])
    before = await store.jobs.get(job.uid)
    mark = await store.changes.wait(-1, 0)
    await store.explanations.ask(job.uid, T0)
    assert await store.changes.wait(mark, 60) != mark
    assert await store.jobs.get(job.uid) == before


@pytest.mark.asyncio
async def test_a_controller_that_lost_its_lease_answers_nothing(store: Store) -> None:
    uid = (await store.jobs.submit(make_job("j", uid=make_uid(1)), b"", "", "", [])).uid
    epoch = await controller(store)
    await store.explanations.ask(uid, T0)
    assert await store.leadership.acquire("two", 10, T0 + timedelta(minutes=1)) is not None
    with pytest.raises(Fenced):
        await store.explanations.answer({uid: "stale"}, T0, epoch)
    assert await store.explanations.asked(10) == [uid]
