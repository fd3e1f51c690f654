"""Whichever way a page of the list is found, it has the same jobs in the same order; and the numbers are true."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
import pytest_asyncio
from sqlalchemy import Connection, func, select, update

from pai_backend.model.job import State
from pai_backend.model.spec import PriorityClass, Scheduling
from pai_backend.store import listing, matching
from pai_backend.store.base import JobFilter, JobSummary, Sight
from pai_backend.store.sql import Store
from pai_backend.store.tables import job_groups, jobs
from pai_backend.testing.builders import T0, make_job, make_role, make_spec, make_uid

COUNT = 60
TYPES = ("A100", "V100", "Ü V100", '"V100')
WAYS = {
    "the cheapest": (listing.LOOK, listing.STEP, matching.FEW),
    "a walk if it can be": (0.0, 1e9, 0),
    "through all that match": (1e9, 1e9, 0),
}
FILTERS = (
    JobFilter(),
    JobFilter(sight=Sight("alice")),
    JobFilter(sight=Sight("alice", ("prod",))),
    JobFilter(sight=Sight("alice", ("prod",)), usernames=("bob", "carol"), keyword="a"),
    JobFilter(keyword="bert"),
    JobFilter(keyword="nowhere"),
    JobFilter(sight=Sight("bob"), keyword="a"),
    JobFilter(states=(State.RUNNING, State.FAILED)),
    JobFilter(usernames=("alice", "carol"), states=(State.RUNNING,), virtual_clusters=("prod",)),
    JobFilter(gpu_types=("V100",)),
    JobFilter(sight=Sight("alice"), gpu_types=("A100", "V100"), states=(State.RUNNING,)),
    JobFilter(sight=Sight("alice", within="prod"), gpu_types=("A100",), keyword="bert"),
    JobFilter(gpu_types=("100",)),
    JobFilter(priorities=(None, "prod"), without_tags=("slow",)),
    JobFilter(submitted_since=T0 + timedelta(minutes=20)),
    JobFilter(sight=Sight("alice"), submitted_since=T0 + timedelta(minutes=20), states=(State.RUNNING,)),
    JobFilter(sight=Sight("alice"), usernames=("alice", "bob"), with_tags=("slow", "paper")),
)
ORDERS: dict[str, Callable[[JobSummary], object]] = {
    "submissionTime": lambda row: row.submitted_at,
    "launchedTime": lambda row: row.launched_at,
    "completedTime": lambda row: row.completed_at,
    "name": lambda row: row.name,
    "username": lambda row: row.user,
    "virtualCluster": lambda row: row.virtual_cluster,
    "state": lambda row: row.state,
    "retries": lambda row: row.retries,
    "totalTaskNumber": lambda row: row.task_count,
    "totalGpuNumber": lambda row: row.gpu_count,
    "jobPriority": lambda row: row.priority,
}


@pytest_asyncio.fixture
async def filled(store: Store) -> Store:
    """Jobs of three users, some with tags, some without a time, a priority or either."""
    chance = random.Random(7)

    def time() -> datetime | None:
        return chance.choice((None, T0 + timedelta(seconds=chance.randrange(100))))

    async def one(number: int) -> None:
        roles = [make_role(role, gpus=chance.choice((0, 1)), sku_type=chance.choice((None, *TYPES))) for role in "ab"]
        spec = make_spec(roles=roles, virtual_cluster=chance.choice(("default", "prod"))).model_copy(
            update={"scheduling": Scheduling(priority_class=chance.choice((None, *PriorityClass)))}
        )
        job = make_job(
            f"{chance.choice(('bert', 'gpt'))}{number:02}",
            uid=make_uid(number),
            user=chance.choice(("alice", "bob", "carol")),
            spec=spec,
            state=chance.choice((State.RUNNING, State.FAILED, State.SUCCEEDED)),
            submitted_at=T0 + timedelta(minutes=number // 2),
        )
        tags = tuple(tag for tag in ("paper", "slow", '"slow') if chance.random() < 0.4)
        changes = {"launched_at": time(), "completed_at": time(), "tags": tags}
        await store.jobs.submit(job.model_copy(update=changes), b"", "", "", [])

    await asyncio.gather(*(one(number) for number in range(COUNT)))
    return store


def expected(rows: list[JobSummary], which: JobFilter) -> list[JobSummary]:
    """All that match, in order, as one would do it by hand."""

    def matches(row: JobSummary) -> bool:
        return (
            (which.sight.user in (None, row.user) or row.virtual_cluster in which.sight.managed)
            and (not which.usernames or row.user in which.usernames)
            and (not which.states or State(row.state) in which.states)
            and (not which.virtual_clusters or row.virtual_cluster in which.virtual_clusters)
            and (not which.priorities or row.priority in which.priorities)
            and (not which.with_tags or bool(set(which.with_tags) & set(row.tags)))
            and not set(which.without_tags) & set(row.tags)
            and (not which.gpu_types or bool(set(which.gpu_types) & set(row.gpu_types)))
            and which.sight.within in ("", row.virtual_cluster)
            and (which.submitted_since is None or row.submitted_at >= which.submitted_since)
            and any(which.keyword in text for text in (row.name, row.alias, row.user, row.virtual_cluster))
        )

    value = ORDERS[which.order]
    found = sorted(filter(matches, rows), key=lambda row: row.uid, reverse=which.descending)
    having = [row for row in found if value(row) is not None]
    having.sort(key=value, reverse=which.descending)  # type: ignore[arg-type]  # all values of one order compare
    return having + [row for row in found if value(row) is None]


@pytest.mark.asyncio
@pytest.mark.parametrize("way", WAYS)
async def test_every_way_leads_to_the_same_page(filled: Store, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    everything, total = await filled.jobs.page(JobFilter(limit=COUNT))
    assert total == len(everything) == COUNT
    assert set(TYPES) == {each for row in everything for each in row.gpu_types}
    look, step, few = WAYS[way]
    monkeypatch.setattr(listing, "LOOK", look)
    monkeypatch.setattr(listing, "STEP", step)
    monkeypatch.setattr(matching, "FEW", few)

    for plain in FILTERS:
        for order in ORDERS:
            for descending, (offset, limit) in ((True, (0, 7)), (False, (5, 9)), (True, (3, COUNT))):
                changes = {"order": order, "descending": descending, "offset": offset, "limit": limit}
                which = JobFilter(**{**vars(plain), **changes})
                rows = expected(everything, which)
                assert await filled.jobs.page(which) == (rows[offset : offset + limit], len(rows)), which


def recounted(conn: Connection) -> tuple[object, object]:
    """The groups as they are kept, and as they are."""
    columns = (job_groups.c.username, job_groups.c.virtual_cluster, job_groups.c.priority, job_groups.c.state)
    kept = conn.execute(select(*columns, job_groups.c.number).where(job_groups.c.number != 0))
    real = (jobs.c.username, jobs.c.virtual_cluster, func.coalesce(jobs.c.priority, ""), jobs.c.state)
    counted = conn.execute(select(*real, func.count()).group_by(*real))
    return sorted(map(tuple, kept)), sorted(map(tuple, counted))


@pytest.mark.asyncio
async def test_the_numbers_of_jobs_follow_every_change(filled: Store) -> None:
    kept, counted = await filled._database.read(recounted)
    assert kept == counted

    def move(conn: Connection) -> None:
        conn.execute(update(jobs).where(jobs.c.state == "RUNNING", jobs.c.username == "bob").values(state="STOPPED"))
        conn.execute(update(jobs).where(jobs.c.username == "alice").values(tags='["new"]'))

    await filled._database.write(move, announce=False)
    moved, counted = await filled._database.read(recounted)
    assert moved == counted != kept


@pytest.mark.asyncio
async def test_what_was_found_is_forgotten_when_a_tag_or_a_state_changes(filled: Store, other_store: Store) -> None:
    tagged, running = JobFilter(with_tags=("new",)), JobFilter(keyword="bert", states=(State.RUNNING,), limit=COUNT)
    assert await filled.jobs.page(tagged) == ([], 0)
    before, _ = await filled.jobs.page(running)

    await other_store.jobs.tag(before[0].uid, "new")
    assert [row.uid for row in (await filled.jobs.page(tagged))[0]] == [before[0].uid]

    await other_store.jobs.untag(before[0].uid, "new")
    stop = update(jobs).where(jobs.c.uid == before[0].uid).values(state="STOPPED")
    await other_store._database.write(lambda conn: conn.execute(stop).rowcount, announce=False)
    assert await filled.jobs.page(tagged) == ([], 0)
    assert await filled.jobs.page(running) == (before[1:], len(before) - 1)


@pytest.mark.asyncio
async def test_a_filter_that_was_asked_before_is_not_looked_for_again(
    filled: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await filled.jobs.page(JobFilter(keyword="bert", limit=3))

    def refuse(*_: object) -> matching.Matches:
        raise AssertionError("it was looked for")

    monkeypatch.setattr(matching, "look_for", refuse)
    assert await filled.jobs.page(JobFilter(keyword="bert", limit=3)) == first
    assert (await filled.jobs.page(JobFilter(keyword="bert", offset=3, order="name")))[1] == first[1]
    with pytest.raises(AssertionError, match="looked for"):
        await filled.jobs.page(JobFilter(keyword="gpt"))
