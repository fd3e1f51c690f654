"""Who may not start waits with the reason: jobs of users without the right, and all jobs in a maintenance."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pai_backend.controller.admission import Admission
from pai_backend.model.account import Account, Directory, Group, VcGrants
from pai_backend.model.job import Job, NewEvent, State
from pai_backend.store.announcements import Announcement
from pai_backend.store.grants import Act, GroupUpdate, UserUpdate
from pai_backend.store.sql import Store
from pai_backend.testing.builders import make_job, make_spec, make_uid
from tests.support.lab_config import two_vcs
from tests.support.scripted_cluster import Cluster, cluster, controlled, on_gpu, opened
from tests.support.scripted_engine import ScriptedEngine, lab_node
from tests.unit.controller.test_preemption import PROD, TEST, Reluctant, job_in

ACT = Act("root", datetime(2026, 11, 26, tzinfo=UTC))
NONE, DEFAULT = VcGrants(), VcGrants(frozenset({"default"}))
REFUSED = "alice may not use the virtual cluster default any more; it starts once an administrator or a manager of "


async def grant(store: Store, grants: VcGrants) -> None:
    """What everyone may use from now on."""
    await store.groups.change("default", GroupUpdate(grants=grants), ACT)


async def submit(lab: Cluster, user: str) -> Job:
    made = make_job("theirs", uid=make_uid(900), user=user, spec=on_gpu(), submitted_at=datetime.now(UTC))
    return await lab.store.jobs.submit(made, b"{}", "", "", [NewEvent("job.submitted")])


def is_refused(job: Job) -> bool:
    return job.state is State.WAITING and job.why.startswith(REFUSED)


@pytest.mark.asyncio
async def test_a_job_that_waits_when_its_users_grant_ends_does_not_start_until_it_is_back(tmp_path: Path) -> None:
    async with cluster(tmp_path, lab_node("carol", gpus=1)) as lab:
        first = await lab.running(await lab.submit(on_gpu()))
        second = await lab.until((await lab.submit(on_gpu())).uid, lambda now: bool(now.why))
        await lab.store.grants.add_user(Account("bob", own=DEFAULT), ACT, again=False)
        third = await submit(lab, "bob")
        await grant(lab.store, NONE)
        assert "default has granted that again" in (await lab.until(second.uid, is_refused)).why
        assert (await lab.store.jobs.get(first.uid)).state is State.RUNNING, "who runs goes on"
        await lab.engine.exit(first.tasks[0].uid, 0)
        await lab.running(third)
        assert is_refused(await lab.store.jobs.get(second.uid)), "though it was first"
        await grant(lab.store, DEFAULT)
        await lab.until(second.uid, lambda now: bool(now.why) and not is_refused(now))
        await lab.engine.exit(third.tasks[0].uid, 0)
        await lab.running(second)


@pytest.mark.asyncio
async def test_a_later_controller_lets_it_wait_too_and_a_stop_is_a_stop(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await grant(store, NONE)
        engine = ScriptedEngine(lab_node("carol", gpus=2))
        lab = Cluster(store, engine)
        held, stopped = await lab.submit(on_gpu()), await lab.submit(on_gpu())
        for _ in range(2):
            async with controlled(store, engine):
                await asyncio.gather(*(lab.until(job.uid, is_refused) for job in (held, stopped)))
        async with controlled(store, engine):
            await store.jobs.request_stop(stopped.uid, "alice", datetime.now(UTC))
            assert (await lab.final(stopped)).state is State.STOPPED
            await grant(store, DEFAULT)
            await lab.running(held)


def _off(begins: datetime, lasts_s: float | None = None) -> Announcement:
    until = None if lasts_s is None else begins + timedelta(seconds=lasts_s)
    return Announcement("The storage\nmoves.", until, "root", ACT.at, begins)


def is_held(job: Job) -> bool:
    return job.state is State.WAITING and job.why.startswith("maintenance: no job starts")


@pytest.mark.asyncio
async def test_in_a_maintenance_no_job_starts_and_who_runs_goes_on(tmp_path: Path) -> None:
    async with cluster(tmp_path, lab_node("carol", gpus=2)) as lab:
        first = await lab.running(await lab.submit(on_gpu()))
        await lab.store.announcements.announce(_off(datetime.now(UTC) + timedelta(days=1)), ACT)
        second = await lab.running(await lab.submit(on_gpu()))
        third = await lab.until((await lab.submit(on_gpu())).uid, lambda now: bool(now.why))
        await lab.store.announcements.announce(_off(datetime.now(UTC)), ACT)
        third = await lab.until(third.uid, is_held)
        assert third.why == "maintenance: no job starts until root ends it: The storage moves."
        for runs in (first, second):
            assert (await lab.store.jobs.get(runs.uid)).state is State.RUNNING
        await lab.engine.exit(first.tasks[0].uid, 0)
        await lab.final(first)
        assert is_held(await lab.store.jobs.get(third.uid)), "though a GPU is free"
        await lab.store.announcements.end(ACT)
        assert (await lab.running(third)).why == ""


@pytest.mark.asyncio
async def test_a_maintenance_begins_and_ends_by_the_clock_and_for_later_controllers(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        engine = ScriptedEngine(lab_node("carol", gpus=1))
        lab = Cluster(store, engine)
        async with controlled(store, engine):
            first = await lab.running(await lab.submit(on_gpu()))
            second = await lab.until((await lab.submit(on_gpu())).uid, lambda now: bool(now.why))
            await store.announcements.announce(_off(datetime.now(UTC) + timedelta(seconds=1.5)), ACT)
            assert not is_held(await store.jobs.get(second.uid))
            await lab.until(second.uid, is_held)
            await engine.exit(first.tasks[0].uid, 0)
            await lab.final(first)
        await store.announcements.announce(_off(datetime.now(UTC), 3.0), ACT)
        async with controlled(store, engine):
            await lab.running(second)
        assert await store.announcements.current(datetime.now(UTC)) is None


@pytest.mark.asyncio
async def test_cells_that_are_kept_for_it_are_given_up(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        engine = Reluctant()
        async with controlled(store, engine, config=two_vcs()):
            lab = Cluster(store, engine)
            low = await lab.running(await lab.submit(job_in("vc1", TEST)))
            high = await lab.submit(job_in("vc1", PROD))
            await engine.asked_to_stop(low.tasks[0].uid)
            await store.groups.change("default", GroupUpdate(grants=VcGrants(frozenset({"vc2"}))), ACT)
            waits = await lab.until(high.uid, lambda now: "may not use the virtual cluster vc1" in now.why)
            assert all(task.placement is None for task in waits.tasks), "nothing is kept for it"


@pytest.mark.parametrize(
    ("directory", "admins", "settled", "user", "may"),
    [
        (Directory(), (), {}, "alice", True),
        (Directory(groups={"default": Group("default", grants=NONE)}), (), {}, "alice", False),
        (Directory(groups={"default": Group("default", grants=NONE)}), ("alice",), {}, "alice", True),
        (Directory(groups={"default": Group("default", grants=NONE)}), (), {"alice": ("default",)}, "alice", True),
        (Directory(), (), {"alice": ("vc1",)}, "alice", False),
        (Directory(), (), {"alice": ("vc1",)}, "bob", True),
        (
            Directory(
                groups={"default": Group("default", grants=NONE), "x": Group("x", members=("bob",), grants=DEFAULT)}
            ),
            (),
            {},
            "bob",
            True,
        ),
        (Directory(groups={"default": Group("default", grants=NONE)}, own={"bob": DEFAULT}), (), {}, "bob", True),
    ],
)
def test_who_may_use_a_virtual_cluster(
    directory: Directory, admins: tuple[str, ...], settled: dict[str, tuple[str, ...]], user: str, may: bool
) -> None:
    job = make_job(user=user, spec=make_spec(virtual_cluster="default"))
    admission = Admission(None, directory, frozenset(admins), settled)
    assert [admission.refusal(job) == "" for _ in range(2)] == [may, may]


@pytest.mark.asyncio
async def test_an_administrator_who_no_longer_is_one_has_what_is_granted(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await store.grants.add_user(Account("alice", admin=True), ACT, again=False)
        await grant(store, NONE)
        engine = ScriptedEngine(lab_node("carol", gpus=1))
        async with controlled(store, engine):
            lab = Cluster(store, engine)
            await lab.running(await lab.submit(on_gpu()))
            waits = await lab.until((await lab.submit(on_gpu())).uid, lambda now: bool(now.why))
            assert not is_refused(waits)
            await store.grants.change_user("alice", UserUpdate(admin=False), ACT, session="")
            await lab.until(waits.uid, is_refused)
