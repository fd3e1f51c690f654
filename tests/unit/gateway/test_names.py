"""What login names mean, and the sentences for those who cannot enter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_backend.access.gateway.names import (
    LoginName,
    LoginRefused,
    NotYet,
    alias_of,
    find_entry,
    gone,
    not_for,
    parse,
    plain,
    unknown,
)
from pai_backend.access.gateway.reasons import RefusalReason
from pai_backend.model.alias import service_alias, task_alias
from pai_backend.model.job import Job, JobExit, Phase, State
from pai_backend.model.spec import PortSpec
from pai_backend.testing.builders import make_job, make_placement, make_role, make_spec
from tests.support.ssh_world import running_job


def _job(**update: object) -> Job:
    ports = (PortSpec(label="jupyter"),)
    roles = [make_role("master"), make_role("Worker_A", instances=2, ports=ports)]
    return running_job(2200, spec=make_spec("demo", roles=roles)).model_copy(update=update)


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("demo", LoginName("demo", "", "", "")),
        ("demo--worker-0", LoginName("demo", "", "", "worker-0")),
        ("demo.worker-0", LoginName("demo", "", "", "worker-0")),
        ("demo--jupyter", LoginName("demo", "", "", "jupyter")),
        ("demo--worker-0--tensor.board", LoginName("demo", "", "", "worker-0--tensor.board")),
        ("alice+my.job", LoginName("", "alice", "my.job", "")),
        ("alice+my--job+worker-0", LoginName("", "alice", "my--job", "worker-0")),
        ("", LoginName("", "", "", "")),
    ],
)
def test_names_are_taken_apart(name: str, meaning: LoginName) -> None:
    assert parse(name) == meaning


@given(st.text(max_size=100))
def test_any_text_is_a_name(name: str) -> None:
    parse(name)
    for refused in (unknown(name), not_for(name)):
        assert str(refused).isprintable()
        assert len(str(refused)) < 400


def test_a_job_alias_means_its_first_task() -> None:
    entry = find_entry(_job(), "")
    assert (entry.task, entry.port, entry.name) == (f"{_job().uid}-0-0-0", 2200, "demo master-0")
    assert entry.slot == f"{_job().uid}-0-0"


def test_every_task_and_service_alias_is_a_login_name() -> None:
    job = _job()
    for task in job.tasks:
        name = parse(task_alias(job.alias, job.spec, task.role, task.index))
        assert (name.alias, find_entry(job, name.rest).task) == (job.alias, task.uid)
    service = parse(service_alias(job.alias, job.spec, "Worker_A", 1, "jupyter"))
    assert find_entry(job, service.rest).task == f"{job.uid}-1-1-0"


def test_the_alias_of_a_task_is_known_before_it_runs() -> None:
    waiting = _job(state=State.WAITING, tasks=())
    assert alias_of(waiting, "worker-a-1") == "demo--worker-a-1"
    assert alias_of(waiting, "") == "demo--master-0"
    with pytest.raises(LoginRefused, match="has no task") as caught:
        alias_of(waiting, "worker-a-2")
    assert caught.value.reason is RefusalReason.UNKNOWN


@pytest.mark.parametrize(
    ("update", "rest", "sentence"),
    [
        ({}, "worker-9", 'Job demo has no task "worker-9". Its tasks: master-0, worker-a-0 to worker-a-1.'),
        ({"state": State.WAITING, "phase": Phase.BACKING_OFF, "why": "retry in 5 s"}, "", "backing off: retry in 5 s."),
        ({"state": State.WAITING, "phase": Phase.QUEUED}, "", "Job demo is queued. Try again when it runs."),
        ({"state": State.STOPPED}, "", "Job demo has ended: STOPPED."),
        ({"tasks": ()}, "", "Job demo is running"),
    ],
)
def test_refusals_are_one_sentence_with_the_reason(update: dict[str, object], rest: str, sentence: str) -> None:
    with pytest.raises(LoginRefused) as caught:
        find_entry(_job(**update), rest)
    assert sentence in str(caught.value)
    may_be_waited_for = update.get("state") is State.WAITING or "tasks" in update
    assert isinstance(caught.value, NotYet) == may_be_waited_for


def test_a_task_that_still_starts_is_refused_for_now() -> None:
    job = _job()
    first = job.tasks[0].model_copy(update={"state": State.WAITING, "phase": Phase.PULLING})
    with pytest.raises(LoginRefused, match=r"Task master-0 of job demo is pulling\. Try again in a moment\."):
        find_entry(job.model_copy(update={"tasks": (first, *job.tasks[1:])}), "")


def test_a_task_without_an_ssh_port_is_refused_for_good() -> None:
    job = _job()
    first = job.tasks[0].model_copy(update={"placement": make_placement()})
    with pytest.raises(LoginRefused, match="has no SSH port"):
        find_entry(job.model_copy(update={"tasks": (first,)}), "")


def test_a_login_goes_on_while_its_task_does() -> None:
    job = _job()
    uid = job.tasks[0].uid
    assert gone(job, uid) is None
    assert gone(job.model_copy(update={"state": State.STOPPING}), uid) is None
    failed = job.model_copy(update={"state": State.FAILED, "exit": JobExit(status=1, message="out\nof memory")})
    assert str(gone(failed, uid)) == "Job demo has ended: FAILED: out of memory."
    assert "started again elsewhere" in str(gone(make_job("demo", attempt=1), uid))
    ended = job.tasks[0].model_copy(update={"state": State.SUCCEEDED})
    assert str(gone(job.model_copy(update={"tasks": (ended,)}), uid)) == "Task master-0 of job demo has ended."


@given(st.text(max_size=500), st.integers(1, 100))
def test_plain_text_is_one_bounded_printable_line(text: str, limit: int) -> None:
    shown = plain(text, limit)
    assert len(shown) <= limit
    assert shown.isprintable()


def _kept(job: Job) -> Job:
    """The job after its first task has failed and is kept for debugging."""
    first = job.tasks[0].model_copy(update={"state": State.FAILED, "phase": Phase.KEPT})
    return job.model_copy(update={"tasks": (first, *job.tasks[1:]), "phase": Phase.KEPT})


def test_a_task_that_is_kept_for_debugging_can_be_entered() -> None:
    job = _kept(_job())
    assert find_entry(job, "").task == job.tasks[0].uid
    assert gone(job, job.tasks[0].uid) is None


def test_a_task_that_was_let_go_cannot() -> None:
    job = _kept(_job())
    over = job.tasks[0].model_copy(update={"phase": Phase.ENDED})
    job = job.model_copy(update={"tasks": (over, *job.tasks[1:])})
    with pytest.raises(LoginRefused, match="has ended"):
        find_entry(job, "")
    assert "has ended" in str(gone(job, job.tasks[0].uid))
