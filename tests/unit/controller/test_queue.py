"""The queue as the controller works it: caps, patience, turns, and who is told what."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from pai_backend.model.job import Job, Phase, State
from pai_backend.model.spec import JobSpec, TaskRole
from pai_backend.model.waiting import Cause
from pai_backend.scheduling.jobs.reorder import Move, Side
from pai_backend.scheduling.queue import Cap, Patience, Policy, VcCaps
from pai_backend.testing.builders import make_role, make_spec
from tests.support.lab_config import both_types, one_vc, two_vcs
from tests.support.scripted_cluster import Cluster, cluster, controlled, opened
from tests.support.scripted_engine import ScriptedEngine, lab_node
from tests.unit.controller.test_explaining import explained
from tests.unit.controller.test_preemption import PROD, TEST, Reluctant, job_in


def of_type(name: str, kind: str) -> TaskRole:
    return make_role(name, gpus=1).model_copy(update={"sku_type": kind})


PAIR = (of_type("a", "GPU-C"), of_type("b", "GPU-D"))


async def told(lab: Cluster, spec: JobSpec) -> Job:
    """A submitted job once it has been told why it waits."""
    return await lab.until((await lab.submit(spec)).uid, lambda now: bool(now.why))


def on_cpu(cpus: int = 1, tasks: int = 1) -> JobSpec:
    return make_spec(roles=[make_role(instances=tasks, cpus=cpus)])


@pytest.mark.asyncio
async def test_a_user_at_a_cap_waits_though_there_is_room_and_starts_in_turn(tmp_path: Path) -> None:
    async with cluster(tmp_path, config=one_vc(), policy=Policy(user=Cap(gpus=1))) as lab:
        first = await lab.running(await lab.submit(job_in("default", PROD)))
        second = await told(lab, job_in("default", PROD))
        assert second.why == "user alice may run at most 1 GPUs at once; running now: 1 tasks, 1 GPUs"
        asked = await explained(lab, second)
        assert asked.cause is Cause.CAP
        assert asked.cap is not None
        assert (asked.cap.user, asked.cap.gpus, asked.cap.running_gpus) == ("alice", 1, 1)
        await lab.engine.exit(first.tasks[0].uid, 0)
        await lab.running(second)


@pytest.mark.asyncio
async def test_tasks_without_gpu_count_under_caps_of_their_virtual_cluster_too(tmp_path: Path) -> None:
    """Without configured cells, too, where all virtual clusters share the nodes."""
    policy = Policy(vcs={"vc1": VcCaps(total=Cap(tasks=1))})
    async with cluster(tmp_path, policy=policy) as lab:
        capped = on_cpu().model_copy(update={"virtual_cluster": "vc1"})
        first = await lab.running(await lab.submit(capped))
        second = await told(lab, capped)
        assert "all users together in virtual cluster vc1 may run at most 1 tasks at once" in second.why
        assert (await explained(lab, second)).cause is Cause.CAP
        await lab.running(await lab.submit(on_cpu()))
        await lab.engine.exit(first.tasks[0].uid, 0)
        await lab.running(second)


@pytest.mark.asyncio
async def test_a_gang_that_was_overtaken_often_enough_has_gpus_kept_until_it_starts(tmp_path: Path) -> None:
    policy = Policy(patience=Patience(overtaken=1))
    async with cluster(tmp_path, config=one_vc(), policy=policy) as lab:
        first = await lab.running(await lab.submit(job_in("default", TEST)))
        gang = await told(lab, job_in("default", TEST, tasks=2))
        overtakes = await lab.running(await lab.submit(job_in("default", TEST)))
        later = await told(lab, job_in("default", TEST))
        await lab.engine.exit(first.tasks[0].uid, 0)
        until = f"has GPUs reserved, and starts when these have ended: {overtakes.id}"
        await lab.until(gang.uid, lambda now: now.why == until)
        asked = await explained(lab, gang)
        assert (asked.cause, [holder.group for holder in asked.holders]) == (Cause.KEPT, [overtakes.id])
        assert (await lab.store.jobs.get(later.uid)).state is State.WAITING
        await lab.engine.exit(overtakes.tasks[0].uid, 0)
        await lab.running(gang)
        assert (await lab.store.jobs.get(later.uid)).state is State.WAITING


@pytest.mark.asyncio
async def test_what_starts_without_gpus_does_so_in_order_and_past_what_does_not_fit(tmp_path: Path) -> None:
    async with cluster(tmp_path, lab_node("carol", cpus=4)) as lab:
        first = await lab.running(await lab.submit(on_cpu(3)))
        large, small = await told(lab, on_cpu(3)), await told(lab, on_cpu(2))
        await lab.running(await lab.submit(on_cpu(1)))
        await lab.engine.exit(first.tasks[0].uid, 0)
        await lab.running(large)
        assert (await lab.store.jobs.get(small.uid)).state is State.WAITING


@pytest.mark.asyncio
async def test_a_job_whose_turn_is_moved_starts_in_its_new_turn(tmp_path: Path) -> None:
    async with cluster(tmp_path, config=two_vcs()) as lab:
        first = await lab.running(await lab.submit(job_in("vc1", PROD)))
        early, late = await told(lab, job_in("vc1", PROD)), await told(lab, job_in("vc1", PROD))
        await lab.store.jobs.request_move(
            Move(late.uid, Side.BEFORE, early.uid, "alice"), "alice", datetime.now(UTC), shared=False
        )
        written = (await lab.store.jobs.get(late.uid)).version
        await lab.until(
            late.uid, lambda now: now.version >= max(written, late.version + 2)
        )  # the controller heard of it
        assert (await explained(lab, late)).position == 1
        await lab.engine.exit(first.tasks[0].uid, 0)
        await lab.running(late)
        assert (await lab.store.jobs.get(early.uid)).state is State.WAITING


@pytest.mark.asyncio
async def test_only_those_whose_answer_changed_are_written(tmp_path: Path) -> None:
    """Of three alike the first is asked for all; each is told once, and not again when another takes its turn."""
    async with cluster(tmp_path, config=two_vcs()) as lab:
        first = await lab.running(await lab.submit(job_in("vc1", PROD)))
        queued = [await told(lab, job_in("vc1", PROD)) for _ in range(3)]
        await lab.engine.exit(first.tasks[0].uid, 0)
        second = await lab.running(queued[0])
        again = await lab.until(queued[1].uid, lambda now: second.id in now.why)
        assert again.version == queued[1].version + 1
        assert (await lab.store.jobs.get(queued[2].uid)).version == queued[2].version


@pytest.mark.asyncio
async def test_a_gang_of_several_kinds_of_gpus_starts_whole_or_not_at_all(tmp_path: Path) -> None:
    """Two gangs want both of the two machines: one after the other has both."""
    async with cluster(tmp_path, config=both_types()) as lab:
        single = await lab.running(await lab.submit(make_spec(roles=PAIR[1:])))
        gangs = [await told(lab, make_spec(roles=PAIR)) for _ in range(2)]
        assert all({task.phase for task in gang.tasks} == {Phase.QUEUED} for gang in gangs)
        await lab.engine.exit(single.tasks[0].uid, 0)
        winner = await lab.running(gangs[0])
        assert sorted(task.placement.node for task in winner.tasks if task.placement) == ["carol", "dan"]
        waits = await lab.store.jobs.get(gangs[1].uid)
        assert ({task.phase for task in waits.tasks}, [task.reserved for task in waits.tasks]) == (
            {Phase.QUEUED},
            [None, None],
        )
        for task in winner.tasks:
            await lab.engine.exit(task.uid, 0)
        await lab.running(gangs[1])


@pytest.mark.asyncio
async def test_a_gang_of_several_kinds_runs_on_none_while_others_are_stopped_for_a_part(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        engine = Reluctant()
        async with controlled(store, engine, config=both_types()):
            lab = Cluster(store, engine)
            low = await lab.running(await lab.submit(make_spec(roles=PAIR[1:], priority=TEST)))
            gang = await lab.submit(make_spec(roles=PAIR, priority=PROD))
            await engine.asked_to_stop(low.tasks[0].uid)
            kept = await store.jobs.get(gang.uid)
            assert [task.placement for task in kept.tasks] == [None, None]
            assert sorted(task.reserved.node for task in kept.tasks if task.reserved) == ["carol", "dan"]
        engine.asked.clear()
        async with controlled(store, engine, config=both_types()):
            await engine.asked_to_stop(low.tasks[0].uid)
            await engine.exit(low.tasks[0].uid, signal=15, reason="stopped")
            await lab.running(gang)


@pytest.mark.asyncio
async def test_a_waiting_job_outlives_the_nodes_that_it_waits_for(tmp_path: Path) -> None:
    """Its type goes with its node, and comes back with it."""
    async with opened(tmp_path) as store:
        engine = ScriptedEngine(lab_node("carol"))
        async with controlled(store, engine):
            lab = Cluster(store, engine)
            first = await lab.running(await lab.submit(make_spec(roles=[make_role(gpus=1)], gpu_type="TITANX")))
            second = await told(lab, make_spec(roles=[make_role(gpus=1)], gpu_type="TITANX"))
            engine.hide("carol")
            gone = await lab.until(second.uid, lambda now: "no node has a GPU" in now.why)
            assert gone.why == "no node has a GPU of type TITANX; there is no GPU at all"
            engine.show(lab_node("carol"))
            await lab.until(second.uid, lambda now: "in use" in now.why)
            await engine.exit(first.tasks[0].uid, 0)
            await lab.running(second)
