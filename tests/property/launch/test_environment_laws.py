"""Laws of the environment for any job: peers complete, tasks of one mind, nothing slipped in by a name."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pai_backend.launch.plan import environment
from pai_backend.model.ids import JobUid, task_uid
from pai_backend.model.job import Job, Task
from pai_backend.model.node import Placement
from pai_backend.model.spec import Dialect, JobSpec, PortSpec, TaskRole

Environment = Callable[[Job, Task], Mapping[str, str]]
NAMES = st.from_regex(r"[A-Za-z0-9._~]{1,8}", fullmatch=True)
OWN = re.compile(
    r"FC_TASK|(?:PAI|QIZHI)_(?:CURRENT|CONTAINER|RESOURCE$|TASK_(?:INDEX|ROLE_(?:INDEX|NAME|NO|NUM)|\w+_(?:NUM|MB))$)"
)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """A placed job; each port of each task is another number."""
    uid = JobUid("j0123456789abcdef")
    names = draw(st.lists(NAMES, unique=True, min_size=1, max_size=4))
    roles, tasks = [], list[Task]()
    for number, name in enumerate(names):
        labels = draw(st.lists(NAMES.filter(lambda label: label not in ("http", "ssh")), unique=True, max_size=2))
        ports = tuple(PortSpec(label=label, count=draw(st.integers(1, 3))) for label in [*labels, "http", "ssh"])
        roles.append(TaskRole(name=name, command="true", instances=draw(st.integers(1, 4)), ports=ports))
        for index in range(roles[-1].instances):
            first = 15000 + 40 * len(tasks)
            given = {
                port.label: tuple(range(first + 10 * n, first + 10 * n + port.count)) for n, port in enumerate(ports)
            }
            place = Placement(node="n", address=f"10.0.0.{len(tasks)}", machine="m", ports=given)
            tasks.append(Task(uid=task_uid(uid, number, index, 0), role=name, index=index, attempt=0, placement=place))
    spec = JobSpec(
        name="demo", dialect=draw(st.sampled_from(list(Dialect))), image="i", task_roles=tuple(roles), env={"MINE": [1]}
    )
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Job(uid=uid, name="demo", user="u", alias="a", spec=spec, tasks=tuple(tasks), submitted_at=at)


def missing_peers(job: Job, make: Environment) -> list[str]:
    """What some task is not told of another one, or told wrongly."""
    wrong = []
    for own in job.tasks:
        table = make(job, own)
        for role in job.spec.task_roles:
            peers = [task.placement for task in job.tasks if task.role == role.name and task.placement]
            expected = ",".join(f"{peer.address}:{peer.ports['http'][0]}" for peer in peers)
            if table.get(f"PAI_TASK_ROLE_{role.name}_HOST_LIST") != expected:
                wrong.append(f"{own.name}: hosts of {role.name}")
            wrong += [
                f"{own.name}: address of {role.name}-{index}"
                for index, peer in enumerate(peers)
                if table.get(f"PAI_HOST_IP_{role.name}_{index}") != peer.address
            ]
    return wrong


def quarrels(job: Job, make: Environment) -> set[str]:
    """Variables that two tasks of a job see with different values though they are not about the task itself."""
    tables = [make(job, task) for task in job.tasks]
    names = {name for table in tables for name in table if not OWN.match(name)}
    return {name for name in names if len({table.get(name) for table in tables}) > 1}


@settings(deadline=None, max_examples=50)
@given(jobs())
def test_every_task_is_told_of_every_peer(job: Job) -> None:
    assert missing_peers(job, environment) == []


@settings(deadline=None, max_examples=50)
@given(jobs())
def test_tasks_of_a_job_agree_on_what_is_not_their_own(job: Job) -> None:
    ambiguous = {
        role.name for role in job.spec.task_roles if re.search(r"_|^(?:CURRENT|CONTAINER|RESOURCE)", role.name)
    }
    if not ambiguous:
        assert quarrels(job, environment) == set()


@settings(deadline=None, max_examples=50)
@given(jobs(), st.integers())
def test_the_order_of_tasks_does_not_matter(job: Job, seed: int) -> None:
    shuffled = list(job.tasks)
    random.Random(seed).shuffle(shuffled)
    other = job.model_copy(update={"tasks": tuple(shuffled)})
    for task in job.tasks:
        assert list(environment(job, task).items()) == list(environment(other, task).items())


@settings(deadline=None, max_examples=50)
@given(jobs())
def test_no_name_puts_a_line_or_an_equals_sign_into_the_environment(job: Job) -> None:
    for name, value in environment(job, job.tasks[0]).items():
        assert re.fullmatch(r"[A-Za-z0-9_.~]+", name)
        assert re.fullmatch(r"[A-Za-z0-9_.,:;~\[\]-]*", value), (name, value)


@settings(deadline=None, max_examples=50)
@given(jobs())
def test_every_variable_can_be_read_by_a_shell_under_some_name(job: Job) -> None:
    table = environment(job, job.tasks[0])
    assert all(re.sub(r"[^A-Za-z0-9_]", "_", name) in table for name in table)


@settings(deadline=None, max_examples=50)
@given(jobs())
def test_a_port_variable_for_one_port_is_that_number(job: Job) -> None:
    own = job.tasks[0]
    table = environment(job, own)
    assert own.placement is not None
    for label, ports in own.placement.ports.items():
        assert table[f"PAI_CONTAINER_HOST_{label}_PORT_LIST"] == ",".join(map(str, ports))


def forgets_the_last_peer(job: Job, task: Task) -> Mapping[str, str]:
    """A wrong environment: knows all tasks of the job but the last."""
    return environment(job.model_copy(update={"tasks": job.tasks[:-1]}), task)


def tells_each_its_own_count(job: Job, task: Task) -> Mapping[str, str]:
    """A wrong environment: each task is told another number of tasks."""
    return {**environment(job, task), "PAI_JOB_TASK_COUNT": str(task.index)}


@pytest.fixture
def pair() -> Job:
    uid = JobUid("j0123456789abcdef")
    role = TaskRole(name="r", command="true", instances=2, ports=(PortSpec(label="http"),))
    tasks = tuple(
        Task(
            uid=task_uid(uid, 0, index, 0),
            role="r",
            index=index,
            attempt=0,
            placement=Placement(node="n", address=f"h{index}", machine="m", ports={"http": (15000 + index,)}),
        )
        for index in range(2)
    )
    spec = JobSpec(name="demo", dialect=Dialect.OPENPAI_V1, image="i", task_roles=(role,))
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Job(uid=uid, name="demo", user="u", alias="a", spec=spec, tasks=tasks, submitted_at=at)


def test_the_laws_refuse_a_wrong_environment(pair: Job) -> None:
    assert missing_peers(pair, environment) == []
    assert missing_peers(pair, forgets_the_last_peer) == ["r-0: hosts of r", "r-0: address of r-1"]
    assert quarrels(pair, environment) == set()
    assert quarrels(pair, tells_each_its_own_count) == {"PAI_JOB_TASK_COUNT"}
