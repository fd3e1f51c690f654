"""Who uses and who waits for what, counted on small clusters."""

from __future__ import annotations

from pai_backend.model.job import Job, Phase, State
from pai_backend.model.node import Gpu, Node
from pai_backend.model.spec import PriorityClass
from pai_backend.scheduling import Ledger, read_config
from pai_backend.scheduling.jobs.demand import Sizing, sizing_of
from pai_backend.scheduling.jobs.usage import CellsUse, ClusterUse, use_of_clusters, use_of_nodes
from pai_backend.testing.builders import make_job, make_placement, make_role, make_spec, make_uid
from tests.unit.scheduling.core.clusters import POOL, cluster, group, place, preempt

PINNED = """
physicalCluster:
  cellTypes:
    NODE: {childCellType: GPU, childCellNumber: 4, isNodeLevel: true}
  physicalCells:
    - {cellType: NODE, cellAddress: n0}
    - {cellType: NODE, cellAddress: n1, pinnedCellId: DEBUG}
virtualClusters:
  a: {virtualCells: [{cellType: NODE, cellNumber: 1}], pinnedCells: [{pinnedCellId: DEBUG}]}
"""


def used(cells: Ledger, *jobs: Job, sizing: Sizing | None = None) -> dict[str, ClusterUse]:
    names = list(cells.config.virtual_clusters)
    return {each.name: each for each in use_of_clusters(cells, sizing or sizing_of(cells.config), names, jobs)}


def counts(use: CellsUse) -> tuple[int, int, int, int, int, int]:
    return use.owned, use.guaranteed, use.opportunistic, use.reserved, use.bad, use.free


def job(number: int, vc: str, *, priority: PriorityClass | None = None, user: str = "ann", gpus: int = 1) -> Job:
    spec = make_spec(roles=[make_role(gpus=gpus)], virtual_cluster=vc, priority=priority)
    return make_job(f"job{number}", uid=make_uid(number), user=user, spec=spec)


def running(waiting: Job, gpus: int) -> Job:
    place = make_placement("n0", gpus=range(gpus))
    tasks = [task.model_copy(update={"placement": place, "phase": Phase.RUNNING}) for task in waiting.tasks]
    return waiting.model_copy(update={"tasks": tuple(tasks), "state": State.RUNNING, "phase": Phase.RUNNING})


def test_use_counts_on_the_owners_quota_or_for_whoever_has_no_claim() -> None:
    cells = cluster(POOL)
    place(cells, group("ann~own/default", "a", (2, 4)))
    place(cells, group("bob~guest/default", "b", (2, 2), priority=-1))
    found = used(cells)
    assert found["a"].cells[0].shapes == {"NODE": 3}
    assert counts(found["a"].cells[0]) == (12, 8, 0, 0, 0, 4)
    assert counts(found["b"].cells[0]) == (4, 0, 4, 0, 0, 4)


def test_what_is_kept_for_a_preemptor_is_neither_used_nor_free() -> None:
    cells = cluster(POOL)
    place(cells, group("bob~low/default", "b", (1, 4)))
    preempt(cells, group("bob~high/default", "b", (1, 4), priority=100))
    (use,) = used(cells)["b"].cells
    assert (use.reserved, use.free) == (4, 0)


def test_a_group_that_lost_its_claim_runs_on_as_opportunistic() -> None:
    cells = cluster(POOL)
    place(cells, group("bob~lazy/default", "b", (1, 4), lazy=True))
    place(cells, group("bob~high/default", "b", (1, 4), priority=100))
    use = used(cells, running(job(1, "b"), 1))["b"]
    assert counts(use.cells[0]) == (4, 4, 4, 0, 0, 0)


def test_cells_that_cannot_be_had_in_health_are_not_free() -> None:
    cells = cluster(POOL)
    for name in ("n0", "n1"):
        cells.set_node_health(name, healthy=False)
    found = used(cells)
    assert [counts(found[name].cells[0]) for name in "ab"] == [(12, 0, 0, 0, 4, 8), (4, 0, 0, 0, 0, 4)]


def test_pinned_cells_are_counted_by_themselves() -> None:
    cells = Ledger(read_config(PINNED))
    place(cells, group("ann~one/default", "a", (1, 2)))
    own, pinned = used(cells)["a"].cells
    assert (own.pinned_id, counts(own)) == ("", (4, 2, 0, 0, 0, 2))
    assert (pinned.pinned_id, counts(pinned)) == ("DEBUG", (4, 0, 0, 0, 0, 4))


def test_jobs_wait_in_line_by_priority_then_turn() -> None:
    first, urgent, guest, runs = (
        job(1, "a"),
        job(2, "a", priority=PriorityClass.CRIT),
        job(3, "b", priority=PriorityClass.OPPO),
        running(job(4, "a"), 1),
    )
    found = used(cluster(POOL), first, urgent, guest, runs)
    assert [(each.job.id, each.position, each.waiting) for each in found["a"].waiting] == [
        ("ann~job2", 1, 2),
        ("ann~job1", 2, 2),
    ]
    assert [(each.job.id, each.position, each.waiting) for each in found["b"].waiting] == [("ann~job3", 1, 1)]
    assert [(each.job.id, each.tasks, each.gpus) for each in found["a"].running] == [("ann~job4", 1, 1)]


def test_nodes_tell_what_is_in_use_and_what_is_broken() -> None:
    cells = cluster(POOL)
    gpus = tuple(Gpu(index=index, type="GPU") for index in range(4))
    whole, torn, away = (
        Node(name=name, address="h", machine=name, cpus=8, memory_mb=1024, gpus=gpus, ready=name != "n2")
        for name in ("n0", "n1", "n2")
    )
    cells.set_node_health("n1", healthy=True, bad_devices=[3])
    found = use_of_nodes(cells, sizing_of(cells.config), [away, torn, whole], [running(job(1, "a", gpus=2), 2)])
    assert [(each.node.name, each.gpus, each.bad, each.cpus, each.memory_mb) for each in found] == [
        ("n0", 2, 0, 1, 100),
        ("n1", 0, 1, 0, 0),
        ("n2", 0, 4, 0, 0),
    ]
