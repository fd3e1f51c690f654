"""Lists, look-ups, logs and keys."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from pai_backend.model.errors import InvalidParameters, NoSuchJob, NoSuchKey
from pai_backend.model.job import Event, JobExit, Phase, Retries, State
from pai_backend.model.spec import DocumentWarning, PriorityClass, Scheduling
from pai_backend.store import lookup
from pai_backend.store.base import JobFilter, JobSummary, NewEvent, Sight, UserKey
from pai_backend.store.cipher import Cipher
from pai_backend.store.grants import Act
from pai_backend.store.sql import Store
from pai_backend.store.task_keys import MOST
from pai_backend.testing.builders import T0, make_job, make_role, make_spec, make_uid
from tests.support.sealing import KEYS


async def fill(store: Store) -> None:
    """Twelve jobs, one a minute; alice has the even ones, bob the odd ones, which wait in ``prod``."""
    await asyncio.gather(
        *(
            store.jobs.submit(
                make_job(
                    f"job_{number:02}",
                    uid=make_uid(number),
                    user="bob" if number % 2 else "alice",
                    spec=make_spec(virtual_cluster="prod" if number % 2 else "default"),
                    state=State.WAITING if number % 2 else State.SUCCEEDED,
                    submitted_at=T0 + timedelta(minutes=number),
                ).model_copy(update={"launched_at": T0 if number in (3, 4) else None}),
                b"",
                "",
                "",
                [NewEvent("job.submitted", {"number": number})],
            )
            for number in range(12)
        )
    )


async def names(store: Store, which: JobFilter) -> list[str]:
    page, _ = await store.jobs.page(which)
    return [summary.name for summary in page]


@pytest.mark.asyncio
async def test_a_summary_shows_the_job_without_loading_it(store: Store) -> None:
    spec = make_spec(
        roles=[make_role("a", instances=2, gpus=4), make_role("b", gpus=1)], virtual_cluster="prod", gpu_type="A100"
    )
    job = make_job(spec=spec, warnings=[DocumentWarning(code="x", message="y")], state=State.FAILED, phase=Phase.ENDED)
    job = job.model_copy(
        update={
            "why": "because",
            "retries": Retries(user=1, platform=2),
            "tags": ("b", "a"),
            "spec": spec.model_copy(update={"scheduling": Scheduling(priority_class=PriorityClass.PROD)}),
            "exit": JobExit(status=137, message="killed"),
            "launched_at": T0 + timedelta(seconds=1),
            "completed_at": T0 + timedelta(seconds=2),
        }
    )
    await store.jobs.submit(job, b"", "", "", [])

    assert await store.jobs.page(JobFilter()) == (
        [
            JobSummary(
                uid=job.uid,
                name="job",
                user="alice",
                alias="job",
                state="FAILED",
                phase="ended",
                why="because",
                virtual_cluster="prod",
                submitted_at=T0,
                launched_at=T0 + timedelta(seconds=1),
                completed_at=T0 + timedelta(seconds=2),
                retries=3,
                task_count=3,
                gpu_count=9,
                exit_status=137,
                warnings=1,
                desired="START",
                priority="prod",
                role_count=2,
                platform_retries=2,
                resource_retries=0,
                tags=("a", "b"),
                gpu_types=("A100",),
            )
        ],
        1,
    )


@pytest.mark.asyncio
async def test_the_newest_jobs_come_first_and_pages_neither_overlap_nor_leave_gaps(store: Store) -> None:
    await fill(store)

    pages = [await store.jobs.page(JobFilter(offset=offset, limit=5)) for offset in (0, 5, 10, 15)]

    assert [len(page) for page, _ in pages] == [5, 5, 2, 0]
    assert {total for _, total in pages} == {12}
    assert [summary.name for page, _ in pages for summary in page] == [f"job_{n:02}" for n in range(11, -1, -1)]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("which", "expected"),
    [
        (JobFilter(sight=Sight("bob")), [11, 9, 7, 5, 3, 1]),
        (JobFilter(states=(State.SUCCEEDED, State.FAILED)), [10, 8, 6, 4, 2, 0]),
        (JobFilter(virtual_clusters=("prod",), sight=Sight("alice")), []),
        (JobFilter(virtual_clusters=("prod", "other"), limit=2), [11, 9]),
        (JobFilter(usernames=("bob", "carol")), [11, 9, 7, 5, 3, 1]),
        (JobFilter(sight=Sight("alice"), usernames=("bob",)), []),
        (JobFilter(priorities=(None,), limit=1), [11]),
        (JobFilter(priorities=("prod",)), []),
        (JobFilter(keyword="JOB_1"), [11, 10]),
        (JobFilter(keyword="_1"), [11, 10]),  # not "any character, then 1", which would find job_01
        (JobFilter(keyword="%"), []),
        (JobFilter(keyword="PRO", limit=1), [11]),
        (JobFilter(order="name", descending=False, limit=3), [0, 1, 2]),
        (JobFilter(order="username", descending=False, limit=1, keyword="0"), [0]),
        (JobFilter(limit=0), []),
    ],
)
async def test_a_list_is_filtered_and_ordered(store: Store, which: JobFilter, expected: list[int]) -> None:
    await fill(store)

    assert await names(store, which) == [f"job_{number:02}" for number in expected]


@pytest.mark.asyncio
@pytest.mark.parametrize("descending", [True, False])
async def test_jobs_without_a_time_come_last_in_either_direction(store: Store, descending: bool) -> None:
    await fill(store)

    found = await names(store, JobFilter(order="launchedTime", descending=descending))

    assert set(found[:2]) == {"job_03", "job_04"}


@pytest.mark.asyncio
@pytest.mark.parametrize("which", [JobFilter(order="rest"), JobFilter(offset=-1), JobFilter(limit=-1)])
async def test_a_list_that_makes_no_sense_is_refused(store: Store, which: JobFilter) -> None:
    with pytest.raises(InvalidParameters):
        await store.jobs.page(which)


@pytest.mark.asyncio
async def test_jobs_are_counted_by_state(store: Store) -> None:
    await fill(store)

    assert await store.jobs.counts() == {"WAITING": 6, "SUCCEEDED": 6}


@pytest.mark.asyncio
@pytest.mark.parametrize("asking", ["mallory", "alice", None])
async def test_a_uid_means_its_job_whatever_others_are_called(store: Store, asking: str | None) -> None:
    """Jobs stored before such names were refused may have them."""
    victim = await store.jobs.submit(make_job("train", uid=make_uid(1), user="alice"), b"", "", "", [])
    forged = make_job(victim.uid, uid=make_uid(2), user="mallory", alias=victim.uid)
    await store.jobs.submit(forged, b"", "", "", [])

    assert await store.jobs.find(victim.uid, asking) == victim
    assert (await store.jobs.find(f"mallory~{victim.uid}", asking)).uid == make_uid(2)
    with pytest.raises(NoSuchJob):
        await store.jobs.find(make_uid(3), asking)


@pytest.mark.asyncio
async def test_a_job_is_found_by_each_of_its_names_and_ones_own_name_wins(store: Store) -> None:
    hers = await store.jobs.submit(make_job("train", uid=make_uid(1), user="alice"), b"", "", "", [])
    his = await store.jobs.submit(make_job("train", uid=make_uid(2), user="bob"), b"", "", "", [])

    assert await store.jobs.find("alice~train") == hers
    assert await store.jobs.find("bob~train", "alice") == his
    assert await store.jobs.find("train", "alice") == hers
    assert await store.jobs.find("train", "bob") == his, "his own name, though it is also the alias of hers"
    assert await store.jobs.find("train", "carol") == hers, "the alias"
    assert await store.jobs.find(his.alias) == his
    assert await store.jobs.find(his.uid) == his
    for unknown in ("carol~train", "other", "~", "", "bob~", f"bob~{his.alias}"):
        with pytest.raises(NoSuchJob):
            await store.jobs.find(unknown, "bob")
    assert await store.jobs.by_alias("other") is None
    with pytest.raises(NoSuchJob):
        await store.jobs.past_tasks(make_uid(3))


@pytest.mark.asyncio
async def test_events_are_read_on_from_any_point(store: Store) -> None:
    new = [NewEvent("job.state", {"number": number, "at": T0, "deep": [{"名": None}]}) for number in range(1, 6)]
    job = await store.jobs.submit(make_job(), b"", "", "", new)

    found = await store.events.of_job(job.uid, after=1, limit=3)

    assert [event.seq for event in found] == [2, 3, 4]
    assert found[0] == Event(
        job=job.uid,
        seq=2,
        at=T0,
        type="job.state",
        payload={"number": 2, "at": "2026-01-02T03:04:05.678901Z", "deep": [{"名": None}]},
    )
    assert await store.events.of_job(job.uid, after=5) == []
    assert await store.events.of_job(make_uid(7)) == []


@pytest.mark.asyncio
@pytest.mark.parametrize(("state", "over"), [(State.RUNNING, False), (State.SUCCEEDED, True)])
async def test_who_follows_is_told_when_no_event_will_come_behind(store: Store, state: State, over: bool) -> None:
    """Only with the last page: a page that is full may have others behind it."""
    new = [NewEvent("job.state", {"number": number}) for number in range(1, 6)]
    job = await store.jobs.submit(make_job(state=state), b"", "", "", new)
    assert await store.events.news(job.uid, 0, 3) == (await store.events.of_job(job.uid, limit=3), False)
    assert await store.events.news(job.uid, 3, 3) == (await store.events.of_job(job.uid, after=3), over)
    assert await store.events.news(job.uid, 5) == ([], over)
    with pytest.raises(NoSuchJob):
        await store.events.news(make_uid(7), 0)


@pytest.mark.asyncio
async def test_recent_events_start_at_the_present_and_go_on_in_portions(store: Store) -> None:
    await store.jobs.submit(make_job("before", uid=make_uid(100)), b"", "", "", [NewEvent("job.submitted")])
    nothing, position = await store.events.recent(None, Sight())
    assert nothing == []
    await fill(store)

    seen: list[int] = []
    while True:
        events, position = await store.events.recent(position, Sight(), limit=5)
        if not events:
            break
        seen += [int(str(event.payload["number"])) for event in events]

    assert sorted(seen) == list(range(12))


@pytest.mark.asyncio
async def test_recent_events_of_one_user_pass_over_those_of_others(store: Store) -> None:
    _, start = await store.events.recent(None, Sight("bob"))
    await fill(store)

    events, position = await store.events.recent(start, Sight("bob"))
    first, middle = await store.events.recent(start, Sight("bob"), limit=4)
    rest, _ = await store.events.recent(middle, Sight("bob"), limit=4)

    assert sorted(event.payload["number"] for event in events) == [1, 3, 5, 7, 9, 11]  # type: ignore[type-var]
    assert first + rest == events
    assert await store.events.recent(position, Sight("bob")) == ([], position)


@pytest.mark.asyncio
@pytest.mark.parametrize("position", ["", "-1", "x", "1.5", "٣", "9" * 30])
async def test_a_position_that_was_never_given_is_refused(store: Store, position: str) -> None:
    with pytest.raises(InvalidParameters, match="position"):
        await store.events.recent(position, Sight())


ACT = Act("alice", T0, "192.0.2.7")


@pytest.mark.asyncio
async def test_a_key_belongs_to_one_user(store: Store) -> None:
    key = UserKey("SHA256:abc", "alice", "ssh-ed25519 AAAA", "laptop", T0)
    await store.user_keys.add(key, ACT)
    await store.user_keys.add(key, ACT)

    with pytest.raises(InvalidParameters, match="another user"):
        await store.user_keys.add(UserKey("SHA256:abc", "bob", "ssh-ed25519 AAAA", "", T0), ACT)
    assert await store.user_keys.registered() == await store.user_keys.registered("alice") == [key]
    assert await store.user_keys.registered("bob") == []
    with pytest.raises(NoSuchKey):
        await store.user_keys.remove("bob", "SHA256:abc", ACT)
    await store.user_keys.remove("alice", "SHA256:abc", ACT)
    assert await store.user_keys.registered() == []


@pytest.mark.asyncio
async def test_secrets_and_host_keys_are_made_once(store: Store, other_store: Store) -> None:
    kept = await asyncio.gather(
        *(who.secrets.get("gateway", f"made by {number}") for number, who in enumerate([store, store, other_store]))
    )
    assert len(set(kept)) == 1
    assert await other_store.secrets.get("gateway", "late") == kept[0]

    assert await store.task_keys.get("slot") is None
    keys = await asyncio.gather(
        *(who.task_keys.put("slot", f"key {number}", "pub") for number, who in enumerate([store, other_store]))
    )
    assert keys[0] == keys[1] == await store.task_keys.get("slot")


@pytest.mark.asyncio
async def test_many_keys_are_kept_at_once_and_the_first_of_each_slot_stays(store: Store) -> None:
    await store.task_keys.put("b", "first of b", "pub")
    names = [f"many-{number}" for number in range(2 * MOST + 1)]
    made = {name: (f"key of {name}", "pub") for name in [*names, "b"]}
    await store.task_keys.put("other", "key of other", "pub")

    kept = await store.task_keys.keep(made, ["other", "unknown"])

    expected = {name: f"key of {name}" for name in names} | {"b": "first of b", "other": "key of other"}
    assert kept == expected
    assert await store.task_keys.kept([*made, "other", "unknown"]) == expected


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "ask",
    [
        lambda store: store.jobs.find("half a pair: \ud800"),
        lambda store: store.events.of_job(make_uid(1), after=2**70),
        lambda store: store.jobs.page(JobFilter(keyword="half a pair: \ud800")),
        lambda store: store.user_keys.add(UserKey("SHA256:abc", "alice", "ssh-ed25519 AAAA", "\udfff", T0), ACT),
    ],
)
async def test_a_value_that_the_database_cannot_take_is_the_callers_fault(
    store: Store, ask: Callable[[Store], Awaitable[object]]
) -> None:
    with pytest.raises(InvalidParameters, match="character or a size"):
        await ask(store)


@pytest.mark.asyncio
async def test_reading_many_jobs_gives_the_event_loop_its_turn(store: Store) -> None:
    jobs = [make_job(f"job-{number}", uid=make_uid(number)) for number in range(200)]
    await asyncio.gather(*(store.jobs.submit(job, b"", "", "", []) for job in jobs))
    found = await store._database.read(lookup.unfinished)
    turns: list[int] = []

    async def other() -> None:
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    try:
        assert len(await lookup.parsed(found, Cipher(KEYS.read()))) == 200
    finally:
        task.cancel()
    assert len(turns) >= 5
