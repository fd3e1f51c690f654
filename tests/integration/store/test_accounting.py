"""Hours, users of a provider and holders of nodes, on both databases."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pai_backend.model.account import Account
from pai_backend.model.accounting import HOUR_US, By, Total
from pai_backend.model.errors import Forbidden
from pai_backend.model.job import Job, Phase
from pai_backend.model.node import Others, Placement
from pai_backend.store.base import Conflict
from pai_backend.store.external_users import ExternalUser
from pai_backend.store.grants import Act
from pai_backend.store.sql import Store
from pai_backend.testing.builders import T0, make_job, make_role, make_spec, make_uid

HOUR = timedelta(hours=1)
PLACE = Placement(node="n", address="127.0.0.1", machine="m", gpus=(0, 1), gpu_type="V100", owned="quota")


@pytest.mark.asyncio
async def test_hours_count_once_and_only_what_was_saved(store: Store, other_store: Store) -> None:
    lease = await store.leadership.acquire("one", 3600, T0, force=True)
    assert lease is not None
    spec = make_spec("train", roles=[make_role(instances=2, cpus=3, gpus=2)])
    job = await store.jobs.submit(make_job("train", uid=make_uid(1), spec=spec), b"", "", "", [])

    def after(*phases: Phase) -> Job:
        tasks = tuple(
            task.model_copy(update={"phase": phase, "placement": PLACE})
            for task, phase in zip(job.tasks, phases, strict=True)
        )
        return job.model_copy(update={"tasks": tasks})

    first = job
    for hour, phases in enumerate([(Phase.RUNNING, Phase.QUEUED), (Phase.KEPT, Phase.RUNNING), (Phase.ENDED,) * 2]):
        saved = after(*phases)
        job = await store.jobs.save(saved, seen=job, epoch=lease.epoch, events=[], at=T0 + hour * HOUR)
        with pytest.raises(Conflict):
            await store.jobs.save(saved, seen=first, epoch=lease.epoch, events=[], at=T0)
    found = await other_store.accounting.totals([By.USER, By.GPU_TYPE, By.QUOTA], T0 - HOUR, T0 + 9 * HOUR)
    assert found == {("alice", "V100", "guaranteed"): Total(6 * HOUR_US, 9 * HOUR_US, 2)}
    assert await store.accounting.totals([], T0, T0 + 9 * HOUR, ["bob"], ["other"]) == {}
    assert (await store.accounting.totals([], T0, T0 + HOUR, ["bob"], ["default"]))[()].gpu_us == 2 * HOUR_US


@pytest.mark.asyncio
async def test_a_user_of_a_provider_stays_the_same_person(store: Store) -> None:
    act = Act("ann", T0, "10.0.0.7")
    ann = ExternalUser("ann", "https://provider.example", "1", frozenset(), admin=True)
    for _ in range(2):
        await store.external_users.come(ann, act, take_names=False)
    assert [(each.name, each.admin) for each in (await store.groups.directory()).users] == [("ann", True)]
    with pytest.raises(Forbidden, match="another person"):
        await store.external_users.come(ExternalUser("ann", ann.issuer, "2"), act, take_names=True)
    elsewhere = ExternalUser("ann", "https://hub.example/hub/api", "ann")
    with pytest.raises(Forbidden, match="has not come from the provider"):
        await store.external_users.come(elsewhere, act, take_names=False)
    for take_names in (True, False):
        await store.external_users.come(elsewhere, act, take_names=take_names)
    await store.external_users.come(ExternalUser("ann", ann.issuer, "1", None, admin=False), act, take_names=False)
    assert await store.grants.all_admins() == frozenset()
    await store.grants.remove_user("ann", act)
    await store.grants.add_user(Account("ann"), act, again=True)
    with pytest.raises(Forbidden, match="has not come from the provider"):
        await store.external_users.come(ExternalUser("ann", ann.issuer, "2"), act, take_names=False)
    await store.external_users.come(ExternalUser("ann", ann.issuer, "2"), act, take_names=True)


@pytest.mark.asyncio
async def test_what_others_hold_is_what_was_written_last(store: Store, other_store: Store) -> None:
    held = Others(cpus=4, memory_mb=3_000_000_000, gpus=2)
    for found in ({"carol": held}, {"carol": held, "dan": Others(gpus=1)}, {"dan": Others(gpus=1)}, {}):
        await store.other_holders.put(found)
        assert await other_store.other_holders.get() == found
