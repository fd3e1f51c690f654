"""Budgets and what of them is used, on both databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from pai_backend.model.account import ADMINS, EVERYONE, Account, Group
from pai_backend.model.accounting import HOUR_US, By
from pai_backend.model.budget import Budget, BudgetUse, Level, Per, Resource, Scope, hours_us
from pai_backend.model.errors import InvalidParameters, NoSuchGroup
from pai_backend.model.job import Job, Phase, State
from pai_backend.model.node import Placement
from pai_backend.store import budgets as rows
from pai_backend.store.auditing import AuditFilter
from pai_backend.store.base import Fenced, NewEvent
from pai_backend.store.grants import Act, GroupUpdate
from pai_backend.store.sql import Store
from pai_backend.testing.builders import make_job, make_role, make_spec, make_uid

HOUR = timedelta(hours=1)
DECEMBER = datetime(2026, 12, 1, tzinfo=UTC)
BEGUN = DECEMBER - 3 * HOUR
ACT = Act("root", BEGUN)
VISION = Group("vision", members=("alice", "bob"))


def budget(scope: Scope, hours: str = "10", **changes: object) -> Budget:
    made = Budget(rows.new_id(), scope, Resource.GPU, Per.MONTH, hours_us(Decimal(hours)), 80, BEGUN, BEGUN, "root")
    return Budget(**{**{name: getattr(made, name) for name in Budget.__slots__}, **changes})


async def put(store: Store, scope: Scope, hours: str = "10", **changes: object) -> Budget:
    return await store.budgets.put(budget(scope, hours, **changes), ACT, keep_since="since" not in changes)


async def placed(store: Store, epoch: int, number: int, user: str, gpus: int, cluster: str = "default") -> Job:
    """A job that holds GPUs from ``BEGUN`` on."""
    spec = make_spec(f"job-{number}", roles=[make_role(cpus=4, gpus=gpus)], virtual_cluster=cluster)
    job = await store.jobs.submit(
        make_job(spec.name, uid=make_uid(number), user=user, spec=spec), b"", "", "", [NewEvent("job.submitted", {})]
    )
    place = Placement(node="n", address="127.0.0.1", machine="m", gpus=tuple(range(gpus)), gpu_type="V100", owned="")
    task = job.tasks[0].model_copy(update={"phase": Phase.RUNNING, "placement": place})
    after = job.model_copy(update={"tasks": (task,), "state": State.RUNNING})
    return await store.jobs.save(after, seen=job, epoch=epoch, events=[], at=BEGUN)


async def used(store: Store, now: datetime) -> dict[str, tuple[float, Level]]:
    """Hours that are used, by scope."""
    return {str(each.claim.budget.scope): (each.used / HOUR_US, each.level) for each in await store.budgets.uses(now)}


async def epoch_of(store: Store) -> int:
    lease = await store.leadership.acquire("one", 3600, BEGUN, force=True)
    assert lease is not None
    return lease.epoch


@pytest.mark.asyncio
async def test_use_is_what_usage_adds_up_and_begins_again_with_the_month(store: Store, other_store: Store) -> None:
    epoch = await epoch_of(store)
    await store.groups.add(VISION, ACT)
    await store.grants.add_user(Account("carol", admin=True), ACT, again=False)
    for number, (user, gpus, cluster) in enumerate([("alice", 2, "a"), ("bob", 1, "b"), ("carol", 1, "a")], 1):
        await placed(store, epoch, number, user, gpus, cluster)
    cpu = {"resource": Resource.CPU}
    for scope in (Scope("alice"), Scope(group="vision"), Scope(virtual_cluster="a"), Scope("bob", virtual_cluster="a")):
        await put(store, scope)
    for group in (EVERYONE, ADMINS):
        await put(store, Scope(group=group), "36", **cpu)
    found = await used(other_store, DECEMBER)
    assert found["user alice"] == (0.0, Level.OK), "the month has just begun"
    late = DECEMBER - timedelta(microseconds=1)
    (alice,) = [each for each in await other_store.budgets.uses(late) if each.claim.budget.scope == Scope("alice")]
    told = await other_store.accounting.totals([By.USER], BEGUN, late, ["alice"])
    assert alice.used == told[("alice",)].gpu_us
    assert await used(other_store, BEGUN + 2 * HOUR) == {
        "user alice": (4.0, Level.OK),
        "group vision": (6.0, Level.OK),
        "virtual cluster a": (6.0, Level.OK),
        "user bob in the virtual cluster a": (0.0, Level.OK),
        "group default": (24.0, Level.OK),
        "group admingroup": (8.0, Level.OK),
    }
    total = await put(store, Scope("alice"), "12", per=Per.TOTAL, since=BEGUN + HOUR)
    uses = {each.claim.budget.id: each for each in await store.budgets.uses(DECEMBER + 3 * HOUR)}
    assert (uses[total.id].used, uses[total.id].level) == (10 * HOUR_US, Level.NEAR), "over the end of the month"


@pytest.mark.asyncio
async def test_a_level_is_reached_exactly(store: Store) -> None:
    epoch = await epoch_of(store)
    await placed(store, epoch, 1, "alice", 1)
    await put(store, Scope("alice"), "1", warn_percent=50)
    for at, level in (
        (HOUR / 2 - timedelta(microseconds=1), Level.OK),
        (HOUR / 2, Level.NEAR),
        (HOUR - timedelta(microseconds=1), Level.NEAR),
        (HOUR, Level.USED_UP),
    ):
        (each,) = await store.budgets.uses(BEGUN + at)
        assert each.level is level, at
    await put(store, Scope("alice"), "0")
    assert (await store.budgets.uses(BEGUN))[0].level is Level.USED_UP, "nothing may be used"


@pytest.mark.asyncio
async def test_setting_it_again_changes_it_and_removing_is_idempotent(store: Store, other_store: Store) -> None:
    first = await put(store, Scope("alice"), "10", per=Per.TOTAL)
    later = budget(Scope("alice"), "20", per=Per.TOTAL, since=DECEMBER)
    again = await store.budgets.put(later, ACT, keep_since=True)
    assert (again.id, again.since, again.limit) == (first.id, BEGUN, 20 * HOUR_US)
    moved = await store.budgets.put(later, ACT, keep_since=False)
    assert (moved.id, moved.since) == (first.id, DECEMBER)
    assert await other_store.budgets.all() == [moved]
    for _ in range(2):
        await store.budgets.remove(first.id, ACT)
    assert await store.budgets.uses(DECEMBER) == []
    told = [(each.type, each.user, each.subject) for each in await store.audit.page(AuditFilter(types=("budget.*",)))]
    assert told == [("budget.removed", "alice", "user alice")] + [("budget.set", "alice", "user alice")] * 3


@pytest.mark.asyncio
async def test_the_budget_of_a_group_ends_with_it(store: Store) -> None:
    with pytest.raises(NoSuchGroup):
        await put(store, Scope(group="vision"))
    await store.groups.add(VISION, ACT)
    await put(store, Scope(group="vision"))
    await put(store, Scope(group="vision", virtual_cluster="a"))
    await put(store, Scope(group=EVERYONE))
    await store.groups.change(EVERYONE, GroupUpdate(description=None), ACT)
    await store.groups.remove("vision", ACT)
    await store.groups.add(VISION, ACT)
    assert [str(each.scope) for each in await store.budgets.all()] == ["group default"]


@pytest.mark.asyncio
async def test_members_count_while_they_are_members(store: Store) -> None:
    epoch = await epoch_of(store)
    await store.groups.add(VISION, ACT)
    await placed(store, epoch, 1, "bob", 1)
    await put(store, Scope(group="vision"))
    assert (await used(store, BEGUN + HOUR))["group vision"] == (1.0, Level.OK)
    await store.groups.change("vision", GroupUpdate(members=("alice",)), ACT)
    assert (await used(store, BEGUN + HOUR))["group vision"] == (0.0, Level.OK)


@pytest.mark.asyncio
async def test_users_are_told_once_of_each_level_of_a_month(store: Store) -> None:
    epoch = await epoch_of(store)
    job = await placed(store, epoch, 1, "alice", 1)
    await put(store, Scope("alice"), "1")
    new = NewEvent("job.budget", {"text": "soon"})

    async def told(at: timedelta) -> bool:
        (each,) = await store.budgets.uses(BEGUN + at)
        return await store.budgets.tell(each, [job.uid], new, BEGUN, epoch)

    assert [await told(HOUR * 0.9) for _ in range(2)] == [True, False]
    assert [await told(HOUR) for _ in range(2)] == [True, False]
    assert not await told(HOUR * 0.9), "it was at a higher level already"
    stale: BudgetUse = (await store.budgets.uses(BEGUN + HOUR))[0]
    await store.budgets.put(budget(Scope("alice"), "2", changed_at=BEGUN + HOUR), ACT, keep_since=True)
    assert not await store.budgets.tell(stale, [job.uid], new, BEGUN, epoch), "it was changed meanwhile"
    assert await told(HOUR * 1.9)
    assert await told(4 * HOUR), "of the next month"
    with pytest.raises(Fenced):
        await store.budgets.tell(stale, [job.uid], new, BEGUN, epoch - 1)
    events = [each for each in await store.events.of_job(job.uid) if each.type == "job.budget"]
    assert len(events) == 4


@pytest.mark.asyncio
async def test_there_are_not_too_many(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MOST", 1)
    await put(store, Scope("alice"))
    await put(store, Scope("alice"), "20")
    with pytest.raises(InvalidParameters, match="1 budgets, which is the limit"):
        await put(store, Scope("bob"))
