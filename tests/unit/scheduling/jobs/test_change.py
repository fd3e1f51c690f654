"""What another configuration does to jobs that run and to jobs that wait."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

import pytest

from pai_backend.lifecycle.events import Displaced, Placed, Unreserved, Waiting
from pai_backend.lifecycle.history import claims_told
from pai_backend.lifecycle.step import stepped
from pai_backend.model.change import ClusterChange, JobEffect
from pai_backend.model.job import Job
from pai_backend.model.node import Placement
from pai_backend.model.spec import PriorityClass
from pai_backend.scheduling.config.model import ClusterConfig
from pai_backend.scheduling.config.read import read_config
from pai_backend.scheduling.jobs.change import Queued, in_order, preview, rebuilt
from pai_backend.scheduling.queue import Cap, Policy
from pai_backend.testing.builders import T0, make_job, make_placement, make_role, make_spec, make_uid
from tests.support.lab_config import ONE_VC
from tests.support.scripted_engine import lab_node

HARDWARE = ONE_VC.partition("virtualClusters")[0]
NODES = [lab_node("carol"), lab_node("dan")]


def quotas(**owned: int) -> ClusterConfig:
    """Two nodes of one kind, so many for each virtual cluster."""
    lines = [f"  {vc}: {{virtualCells: [{{cellType: GPU-NODE, cellNumber: {n}}}]}}" for vc, n in owned.items()]
    return read_config("\n".join([f"{HARDWARE}virtualClusters:", *lines]))


def job(
    number: int,
    vc: str,
    *,
    tasks: int = 1,
    gang: bool = True,
    gpu_type: str | None = None,
    priority: PriorityClass | None = None,
) -> Job:
    """A job that was submitted in the second of its number."""
    roles = [make_role(instances=tasks, gpus=1)]
    spec = make_spec(f"job{number}", roles=roles, virtual_cluster=vc, gang=gang, gpu_type=gpu_type, priority=priority)
    at = T0 + timedelta(seconds=number)
    return make_job(spec.name, uid=make_uid(number), spec=spec, submitted_at=at)


def place(node: str) -> Placement:
    """The one cell of a node."""
    cell = {"gpus": (0,), "cells": (0,), "chain": "GPU-NODE", "owned": "GPU-NODE"}
    return make_placement(node).model_copy(update=cell)


def on(waiting: Job, *nodes: str) -> Job:
    """The job with a task on each of these nodes."""
    places = {task.uid: place(node) for task, node in zip(waiting.tasks, nodes, strict=True)}
    return stepped(waiting, Placed(places), T0)


def kept(waiting: Job, node: str) -> Job:
    """The job with the cell of a node kept for it."""
    return stepped(waiting, Waiting("kept", {waiting.tasks[0].uid: place(node)}), T0)


def change(
    before: ClusterConfig | None, after: ClusterConfig, running: Sequence[Job], waiting: Sequence[Job] = ()
) -> ClusterChange:
    jobs = [*running, *waiting]
    queued = in_order(Queued(each, each.tasks) for each in waiting)
    return preview(lambda: rebuilt(before, NODES, jobs), after, jobs, queued)


def names(effects: Sequence[JobEffect]) -> list[str]:
    return [each.job.partition("~")[2] for each in effects]


def test_the_later_job_loses_the_quota_that_goes_and_regains_one_that_comes_back() -> None:
    first, second = on(job(1, "default"), "carol"), on(job(2, "default"), "dan")
    told = change(quotas(default=2), quotas(default=1, vc1=1), [second, first])
    assert (names(told.lost), told.regained, told.concerns) == (["job2"], (), True)
    displaced = stepped(second, Displaced((second.tasks[0].uid,), displaced=True), T0)
    told = change(quotas(default=1, vc1=1), quotas(default=2), [first, displaced])
    assert (told.lost, names(told.regained)) == ((), ["job2"])


def test_who_keeps_everything_is_not_concerned() -> None:
    told = change(quotas(default=2), quotas(default=1, vc1=1), [on(job(1, "default"), "carol")])
    assert not told.concerns
    assert told.differs


def test_tasks_of_one_job_are_one_effect_with_all_their_cells() -> None:
    both = on(job(1, "default", tasks=2, gang=False), "carol", "dan")
    (effect,) = change(quotas(default=2), quotas(vc1=2), [both]).lost
    assert (effect.gpus, len(effect.groups)) == (2, 2)


def test_who_runs_on_a_node_that_is_described_no_longer_is_told() -> None:
    text = HARDWARE.replace("    - {cellType: GPU-NODE, cellAddress: dan}\n", "")
    after = read_config(text + "virtualClusters:\n  default: {virtualCells: [{cellType: GPU-NODE, cellNumber: 1}]}")
    told = change(quotas(default=2), after, [on(job(1, "default"), "carol"), on(job(2, "default"), "dan")])
    assert [(each.job.partition("~")[2], each.gpus) for each in told.missing] == [("job2", 1)]
    assert told.removed_nodes == ("dan",)


def test_a_reservation_is_dropped() -> None:
    victim = on(job(1, "vc1"), "dan")
    keeps = kept(job(2, "vc1", priority=PriorityClass.CRIT), "dan")
    told = change(quotas(default=1, vc1=1), quotas(default=0, vc1=2), [victim, keeps])
    assert (names(told.dropped), told.lost) == (["job2"], ())


def test_a_waiting_job_starts_when_there_is_room_for_it_and_only_if_the_change_makes_it() -> None:
    runs = on(job(1, "default"), "carol")
    blocked, free = job(2, "vc1"), job(3, "default")
    told = change(quotas(default=2, vc1=0), quotas(default=1, vc1=1), [runs], [free, blocked])
    assert names(told.starts) == ["job2"]
    assert told.concerns


def test_of_two_that_could_start_the_one_that_is_served_first_does() -> None:
    early, late = job(2, "vc1"), job(3, "vc1")
    told = change(quotas(default=1, vc1=0), quotas(default=1, vc1=1), [], [late, early])
    assert names(told.starts) == ["job2"]


def test_a_cap_counts_in_a_plan_as_it_does_in_the_queue() -> None:
    before, after, waits = quotas(default=2, vc1=0), quotas(default=1, vc1=1), job(1, "vc1")
    for policy, starting in ((Policy(), ["job1"]), (Policy(user=Cap(tasks=0)), [])):
        copy = partial(rebuilt, before, NODES, [waits], policy=policy)
        assert names(preview(copy, after, [waits], [Queued(waits, waits.tasks)]).starts) == starting


@pytest.mark.parametrize(
    ("waits", "said"),
    [
        (job(1, "vc1"), "there is no virtual cluster vc1"),
        (job(1, "default", tasks=2), "requests 2 SKUs, which exceeds the maximum of 1 SKUs in VC default"),
        (job(1, "default", gpu_type="GPU"), ""),
        (job(1, "default", gpu_type="V100"), "there are no cells of type V100"),
    ],
    ids=["no virtual cluster", "quota too small", "still possible", "never was"],
)
def test_a_waiting_job_that_could_never_start_is_told_with_the_reason(waits: Job, said: str) -> None:
    told = change(quotas(default=2, vc1=0), quotas(default=1, vc2=1), [], [waits])
    assert [said in each.message for each in told.impossible] == ([True] if said else [])
    assert told.concerns is any(not each.already for each in (*told.impossible, *told.starts))
    if "V100" in said:
        assert told.impossible[0].already
        assert not told.concerns


def test_claims_are_told_as_far_as_the_news_changed_them() -> None:
    runs = on(job(1, "default"), "carol")
    uid = runs.tasks[0].uid
    lost = Displaced((uid,), displaced=True, config=4)
    after = stepped(runs, lost, T0)
    (event,) = claims_told(runs, after, [lost])
    assert event.type == "job.claim"
    assert event.payload == {"change": "lost", "tasks": [f"{runs.tasks[0].role}-0"], "config": 4}
    assert claims_told(after, stepped(after, lost, T0), [lost]) == []
    waits, news = kept(job(2, "default"), "dan"), Unreserved(5)
    gone = stepped(waits, news, T0)
    assert gone.tasks[0].reserved is None
    assert [each.payload["change"] for each in claims_told(waits, gone, [news])] == ["unreserved"]
    assert claims_told(gone, stepped(gone, news, T0), [news]) == []
