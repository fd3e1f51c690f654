"""Gangs that name no GPU type, on nodes of several shapes and without a written configuration."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest

from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Job, Phase, State
from pai_backend.model.node import Gpu, Node, Placement
from pai_backend.model.spec import PriorityClass
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.request import WaitCode
from pai_backend.testing.builders import T0, make_job, make_role, make_spec, make_uid
from tests.support.cell_laws import audit
from tests.support.job_queue import placed, refused, served


def node(name: str, *gpus: str) -> Node:
    devices = tuple(Gpu(index=index, type=kind) for index, kind in enumerate(gpus))
    return Node(name=name, machine=name, address="127.0.0.1", cpus=16, memory_mb=65_536, gpus=devices)


def placer(*nodes: Node) -> Placer:
    made = Placer()
    for each in nodes:
        made.set_node(each)
    made.catch_up()
    return made


def job(
    number: int, *sizes: int, kind: str | None = None, priority: PriorityClass | None = None, **more: object
) -> Job:
    """A gang with a task of each size."""
    roles = [make_role(f"r{at}", gpus=size) for at, size in enumerate(sizes)]
    spec = make_spec(roles=roles, gpu_type=kind, priority=priority).model_copy(update=more)
    return make_job(f"job{number}", uid=make_uid(number), spec=spec, submitted_at=T0 + timedelta(seconds=number))


def where(found: Mapping[TaskUid, Placement]) -> list[tuple[str, tuple[int, ...]]]:
    return sorted((place.node, place.gpus) for place in found.values())


def code_of(made: Placer, wish: Job) -> WaitCode:
    """Why the job waits."""
    reason = refused(made, wish).reason
    assert reason is not None
    return reason.code


MIXED = (node("carol", "TITANX"), node("dan", "P100"), node("eve", "P100", "P100"))


@pytest.mark.parametrize("order", [MIXED, MIXED[::-1]])
def test_a_gang_runs_on_nodes_of_several_shapes_when_none_has_enough(order: tuple[Node, ...]) -> None:
    made = placer(*order)
    found = placed(made, job(1, 1, 1, 1))
    assert len(found) == 3
    assert {place.chain for place in found.values()} == {"P100-NODE-2", "P100-NODE-1"}
    assert len(placed(made, job(2, 1))) == 1
    audit(made.ledger)


def test_each_task_has_the_chain_and_the_gpu_of_its_node() -> None:
    made = placer(*MIXED)
    found = placed(made, job(1, 2, 1, 1))
    assert where(dict(found)) == [("carol", (0,)), ("dan", (0,)), ("eve", (0, 1))]
    assert {(place.node, place.chain) for place in found.values()} == {
        ("carol", "TITANX-NODE-1"),
        ("dan", "P100-NODE-1"),
        ("eve", "P100-NODE-2"),
    }
    audit(made.ledger)


def test_a_gang_that_one_shape_could_hold_keeps_to_it() -> None:
    made = placer(node("carol", "TITANX"), node("dan", "P100"), node("eve", "P100"))
    assert placed(made, job(1, 1, kind="P100"))
    assert code_of(made, job(2, 1, 1)) is WaitCode.BEYOND_PRIORITY
    made.keep_only(make_uid(1), ())
    assert {place.chain for place in placed(made, job(2, 1, 1)).values()} == {"P100-NODE-1"}


def test_a_gang_that_names_a_type_or_one_cell_is_never_spread() -> None:
    made = placer(*MIXED)
    for number, wish in enumerate((job(1, 1, 1, 1, 1), job(2, 1, 1, kind="TITANX")), 1):
        assert (placed(made, wish) != {}) is (number == 1)
    spec = job(3, 1, 1, 1, 1).spec
    within = spec.model_copy(
        update={"scheduling": spec.scheduling.model_copy(update={"within_one_cell": "P100-NODE-2"})}
    )
    assert not placed(placer(*MIXED), make_job("job3", uid=make_uid(3), spec=within))


def test_it_starts_when_room_comes_in_any_chain_and_is_told_truly_why_it_waits() -> None:
    made = placer(*MIXED)
    assert placed(made, job(1, 1, kind="TITANX"))
    gang = job(2, 2, 1, 1)
    assert code_of(made, gang) is WaitCode.BEYOND_PRIORITY
    made.keep_only(make_uid(1), ())
    assert len(placed(made, gang)) == 3
    audit(made.ledger)


def test_a_gang_that_all_nodes_together_cannot_hold_waits_for_quota() -> None:
    assert code_of(placer(*MIXED), job(1, 1, 1, 1, 1, 1)) is WaitCode.QUOTA
    assert code_of(placer(*MIXED), job(1, 2, 2)) is WaitCode.SHAPE
    assert "the nodes of the virtual cluster default do not hold all of them together" in (
        refused(placer(*MIXED), job(1, 2, 2)).message
    )


def test_it_preempts_in_several_chains_and_keeps_the_cells() -> None:
    made = placer(*MIXED)
    low = [job(1, 1, kind="TITANX", priority=PriorityClass.TEST), job(2, 1, priority=PriorityClass.OPPO)]
    assert all(placed(made, each) for each in low)
    gang = job(3, 2, 1, 1, priority=PriorityClass.PROD)
    found = served(made, gang)
    assert [unit.job for unit in found.kept] == [gang.uid]
    assert {each.job for each in made.preemptions()} == {each.uid for each in low}
    assert {place.node for place in made.reserved(gang.uid).values()} == {"carol", "dan", "eve"}
    for each in low:
        made.keep_only(each.uid, ())
    assert len(placed(made, gang)) == 3
    audit(made.ledger)


def test_after_a_restart_it_holds_just_what_it_held() -> None:
    first = placer(*MIXED)
    gang = job(1, 2, 1, 1)
    found = placed(first, gang)
    tasks = tuple(
        task.model_copy(
            update={
                "state": State.RUNNING,
                "phase": Phase.RUNNING,
                "placement": Placement(
                    node=found[task.uid].node,
                    address="127.0.0.1",
                    machine=found[task.uid].node,
                    gpus=found[task.uid].gpus,
                    cells=found[task.uid].cells,
                    chain=found[task.uid].chain,
                    owned=found[task.uid].owned,
                ),
            }
        )
        for task in gang.tasks
    )
    again = Placer()
    for each in MIXED:
        again.set_node(each)
    running = gang.model_copy(update={"tasks": tasks, "state": State.RUNNING, "phase": Phase.RUNNING})
    again.recover([running])
    again.catch_up()
    audit(again.ledger)
    (unit,) = again.units.of_job(gang.uid)
    assert where(dict(again.places(unit))) == where(dict(found))
    assert code_of(again, job(2, 1)) is WaitCode.BEYOND_PRIORITY
    again.forget(make_uid(2))
    again.keep_only(gang.uid, ())
    assert len(placed(again, job(3, 2, 1, 1))) == 3
