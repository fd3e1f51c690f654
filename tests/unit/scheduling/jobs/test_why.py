"""Why a job waits, asked of a placer: the same afterwards as before, and of several groups the one that is stuck."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pai_backend.model.job import Job
from pai_backend.model.node import Gpu, Node
from pai_backend.model.spec import JobSpec, PriorityClass
from pai_backend.model.waiting import Cause, Change, ChangeKind, Waiting
from pai_backend.scheduling import Ledger, State
from pai_backend.scheduling.jobs import why as module
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.jobs.why import why
from pai_backend.testing.builders import make_job, make_role, make_spec, make_uid
from tests.support.cell_laws import audit
from tests.support.job_queue import placed, served

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def placer(*gpus: int, cpus: int = 64) -> Placer:
    """Nodes with these GPUs, without a configuration."""
    made = Placer()
    for number, count in enumerate(gpus):
        devices = tuple(Gpu(index=index, type="TITANX") for index in range(count))
        name = f"n{number}"
        made.set_node(Node(name=name, address="127.0.0.1", machine=name, cpus=cpus, memory_mb=65_536, gpus=devices))
    made.catch_up()
    return made


def job(number: int, *roles: tuple[int, int], gang: bool = True, oppo: bool = False) -> Job:
    """``roles`` are (tasks, GPUs of each)."""
    made = [make_role(f"r{place}", instances=count, gpus=gpus) for place, (count, gpus) in enumerate(roles)]
    priority = PriorityClass.OPPO if oppo else None
    return make_job(f"job{number}", uid=make_uid(number), spec=make_spec(roles=made, gang=gang, priority=priority))


def asked(of: Placer, waiting: Job) -> Waiting | None:
    """The answer, once the queue has decided; asserts that nothing is different after asking."""
    if not of.waiting(waiting.uid):
        served(of, waiting)
    before = state_of(of.ledger)
    told = why(of, waiting.uid, NOW)
    assert state_of(of.ledger) == before
    audit(of.ledger)
    return told


def state_of(cluster: Ledger) -> object:
    groups = {
        name: (held.state, [(spot.node.name, spot.mask) for spot in held.spots], len(held.pursuers))
        for name, held in cluster.groups.items()
    }
    return groups, cluster.version, dict(cluster.placements())


def spec_with_fewer(spec: JobSpec, change: Change) -> JobSpec:
    """The job's document with a change to one role made."""
    assert change.kind is ChangeKind.FEWER
    roles = list(spec.task_roles)
    assert change.role == roles[change.member].name
    roles[change.member] = roles[change.member].model_copy(update={"instances": change.after})
    return spec.model_copy(update={"task_roles": tuple(roles)})


def test_what_is_suggested_really_starts_and_one_task_more_does_not() -> None:
    cells = placer(4, 4)
    assert placed(cells, job(1, (3, 1)))
    waiting = job(2, (8, 1))
    told = asked(cells, waiting)
    assert told is not None
    change = next(each for each in told.changes if each.kind is ChangeKind.FEWER)
    fitting = make_job("fits", uid=make_uid(3), spec=spec_with_fewer(waiting.spec, change))
    more = change.model_copy(update={"after": change.after + 1})
    larger = make_job("larger", uid=make_uid(4), spec=spec_with_fewer(waiting.spec, more))
    cells.forget(waiting.uid)
    assert not placed(cells, larger)
    cells.forget(larger.uid)
    assert placed(cells, fitting)


def test_a_preemptor_keeps_its_reservation_while_it_is_explained() -> None:
    cells = placer(4)
    weak, strong = job(1, (1, 4), oppo=True), job(2, (1, 4))
    assert placed(cells, weak)
    assert [unit.job for unit in served(cells, strong).kept] == [strong.uid]
    told = asked(cells, strong)
    assert told is not None
    assert told.cause is Cause.PREEMPTING
    assert cells.ledger.groups[f"{strong.id}/default"].state is State.PREEMPTING
    assert [each.job for each in cells.preemptions()] == [weak.uid]


def test_an_incremental_job_is_told_about_the_first_task_without_a_place() -> None:
    cells = placer(2)
    holder = job(1, (1, 1))
    assert placed(cells, holder)
    told = asked(cells, job(2, (3, 1), gang=False))
    assert told is not None
    assert told.group.endswith("/r0-1")
    assert holder.id in [each.group for each in told.holders]


def test_tasks_without_gpus_have_no_explanation_of_cells() -> None:
    assert asked(placer(1), job(1, (2, 0))) is None


def test_a_job_that_would_start_has_nothing_to_be_explained() -> None:
    assert asked(placer(2), job(1, (2, 1))) is None


def test_a_failure_inside_leaves_the_cells_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(module, "explain", broken)
    cells = placer(2)
    holder = job(1, (1, 1))
    assert placed(cells, holder)
    waiting = job(2, (3, 1), gang=False)
    served(cells, waiting)
    before = state_of(cells.ledger)
    with pytest.raises(ZeroDivisionError):
        why(cells, waiting.uid, NOW)
    assert state_of(cells.ledger) == before
    audit(cells.ledger)
