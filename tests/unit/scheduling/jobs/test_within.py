"""``withinOneCell`` of a document: refused at submission where it can never be, kept to where it can."""

from __future__ import annotations

import pytest

from pai_backend.model.job import Job
from pai_backend.model.node import Gpu, Node
from pai_backend.model.spec import JobSpec, PriorityClass, TaskRole
from pai_backend.scheduling import read_config
from pai_backend.scheduling.jobs.answers import Lack
from pai_backend.scheduling.jobs.demand import Sizing, sizing_of, wish_of
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.jobs.quota import misfits
from pai_backend.testing.builders import make_job, make_role, make_spec, make_uid
from tests.support import job_queue
from tests.support.job_queue import refused

RACKS = read_config("""
physicalCluster:
  skuTypes: {GPU: {gpu: 1, cpu: 2, memory: 1024Mi}, OLD: {gpu: 1, cpu: 2, memory: 1024Mi}}
  cellTypes:
    NODE: {childCellType: GPU, childCellNumber: 2, isNodeLevel: true}
    RACK: {childCellType: NODE, childCellNumber: 2}
    OLD-NODE: {childCellType: OLD, childCellNumber: 2, isNodeLevel: true}
  physicalCells:
    - {cellType: RACK, cellChildren: [{cellAddress: a0}, {cellAddress: a1}]}
    - {cellType: RACK, cellChildren: [{cellAddress: b0}, {cellAddress: b1}]}
    - {cellType: OLD-NODE, cellAddress: old}
virtualClusters:
  default: {virtualCells: [{cellType: RACK, cellNumber: 2}]}
  other: {virtualCells: [{cellType: OLD-NODE, cellNumber: 1}]}
""")


def role(name: str = "worker", instances: int = 2, gpus: int = 2, **changes: object) -> TaskRole:
    return make_role(name, instances=instances, gpus=gpus).model_copy(update=changes)


def spec(*roles: TaskRole, within: str | None = None, vc: str = "default", oppo: bool = False) -> JobSpec:
    made = make_spec(roles=roles, virtual_cluster=vc, priority=PriorityClass.OPPO if oppo else None)
    return made.model_copy(update={"scheduling": made.scheduling.model_copy(update={"within_one_cell": within})})


ROLE = "extras.hivedScheduler.taskRoles.worker.withinOneCell"
JOB = "extras.hivedScheduler.withinOneCell"


@pytest.mark.parametrize(
    ("asked", "path", "said", "hint"),
    [
        (spec(role(within_one_cell="SOCKET")), ROLE, "no cells of type SOCKET", "RACK, NODE, GPU."),
        (spec(role(within_one_cell="OLD-NODE")), ROLE, "no cells of type OLD-NODE", "RACK, NODE, GPU."),
        (spec(role(within_one_cell="RACK", instances=3)), ROLE, "6 SKUs together, and one cell of type RACK has 4", ""),
        (spec(role(gpus=0, within_one_cell="RACK")), ROLE, "hold no cells", "Remove it"),
        (spec(role(), within="SOCKET"), JOB, "no cells of type SOCKET", "RACK, NODE, GPU."),
        (spec(role(), role("ps", 1, 1), within="RACK"), JOB, "5 SKUs together", "larger type"),
        (spec(role(), within="RACK", vc="other"), JOB, "no cells of type RACK where the tasks may run", "OLD-NODE"),
        (spec(role(instances=1, gpus=1), within="LAB", oppo=True), JOB, "no cells of type LAB", "RACK, NODE, GPU, OLD"),
    ],
)
def test_a_cell_that_can_never_contain_the_tasks_is_refused(asked: JobSpec, path: str, said: str, hint: str) -> None:
    (wrong,) = misfits(asked, RACKS, sizing_of(RACKS))
    assert ".".join(wrong.path) == path
    assert said in wrong.message
    assert hint in wrong.hint


@pytest.mark.parametrize(
    "asked",
    [
        spec(role(within_one_cell="RACK")),
        spec(role(within_one_cell="NODE", gpus=1)),
        spec(role(), within="RACK"),
        spec(role(), role("ps", 1, 0), within="RACK"),
        spec(role(affinity_group="x"), role("ps", 2, 2, affinity_group="y"), within="RACK"),
        spec(role(instances=1, gpus=2), within="OLD-NODE", oppo=True),
    ],
)
def test_what_some_cell_can_contain_is_taken(asked: JobSpec) -> None:
    assert misfits(asked, RACKS, sizing_of(RACKS)) == []


def test_groups_and_their_members_ask_for_one_cell() -> None:
    job = make_job(spec=spec(role(within_one_cell="NODE"), role("ps"), within="RACK"))
    (party,) = wish_of(job, job.tasks, sizing_of(RACKS)).parties
    assert (party.group.within, [member.within for member in party.group.members]) == ("RACK", ["NODE", ""])
    plain = make_job(spec=spec(role(within_one_cell="NODE"), role("ps")))
    assert wish_of(job, job.tasks, Sizing(shared=True)).shape != wish_of(plain, plain.tasks, Sizing(shared=True)).shape


def placer(*, configured: bool = True) -> Placer:
    made = Placer(RACKS if configured else None)
    for name in ("a0", "a1", "b0", "b1", "old"):
        gpus = tuple(Gpu(index=index, type="OLD" if name == "old" else "GPU") for index in range(2))
        made.set_node(
            Node(name=name, address="127.0.0.1", machine=name, cpus=8, memory_mb=16384, gpus=gpus, simulated=True)
        )
    made.catch_up()
    return made


def placed(made: Placer, job: Job) -> list[str]:
    return sorted(place.node for place in job_queue.placed(made, job).values())


def test_tasks_land_in_one_cell_though_another_choice_would_be_fuller() -> None:
    made = placer()
    single = make_job("single", uid=make_uid(1), spec=spec(role(instances=1, gpus=1)))
    (busy,) = placed(made, single)
    gang = make_job("gang", uid=make_uid(2), spec=spec(role(instances=2, gpus=2, within_one_cell="RACK")))
    nodes = placed(made, gang)
    assert len({name[0] for name in nodes}) == 1
    assert busy[0] not in nodes[0]


def test_tasks_wait_rather_than_lie_in_two_cells() -> None:
    made = placer()
    for number in (1, 2):
        job = make_job(f"half{number}", uid=make_uid(number), spec=spec(role(instances=1, gpus=1), within="GPU"))
        placed(made, job)
    wide = make_job("wide", uid=make_uid(3), spec=spec(role(instances=3, gpus=1)))
    assert len(placed(made, wide)) == 3
    gang = make_job("gang", uid=make_uid(4), spec=spec(role(instances=2, gpus=2, within_one_cell="RACK")))
    assert "within one RACK" in refused(made, gang).message


def test_without_a_configuration_an_unknown_type_is_told_while_the_job_waits() -> None:
    made = placer(configured=False)
    job = make_job(spec=spec(role(within_one_cell="RACK")))
    answer = refused(made, job)
    assert (answer.lack, answer.message) == (
        Lack.NEVER,
        "there is no cell type RACK where this group may run. Name one of: GPU-NODE-2, GPU, OLD-NODE-2, OLD.",
    )
