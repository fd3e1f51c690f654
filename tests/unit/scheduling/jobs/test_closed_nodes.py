"""Where jobs are placed when nodes have labels and taints, and what is said when none suits."""

from __future__ import annotations

from datetime import UTC, datetime

from pai_backend.model.job import Job
from pai_backend.model.spec import PriorityClass
from pai_backend.model.waiting import ChangeKind
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.jobs.why import why
from pai_backend.testing.builders import make_job, make_role, make_spec, make_uid
from tests.support.job_queue import placed, refused, served
from tests.support.marked_nodes import cordoned, node, placer, tolerating

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def job(number: int, tasks: int = 1, gpus: int = 1, cpus: int = 1, kind: str = "", oppo: bool = False) -> Job:
    roles = [make_role(instances=tasks, gpus=gpus, cpus=cpus)]
    spec = make_spec(roles=roles, priority=PriorityClass.OPPO if oppo else None, gpu_type=kind or None)
    return make_job(f"job{number}", uid=make_uid(number), spec=spec)


def nodes_of(cells: Placer, of: Job) -> list[str]:
    return [place.node for place in placed(cells, of).values()]


def test_tasks_of_a_sku_go_where_their_rule_says_and_all_others_stay_away() -> None:
    cells = placer(
        node("a", "gpu=big:NoSchedule", gpus=2, pool="big"),
        node("b", gpus=1, kind="T4"),
        V100=tolerating("gpu", pool="big"),
    )
    assert nodes_of(cells, job(1, kind="V100")) == ["a"]
    assert nodes_of(cells, job(2, kind="T4")) == ["b"]
    assert nodes_of(cells, job(3)) == ["a"], "a task of any type keeps to the rule of the cells that it gets"
    assert refused(cells, job(4, gpus=0, cpus=16)).message.startswith("a task needs 16 CPU")


def test_no_task_of_a_gang_lies_on_a_closed_node() -> None:
    cells = placer(node("a", "x:NoSchedule", gpus=4), node("b", gpus=2), cordoned(node("c", gpus=4)), node("d", gpus=2))
    assert sorted(nodes_of(cells, job(1, tasks=4))) == ["b", "b", "d", "d"]
    assert refused(cells, job(2, tasks=2)).message == (
        "waits for 2 V100 GPU for 2 tasks at once: it may not use a (taint x:NoSchedule), c (cordoned)"
    ).replace("V100 ", "")


def test_nodes_that_are_full_are_told_apart_from_those_that_are_closed() -> None:
    cells = placer(node("a", "x:NoSchedule"), node("b", cpus=2), node("c").model_copy(update={"ready": False}))
    assert refused(cells, job(1, cpus=4)).message == (
        "waits for 1 GPU: it may not use a (taint x:NoSchedule); nodes not ready: c; "
        "too little CPU or memory, or a port in use, on b"
    )
    assert refused(cells, job(2, gpus=0, cpus=4)).message == "node c is not ready: "


def test_nobody_is_ended_on_a_node_that_the_preemptor_may_not_use() -> None:
    cells = placer(node("a", "x:NoSchedule", gpus=1), V100=tolerating("x"))
    assert nodes_of(cells, job(1, kind="V100", oppo=True)) == ["a"]
    cells.set_node(cordoned(node("a", "x:NoSchedule", gpus=1)))
    found = served(cells, job(2, kind="V100"))
    assert (found.started, found.kept, cells.preemptions()) == ((), (), [])


def test_a_place_that_is_kept_is_given_up_when_its_node_was_closed_meanwhile() -> None:
    cells = placer(node("a", gpus=1), node("b", gpus=1))
    weak = {nodes_of(cells, each)[0]: each for each in (job(1, oppo=True), job(2, oppo=True))}
    strong = job(3)
    (kept,) = served(cells, strong).kept
    (closed,) = (place.node for place in cells.places(kept).values())
    (open_,) = weak.keys() - {closed}
    cells.set_node(cordoned(node(closed, gpus=1)))
    cells.keep_only(weak[closed].uid, ())
    (moved,) = served(cells, strong).kept
    assert [place.node for place in cells.places(moved).values()] == [open_]
    cells.keep_only(weak[open_].uid, ())
    assert nodes_of(cells, strong) == [open_]


def test_a_task_without_cells_takes_nodes_last_that_are_better_left_alone() -> None:
    cells = placer(
        node("a", "spare:PreferNoSchedule", gpus=0, cpus=2),
        node("b", gpus=1, cpus=2),
        node("c", gpus=0, cpus=2),
    )
    assert [nodes_of(cells, job(number, gpus=0, cpus=2)) for number in range(1, 4)] == [["c"], ["b"], ["a"]]
    tolerant = placer(
        node("a", "spare:PreferNoSchedule", gpus=0),
        node("b", gpus=0),
        without_cells=tolerating("spare"),
    )
    assert nodes_of(tolerant, job(1, gpus=0)) == ["a"]


def test_a_change_of_nodes_that_is_told_really_starts_the_job() -> None:
    closed = [node("a", "x:NoSchedule", gpus=1), cordoned(node("b", gpus=1))]
    cells = placer(*closed)
    waiting = job(1)
    served(cells, waiting)
    told = why(cells, waiting.uid, NOW)
    assert told is not None
    assert [(change.kind, change.nodes) for change in told.changes] == [
        (ChangeKind.TOLERATE, ("a",)),
        (ChangeKind.UNCORDON, ("b",)),
    ]
    assert nodes_of(placer(node("b", gpus=1), closed[0]), waiting) == ["b"]
    assert nodes_of(placer(*closed, V100=tolerating("x")), waiting) == ["a"]
    two = job(2, tasks=2)
    both = placer(*closed)
    served(both, two)
    again = why(both, two.uid, NOW)
    assert again is not None
    assert ChangeKind.TOLERATE not in [change.kind for change in again.changes], "one of two nodes is not enough"
