"""Where tasks go beside pods of others, which hold GPUs, CPUs and memory that no cell knows of."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pai_backend.model.job import Job
from pai_backend.model.node import Gpu, Node, Others
from pai_backend.model.spec import PriorityClass, Resources
from pai_backend.model.waiting import Cause, Lack, LackOf
from pai_backend.scheduling.config.read import read_config
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.jobs.why import why
from pai_backend.testing.builders import T0, make_job, make_role, make_spec, make_uid
from tests.support.cell_laws import audit
from tests.support.job_queue import placed, refused, served
from tests.support.scripted_engine import lab_node

PROD, TEST = PriorityClass.PROD, PriorityClass.TEST


def node(name: str, **held: int) -> Node:
    """One of 4 GPUs and 8 CPUs, of which others hold so many."""
    return lab_node(name, gpus=4, cpus=8).model_copy(update={"others": Others.model_validate(held)})


def placer(*nodes: Node) -> Placer:
    made = Placer()
    for each in nodes:
        made.set_node(each)
    made.catch_up()
    return made


def job(
    number: int, *, gpus: int = 1, tasks: int = 1, cpus: int = 1, memory_mb: int = 100, priority: PriorityClass = PROD
) -> Job:
    role = make_role(instances=tasks).model_copy(
        update={"resources": Resources(gpus=gpus, cpus=cpus, memory_mb=memory_mb)}
    )
    spec = make_spec(roles=[role], priority=priority)
    return make_job(f"job{number}", uid=make_uid(number), spec=spec, submitted_at=T0 + timedelta(seconds=number))


def nodes_of(made: Placer, wanted: Job) -> list[str]:
    return sorted(place.node for place in placed(made, wanted).values())


@pytest.mark.parametrize(
    "held", [{"gpus": 4}, {"gpus": 3}, {"cpus": 7}, {"memory_mb": 10**9}], ids=["all", "too many", "cpus", "memory"]
)
def test_a_task_goes_where_others_have_left_room(held: dict[str, int]) -> None:
    made = placer(node("a", **held), node("b"))
    assert nodes_of(made, job(1, gpus=2, cpus=2, memory_mb=1000)) == ["b"]
    audit(made.ledger)


def test_gpus_that_others_hold_are_not_given_twice() -> None:
    made = placer(node("a", gpus=3))
    first, second = job(1), job(2)
    assert [nodes_of(made, each) for each in (first, second)] == [["a"], []]
    made.keep_only(first.uid, ())
    assert nodes_of(made, second) == ["a"]


def test_a_gang_is_placed_whole_beside_others_or_not_at_all() -> None:
    made = placer(node("a", gpus=2), node("b", gpus=1), node("c", gpus=3))
    gang, small = job(1, gpus=2, tasks=3), job(2, gpus=2, tasks=2)
    assert nodes_of(made, gang) == []
    assert [made.room.free(name)[2] for name in "abc"] == [2, 3, 1], "what did not start holds nothing"
    made.forget(gang.uid)
    assert nodes_of(made, small) == ["a", "b"]
    made.set_node(node("a", gpus=4))
    assert len(made.ledger.groups) == 1, "who runs stays, whatever others take"


def test_a_lower_priority_makes_way_only_where_that_is_enough() -> None:
    made = placer(node("a", gpus=2))
    lower = job(1, gpus=2, priority=TEST)
    assert nodes_of(made, lower) == ["a"]
    served(made, job(2, gpus=3))
    assert list(made.preemptions()) == [], "others hold too much, whoever ends"
    higher = job(3, gpus=2)
    served(made, higher)
    assert [each.job for each in made.preemptions()] == [lower.uid]
    made.keep_only(lower.uid, ())
    assert nodes_of(made, higher) == ["a"]
    audit(made.ledger)


def test_who_waits_for_others_starts_when_they_leave_and_says_why_it_waits() -> None:
    made = placer(node("a", gpus=2))
    waits = job(1, gpus=3, cpus=3)
    said = refused(made, waits).message
    assert said == "waits for 3 GPU: GPUs held by pods that are not of this backend on a (2)"
    found = why(made, waits.uid, T0)
    assert found is not None
    assert (found.cause, found.lacks) == (
        Cause.LINEAR,
        (Lack(node="a", what=LackOf.GPU, needed=3, available=2, others=2),),
    )
    made.set_node(node("a", cpus=6))
    served(made, waits)
    found = why(made, waits.uid, T0)
    assert found is not None
    assert found.lacks == (Lack(node="a", what=LackOf.CPU, needed=3, available=2, others=6),)
    made.set_node(node("a"))
    assert nodes_of(made, waits) == ["a"]


def sliced(name: str, **held: int) -> Node:
    """A node of 2 whole GPUs and 3 slices, of which others hold so many."""
    slices = tuple(Gpu(index=1000 + index, type="MIG", simulated=True) for index in range(3))
    by_type = {"TITANX": 0, "MIG": 0, **held}
    others = Others(gpus=sum(held.values()), by_type=by_type if held else {})
    whole = lab_node(name, gpus=2, cpus=8)
    return whole.model_copy(update={"gpus": (*whole.gpus, *slices), "others": others})


def of_type(number: int, gpu_type: str, gpus: int = 1) -> Job:
    wanted = job(number, gpus=gpus)
    return wanted.model_copy(update={"spec": wanted.spec.model_copy(update={"gpu_type": gpu_type})})


def test_gpus_of_each_type_are_counted_by_themselves() -> None:
    """Others hold 2 of 3 slices: one is left, and all whole GPUs are."""
    made = placer(sliced("a", MIG=2))
    wanted = [of_type(1, "MIG"), of_type(2, "MIG"), of_type(3, "TITANX"), of_type(4, "TITANX"), of_type(5, "TITANX")]
    assert [nodes_of(made, each) for each in wanted] == [["a"], [], ["a"], ["a"], []]
    told = why(made, wanted[1].uid, T0)
    assert told is not None
    assert list(told.lacks) == [Lack(node="a", what=LackOf.GPU, needed=1, available=0, others=2)]
    made.set_node(sliced("a", MIG=1))
    assert nodes_of(made, wanted[1]) == ["a"]
    last = of_type(6, "MIG")
    assert nodes_of(made, last) == [], "two are ours, one is of others"
    made.keep_only(wanted[0].uid, ())
    assert nodes_of(made, last) == ["a"]
    audit(made.ledger)


def test_on_a_node_that_others_leave_alone_each_type_is_bounded_by_its_cells() -> None:
    made = placer(sliced("a"))
    assert [nodes_of(made, of_type(number, "MIG")) for number in range(1, 5)] == [["a"]] * 3 + [[]]
    assert nodes_of(made, of_type(9, "TITANX", gpus=2)) == ["a"]


SLICES = """
physicalCluster:
  cellTypes:
    WHOLE: {childCellType: TITANX, childCellNumber: 2, isNodeLevel: true}
    SLICES: {childCellType: MIG, childCellNumber: 3, isNodeLevel: true}
  skuTypes: {TITANX: {gpu: 1, cpu: 1, memory: 1Gi}, MIG: {gpu: 1, cpu: 1, memory: 1Gi}}
  physicalCells:
    - {cellType: WHOLE, cellAddress: a}
    - cellType: SLICES
      cellAddress: a
      cellChildren: [{cellAddress: 1000}, {cellAddress: 1001}, {cellAddress: 1002}]
virtualClusters:
  large: {virtualCells: [{cellType: WHOLE, cellNumber: 1}]}
  small: {virtualCells: [{cellType: SLICES.MIG, cellNumber: 2}]}
"""


def test_a_virtual_cluster_has_a_quota_of_slices_alone() -> None:
    made = Placer(read_config(SLICES))
    made.set_node(sliced("a"))
    made.catch_up()

    def of_small(number: int) -> Job:
        wanted = of_type(number, "MIG")
        return wanted.model_copy(update={"spec": wanted.spec.model_copy(update={"virtual_cluster": "small"})})

    jobs = [of_small(number) for number in (1, 2, 3)]
    places = [placed(made, each) for each in jobs]
    found = [place for each in places for place in each.values()]
    assert [(place.node, place.gpu_type, len(place.gpus)) for place in found] == [("a", "MIG", 1)] * 2
    assert {gpu for place in found for gpu in place.gpus} < {1000, 1001, 1002}
    audit(made.ledger)
