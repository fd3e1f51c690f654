"""A task that lacks only CPU or memory on a node ends a lower priority that holds it there, as it would for its GPU."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pai_backend.model.job import Job
from pai_backend.model.node import Node
from pai_backend.model.spec import PriorityClass, Resources
from pai_backend.scheduling.jobs.answers import Lack
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.testing.builders import T0, make_job, make_role, make_spec, make_uid
from tests.support.cell_laws import audit
from tests.support.job_queue import placed, refused, served
from tests.support.scripted_engine import lab_node

CRIT, PROD, TEST, OPPO = PriorityClass.CRIT, PriorityClass.PROD, PriorityClass.TEST, PriorityClass.OPPO


def placer(*nodes: Node) -> Placer:
    """These nodes, of which virtual clusters may use all."""
    made = Placer()
    for node in nodes:
        made.set_node(node)
    made.catch_up()
    return made


def job(number: int, priority: PriorityClass, *, cpus: int, gpus: int = 1, tasks: int = 1, memory_mb: int = 100) -> Job:
    """A gang of equal tasks."""
    role = make_role(instances=tasks).model_copy(
        update={"resources": Resources(gpus=gpus, cpus=cpus, memory_mb=memory_mb)}
    )
    spec = make_spec(roles=[role], priority=priority)
    return make_job(f"job{number}", uid=make_uid(number), spec=spec, submitted_at=T0 + timedelta(seconds=number))


def victims(made: Placer) -> list[Job]:
    """The jobs that have to end."""
    return [made.units.jobs[each.job] for each in made.preemptions()]


@pytest.mark.parametrize("low", [PROD, TEST, OPPO])
@pytest.mark.parametrize("gpus", [1, 2, 3])
def test_a_lower_priority_makes_way_whose_cpus_are_all_that_is_lacking(low: PriorityClass, gpus: int) -> None:
    made = placer(lab_node("carol", gpus=4, cpus=4))
    lower, higher = job(1, low, cpus=4), job(2, CRIT, cpus=2, gpus=gpus)
    assert placed(made, lower)
    served(made, higher)
    assert victims(made) == [lower]
    assert made.wait_reason(made.waiting(higher.uid)[0]).lack is Lack.KEPT
    made.keep_only(lower.uid, ())
    assert placed(made, higher)
    assert refused(made, lower).message == "waits for 1 GPU: too little CPU or memory, or a port in use, on carol"
    audit(made.ledger)


def test_memory_counts_as_cpus_do() -> None:
    node = lab_node("carol", gpus=2, cpus=8)
    made = placer(node)
    lower, higher = job(1, TEST, cpus=1, memory_mb=node.memory_mb), job(2, CRIT, cpus=1, memory_mb=200)
    assert placed(made, lower)
    served(made, higher)
    assert victims(made) == [lower]


def test_nothing_ends_for_an_equal_priority_or_where_that_would_not_do() -> None:
    made = placer(lab_node("carol", gpus=3, cpus=4))
    assert placed(made, job(1, PROD, cpus=3))
    assert placed(made, job(2, TEST, cpus=1))
    for number, asks in enumerate((job(3, PROD, cpus=2), job(4, PROD, cpus=3), job(5, TEST, cpus=1)), 3):
        assert "too little CPU" in refused(made, asks).message, number
    assert victims(made) == []


def test_it_is_the_one_that_holds_enough() -> None:
    made = placer(lab_node("carol", gpus=4, cpus=6))
    small, large, other = job(1, OPPO, cpus=1), job(2, TEST, cpus=4), job(3, OPPO, cpus=1)
    assert all(placed(made, each) for each in (small, large, other))
    served(made, job(4, CRIT, cpus=3))
    assert victims(made) == [large]


def test_nothing_ends_while_another_node_has_room() -> None:
    made = placer(lab_node("carol", gpus=2, cpus=4), lab_node("dan", gpus=2, cpus=4))
    assert placed(made, job(1, OPPO, cpus=4))
    assert [place.node for place in placed(made, job(2, CRIT, cpus=4)).values()] == ["dan"]


def test_of_a_gang_some_tasks_have_room_and_others_get_it() -> None:
    made = placer(lab_node("carol", gpus=4, cpus=8))
    lower, gang = job(1, TEST, cpus=4), job(2, CRIT, cpus=3, tasks=2)
    assert placed(made, lower)
    served(made, gang)
    assert victims(made) == [lower]
    made.keep_only(lower.uid, ())
    assert len(placed(made, gang)) == 2
