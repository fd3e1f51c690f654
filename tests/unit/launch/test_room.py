"""What does not fit into an environment: left out by families, in order, and said; the task starts all the same."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from pai_backend.launch.job_info import PartsMemory, job_parts
from pai_backend.launch.plan import TRUNCATED, build_plan, environment
from pai_backend.launch.room import LEFT_OUT_FIRST, TOTAL_BYTES, VARIABLE_BYTES, entry_bytes, fitting
from pai_backend.model.job import Job
from tests.support.interpreter_steps import interpreter_steps

MakeJob = Callable[..., Job]


def family(count: int, size: int) -> dict[str, str]:
    """``count`` variables of ``size`` bytes each."""
    return {f"V{number:09d}": "x" * (size - 12) for number in range(count)}


@pytest.mark.parametrize("count", range(len(LEFT_OUT_FIRST)))
def test_families_go_in_the_stated_order_until_the_rest_fits(count: int) -> None:
    families = {name: family(1000, TOTAL_BYTES // 4000) for name in reversed(LEFT_OUT_FIRST)}
    each = sum(entry_bytes(name, value) + 8 for name, value in family(1000, TOTAL_BYTES // 4000).items())
    room = TOTAL_BYTES - (len(LEFT_OUT_FIRST) - count) * each
    assert fitting(families, room) == LEFT_OUT_FIRST[:count]
    assert fitting(families, room + 1) == LEFT_OUT_FIRST[: count + 1]


def test_a_variable_that_is_too_long_takes_its_family_with_it_and_no_other() -> None:
    families = {"PAI_*_PORT": family(1, 100), "PAI_HOST_IP_*": {"V": "x" * (VARIABLE_BYTES - 2)}}
    assert fitting(families, 0) == ("PAI_HOST_IP_*",)
    families["PAI_HOST_IP_*"] = {"V": "x" * (VARIABLE_BYTES - 3)}
    assert fitting(families, 0) == ()


def big_job(make_job: MakeJob, tasks: int, **fields: Any) -> Job:
    role = {"name": "worker", "taskNumber": tasks, "cpuNumber": 1, "memoryMB": 100}
    return make_job(role, {"name": "ps.main", "taskNumber": 2}, **fields)


def test_a_job_with_room_leaves_nothing_out(make_job: MakeJob) -> None:
    """The number is that of docs/environment.md."""
    job = big_job(make_job, 3000)
    table = environment(job, job.tasks[0])
    assert TRUNCATED not in table
    assert table["PAI_worker_2999_ssh_PORT"]


@pytest.mark.parametrize(("tasks", "fields"), [(6000, {}), (9998, {}), (9998, {"killAllOnCompletedTaskNumber": 1})])
def test_a_task_of_a_large_job_starts_and_says_what_is_missing(
    make_job: MakeJob, tasks: int, fields: dict[str, Any]
) -> None:
    """With the system's own limits, and with room left for arguments of programs that it runs."""
    job = big_job(make_job, tasks, **fields)
    plan = build_plan(job, job.tasks[-1], ssh=None, extra_env={})
    arguments = "python -c 'import sys; print(len(sys.argv[1]))' \"$(printf '%0120000d' 1)\""
    done = subprocess.run(
        ["bash", "-c", plan.command.replace("true", arguments)],
        env=plan.env | {"PATH": f"{sys.prefix}/bin:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "120000\n"
    assert f"too large for variables named {plan.env[TRUNCATED]}; PAI_JOB_INFO_FILE names" in done.stderr
    assert done.stderr.count("\n") == 1
    left_out = plan.env[TRUNCATED].split(",")
    assert left_out == [name for name in LEFT_OUT_FIRST if name in left_out]
    assert "PAI_worker_0_ssh_PORT" not in plan.env
    assert plan.env["PAI_CURRENT_TASK_ROLE_NAME"] == "ps.main"
    assert len(json.loads(plan.job_info)["tasks"]) == tasks + 2


def test_both_spellings_and_prefixes_of_a_family_go_together(make_job: MakeJob) -> None:
    job = big_job(make_job, 6000, killAllOnCompletedTaskNumber=1)
    assert job.spec.dialect == "qizhi"
    table = environment(job, job.tasks[0])
    for name in ("PAI_ps.main_0_ssh_PORT", "PAI_ps_main_0_ssh_PORT", "QIZHI_ps.main_0_ssh_PORT"):
        assert name not in table
    assert table["QIZHI_TASK_ROLE_TASK_COUNT_ps_main"] == "2"


def test_a_task_with_thousands_of_ports_starts(make_job: MakeJob) -> None:
    job = make_job({"name": "r", "portList": [{"label": "x", "portNumber": 24_000}]})
    table = environment(job, job.tasks[0])
    assert "PAI_CONTAINER_HOST_x_PORT_LIST" in table[TRUNCATED].split(",")
    assert all(entry_bytes(name, value) <= VARIABLE_BYTES for name, value in table.items())
    assert table["PAI_CONTAINER_HOST_http_PORT_LIST"]


def test_what_the_document_sets_itself_is_never_left_out(make_job: MakeJob) -> None:
    """Without a word its program would mean something else; the engine refuses what no process can be given."""
    job = make_job({"name": "r"}, jobEnvs={"MINE": "x" * (TOTAL_BYTES + 99)})
    table = environment(job, job.tasks[0])
    assert len(table["MINE"]) == TOTAL_BYTES + 99
    assert "PAI_HOST_IP_r_0" not in table


def test_the_parts_of_a_job_are_made_once_while_its_tasks_stay(make_job: MakeJob) -> None:
    job = big_job(make_job, 20)
    memory = PartsMemory()
    parts = memory.of(job)
    assert memory.of(job.model_copy(update={"version": 7})) is parts
    assert memory.of(Job.model_validate_json(job.model_dump_json())) is parts
    waiting = job.tasks[0].model_copy(update={"placement": None})
    moved = job.model_copy(update={"tasks": (waiting, *job.tasks[1:])})
    assert memory.of(moved) == job_parts(moved)
    again = job.model_copy(update={"attempt": 1})
    assert memory.of(again) == job_parts(again)


def test_the_parts_of_the_jobs_asked_for_last_are_remembered(make_job: MakeJob) -> None:
    jobs = [big_job(make_job, 1).model_copy(update={"uid": f"j{number:016x}"}) for number in range(9)]
    memory = PartsMemory()
    first = [memory.of(job) for job in jobs]
    assert memory.of(jobs[-1]) is first[-1]
    assert memory.of(jobs[0]) is not first[0]


def test_planning_a_task_puts_its_peers_together_once_for_all(make_job: MakeJob) -> None:
    """Planning 2000 tasks took 30 s when it was done anew for each: dozens of steps for each peer of each task."""

    def steps(tasks: int) -> int:
        job = big_job(make_job, tasks)
        memory = PartsMemory()
        memory.of(job)
        return interpreter_steps(
            lambda: build_plan(job, job.tasks[0], ssh=None, extra_env={}, parts=memory.of(job)),
        )

    few, many = steps(100), steps(1100)
    assert (many - few) / 1000 <= 4, (few, many)
