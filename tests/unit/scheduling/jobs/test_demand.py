"""From documents to groups of cells: sizes, priorities and affinity groups as OpenPAI maps them."""

from __future__ import annotations

import pytest

from pai_backend.model.job import Job
from pai_backend.model.node import Gpu, Node
from pai_backend.model.spec import PriorityClass, TaskRole
from pai_backend.scheduling.core.room import ENOUGH
from pai_backend.scheduling.jobs.demand import PRIORITIES, Sizing, mebibytes, sizing_of, wish_of
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.jobs.quota import misfits, owned_leaves, owned_resources
from pai_backend.testing.builders import make_job, make_role, make_spec
from tests.support.job_queue import placed
from tests.support.lab_config import one_vc, two_vcs


def job_of_roles(*roles: TaskRole, gang: bool = True, priority: PriorityClass | None = None) -> Job:
    return make_job(spec=make_spec(roles=roles, gang=gang, priority=priority))


def groups(job: Job, sizing: Sizing) -> dict[str, list[tuple[int, int]]]:
    """Name within the job -> pods and leaves of each member."""
    wish = wish_of(job, job.tasks, sizing)
    return {
        each.name.partition("/")[2]: [(member.pods, member.leaves) for member in each.group.members]
        for each in wish.parties
    }


@pytest.mark.parametrize(
    ("cpus", "memory_mb", "gpus", "leaves"),
    [(1, 100, 1, 1), (2, 4096, 1, 1), (3, 100, 1, 2), (1, 8193, 1, 3), (1, 100, 4, 4)],
)
def test_a_task_holds_as_many_cells_as_its_scarcest_resource(cpus: int, memory_mb: int, gpus: int, leaves: int) -> None:
    job = job_of_roles(make_role(cpus=cpus, memory_mb=memory_mb, gpus=gpus))
    assert groups(job, sizing_of(one_vc())) == {"default": [(1, leaves)]}
    assert groups(job, Sizing(shared=True)) == {"default": [(1, gpus)]}


def test_a_task_without_gpu_holds_cells_only_when_it_names_them_or_all_do() -> None:
    plain = make_role(cpus=4)
    assert groups(job_of_roles(plain), sizing_of(one_vc())) == {}
    assert groups(job_of_roles(plain), sizing_of(one_vc(), cells_for_all=True)) == {"default": [(1, 2)]}
    named = plain.model_copy(update={"sku_type": "GPU"})
    assert groups(job_of_roles(named), sizing_of(one_vc())) == {"default": [(1, 2)]}


def test_all_roles_of_a_gang_are_one_group_unless_one_names_a_group_or_a_kind() -> None:
    ps, worker = make_role("ps", gpus=1), make_role("worker", instances=2, gpus=1)
    sizing = sizing_of(two_vcs())
    assert groups(job_of_roles(ps, worker), sizing) == {"default": [(1, 1), (2, 1)]}
    named = worker.model_copy(update={"affinity_group": "pair"})
    assert groups(job_of_roles(ps, named), sizing) == {"ps-0": [(1, 1)], "pair": [(2, 1)]}
    other = worker.model_copy(update={"sku_type": "GPU-D"})
    assert groups(job_of_roles(ps, other), sizing) == {"default": [(1, 1)], "default-GPU-D": [(2, 1)]}
    alone = job_of_roles(ps, worker, gang=False)
    assert set(groups(alone, sizing)) == {"ps-0", "worker-0", "worker-1"}


def test_priorities_have_openpais_numbers() -> None:
    assert [PRIORITIES[PriorityClass(name)] for name in ("crit", "prod", "test", "oppo")] == [120, 100, 10, -1]
    assert PRIORITIES[None] == PRIORITIES[PriorityClass.TEST]


@pytest.mark.parametrize(
    ("text", "size"), [("4096Mi", 4096), ("4Gi", 4096), ("2048Ki", 2), ("1048576", 1), ("", 0), ("many", 0)]
)
def test_sizes_of_memory_are_read_as_kubernetes_writes_them(text: str, size: int) -> None:
    assert mebibytes(text) == size


def test_what_a_virtual_cluster_owns() -> None:
    assert (owned_leaves(one_vc(), "default"), owned_resources(one_vc(), "default")) == (2, (2, 4, 8192))
    assert [owned_leaves(two_vcs(), "vc1", kind) for kind in ("GPU-C", "GPU-D")] == [0, 1]


def test_only_a_guaranteed_gang_is_held_to_the_quota() -> None:
    config, sizing = one_vc(), sizing_of(one_vc())
    role = make_role(instances=3, gpus=1)
    (wrong,) = misfits(make_spec(roles=[role]), config, sizing)
    assert "requests 3 SKUs, which exceeds the maximum of 2 SKUs in VC default" in wrong.message
    assert misfits(make_spec(roles=[role], gang=False), config, sizing) == []
    assert misfits(make_spec(roles=[role], priority=PriorityClass.OPPO), config, sizing) == []
    assert misfits(make_spec(roles=[make_role(instances=2, gpus=1)]), config, sizing) == []


def node(name: str, gpus: int, cpus: int) -> Node:
    return Node(
        name=name,
        address="127.0.0.1",
        machine=name,
        cpus=cpus,
        memory_mb=16384,
        gpus=tuple(Gpu(index=index, type="V100") for index in range(gpus)),
    )


def placer(*nodes: Node) -> Placer:
    made = Placer()
    for each in nodes:
        made.set_node(each)
    made.catch_up()
    return made


def test_groups_of_one_gang_are_placed_together_or_not_at_all() -> None:
    made = placer(node("a", 1, 8), node("b", 1, 8))
    pair = [make_role(name, gpus=1).model_copy(update={"affinity_group": name}) for name in ("x", "y", "z")]
    whole, part = job_of_roles(*pair), job_of_roles(*pair[:2])
    assert not placed(made, whole)
    assert (made.ledger.groups, made.room.free("a")) == ({}, (8, 16384, ENOUGH))
    made.forget(whole.uid)
    assert sorted(place.node for place in placed(made, part).values()) == ["a", "b"]


def test_a_task_without_gpu_leaves_nodes_with_gpus_to_others() -> None:
    made = placer(node("a", 2, 8), node("z", 0, 8))
    job = job_of_roles(make_role(instances=3, cpus=4))
    assert [place.node for place in placed(made, job).values()] == ["z", "z", "a"]


def test_cells_of_a_gang_come_back_with_its_last_task_and_cpu_with_each() -> None:
    made = placer(node("a", 2, 8))
    job = job_of_roles(make_role(instances=2, gpus=1, cpus=2))
    assert len(placed(made, job)) == 2
    made.give_back(job.uid, [job.tasks[0].uid])
    assert (list(made.ledger.groups), made.room.free("a")[0]) == ([f"{job.id}/default"], 6)
    made.give_back(job.uid, [job.tasks[1].uid])
    assert (made.ledger.groups, made.room.free("a")[0]) == ({}, 8)
