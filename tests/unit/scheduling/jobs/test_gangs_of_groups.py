"""Gangs whose roles need cells of different kinds: whole or not at all, and in bounded time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pai_backend.model.job import Job
from pai_backend.model.spec import PriorityClass
from pai_backend.scheduling.cells.tree import State
from pai_backend.scheduling.jobs.answers import Lack
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.queue import Patience, Policy
from pai_backend.testing.builders import T0, make_job, make_role, make_spec, make_uid
from tests.support.cell_laws import audit
from tests.support.job_queue import placed, served
from tests.support.lab_config import both_types
from tests.support.scripted_engine import lab_node

PATIENCE = 2


def placer(overtaken: int = PATIENCE) -> Placer:
    """Carol's GPU of type C and Dan's of type D, both of one virtual cluster."""
    made = Placer(both_types(), policy=Policy(patience=Patience(overtaken, timedelta(days=1))))
    for name in ("carol", "dan"):
        made.set_node(lab_node(name))
    made.catch_up()
    return made


def job(number: int, kinds: str, priority: PriorityClass = PriorityClass.TEST) -> Job:
    """A gang with one task on each of these types."""
    roles = [make_role(f"r{kind}", gpus=1).model_copy(update={"sku_type": f"GPU-{kind}"}) for kind in kinds]
    spec = make_spec(roles=roles, priority=priority)
    return make_job(f"job{number}", uid=make_uid(number), spec=spec, submitted_at=T0 + timedelta(seconds=number))


def starts_among_singles(made: Placer, rounds: int) -> int | None:
    """In which round a gang of both types starts, while single tasks keep one of the two GPUs busy at any time."""
    running = {kind: job(number, kind) for number, kind in enumerate("CD", 1)}
    assert all(placed(made, single) for single in running.values())
    gang = job(3, "CD")
    served(made, gang)
    for number in range(rounds):
        kind = "CD"[number % 2]
        following = job(10 + number, kind)
        served(made, following)
        ended = running.pop(kind, None)
        if ended is not None:
            made.keep_only(ended.uid, ())
        found = served(made, following)
        started = {unit.job for unit in found.started}
        if gang.uid in started:
            return number
        if following.uid in started:
            running[kind] = following
    return None


def test_a_gang_of_two_types_starts_though_later_tasks_of_each_never_cease() -> None:
    found = starts_among_singles(placer(), 12)
    assert found is not None
    assert found <= PATIENCE + 2


def test_without_patience_it_would_wait_for_ever() -> None:
    assert starts_among_singles(placer(overtaken=1000), 40) is None


def test_what_is_kept_for_a_gang_is_kept_for_all_of_its_groups() -> None:
    made = placer(overtaken=1)
    first = [job(number, kind) for number, kind in enumerate("CD", 1)]
    assert all(placed(made, single) for single in first)
    gang = job(3, "CD")
    served(made, gang)
    made.keep_only(first[0].uid, ())
    overtakes = job(4, "C")
    assert placed(made, overtakes)
    states = {name: held.state for name, held in made.ledger.groups.items() if name.startswith(gang.id)}
    assert states == {f"{gang.id}/default": State.PREEMPTING, f"{gang.id}/default-GPU-D": State.PREEMPTING}
    assert made.wait_reason(made.waiting(gang.uid)[0]).lack is Lack.KEPT
    assert made.preemptions() == []
    made.keep_only(overtakes.uid, ())
    assert not placed(made, job(5, "C")), "a later task took what is kept"


@pytest.mark.parametrize("first", ["CD", "DC"])
def test_two_gangs_never_hold_parts_of_each_other(first: str) -> None:
    """Each preempts what runs on one type; whichever comes first has both, whatever the order of its roles."""
    made = placer()
    low = job(1, "C", PriorityClass.OPPO)
    assert placed(made, low)
    gangs = [job(2, first, PriorityClass.PROD), job(3, first[::-1], PriorityClass.PROD)]
    for gang in gangs:
        served(made, gang)
    holders = {name.partition("/")[0] for name in made.ledger.groups if not name.startswith(low.id)}
    assert holders == {gangs[0].id}
    assert not [
        held
        for held in made.ledger.groups.values()
        if held.group.name.startswith(gangs[0].id) and held.state is State.ALLOCATED
    ]
    made.keep_only(low.uid, ())
    assert len(placed(made, gangs[0])) == 2
    made.keep_only(gangs[0].uid, ())
    assert len(placed(made, gangs[1])) == 2
    audit(made.ledger)
