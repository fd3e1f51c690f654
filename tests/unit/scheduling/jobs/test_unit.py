"""What waits as one: a gang, a task of an incremental job, or the tasks with which such a job begins."""

from __future__ import annotations

from pai_backend.lifecycle.step import to_place
from pai_backend.model.job import Job, Retries
from pai_backend.scheduling.jobs.demand import Sizing, sizing_of
from pai_backend.scheduling.jobs.quota import misfits
from pai_backend.scheduling.jobs.unit import Unit, units_of
from pai_backend.testing.builders import T0, make_job, make_role, make_spec
from tests.support.lab_config import one_vc


def elastic(least: int | None = 2, instances: int = 3, gpus: int = 1, *, gang: bool = False) -> Job:
    role = make_role(instances=instances, gpus=gpus).model_copy(update={"min_instances": least})
    return make_job(spec=make_spec(roles=[role], gang=gang))


def units(job: Job) -> list[Unit]:
    return list(units_of(job, to_place(job, T0), Sizing(shared=True)))


def groups(unit: Unit) -> list[str]:
    return [party.name for party in unit.parties]


def test_a_gang_is_one_and_each_task_of_an_incremental_job_is_one() -> None:
    assert [groups(unit) for unit in units(elastic(None, gang=True))] == [["alice~job/default"]]
    assert [groups(unit) for unit in units(elastic(None))] == [[f"alice~job/worker-{index}"] for index in range(3)]


def test_what_starts_together_is_one_unit_of_groups_that_end_alone() -> None:
    job = elastic()
    (unit,) = units(job)
    assert groups(unit) == ["alice~job/worker-0-core", "alice~job/worker-1-core"]
    assert unit.uids == tuple(task.uid for task in job.tasks[:2])
    assert [(each.pods, each.leaves) for each in unit.entry.groups] == [(1, 1), (1, 1)]


def test_without_gpus_what_starts_together_is_one_unit_too() -> None:
    (unit,) = units(elastic(gpus=0))
    assert (unit.parties, len(unit.loose), unit.name) == ((), 2, "alice~job/worker-0-core")


def test_a_first_task_that_is_run_again_has_a_name_of_its_own() -> None:
    job = elastic()
    again = job.tasks[0].model_copy(update={"attempt": 1, "retries": Retries(platform=1)})
    later = job.model_copy(update={"tasks": (again, *job.tasks[1:])})
    names = {name for unit in units(later) for name in groups(unit)}
    assert names == {f"alice~job/worker-{index}" for index in range(3)}
    assert not names.intersection(groups(units(job)[0]))


def test_only_what_starts_together_is_held_to_the_quota() -> None:
    config, sizing = one_vc(), sizing_of(one_vc())
    assert misfits(elastic(2, 9).spec, config, sizing) == []
    (wrong,) = misfits(elastic(3, 9).spec, config, sizing)
    assert "requests 3 SKUs, which exceeds the maximum of 2 SKUs" in wrong.message
