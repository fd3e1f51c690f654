"""Ports of a job's tasks on nodes that enforce NetworkPolicies: who reaches them, and who does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from pai_backend.engine.base import LogStream
from pai_backend.engine.bundle.host_names import host_name
from pai_backend.engine.kubernetes import naming
from pai_backend.model.ids import JobUid, job_of
from pai_backend.model.plan import TaskPlan
from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.cluster.kubectl import Kubectl
from tests.kubernetes.policies.conftest import CAROL, DAN, Guard, let_in, new_namespace, tasks_of
from tests.kubernetes.policies.knocking import LOGIN, PORT, SERVED, SSH, Knocker, stand_in

pytestmark = pytest.mark.asyncio(loop_scope="session")

ALICES, BOBS = JobUid("j000000000a11ce00"), JobUid("j0000000000000b0b")


@dataclass
class Neighbourhood:
    """Jobs of two users, and pods of no job in their namespace and in another one."""

    guard: Guard
    others: Kubectl
    plans: list[TaskPlan]
    """Alice's: two on carol, one on dan."""
    addresses: list[str]
    tasks: list[Knocker]
    bobs_plans: list[TaskPlan]
    """One on each node."""
    bobs: list[Knocker]

    @property
    def targets(self) -> dict[str, str]:
        """Every port of alice's tasks, and what it answers to those who reach it."""
        return ports_of(self.addresses)


def ports_of(hosts: list[str]) -> dict[str, str]:
    return {f"{host}:{port}": said for host in hosts for port, said in ((PORT, SERVED), (SSH, LOGIN))}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def here(guarded: Cluster, bundle: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Neighbourhood]:
    """The tests of this module share it, and change nothing but what is of bob's."""
    place = tmp_path_factory.mktemp("neighbourhood")
    async with new_namespace(guarded) as kubectl, new_namespace(guarded) as others:
        elsewhere = {"namespace_labels": {"kubernetes.io/metadata.name": others.namespace}}
        doors = [{"pod_labels": {"app": "gateway"}}, {**elsewhere, "pod_labels": {"app": "proxy"}}]
        doors.append({"namespace_labels": {"doors": "all"}})
        async with Guard(kubectl, bundle, place, front_doors=doors).watching() as guard:
            alices, bobs = tasks_of(ALICES, "alice", [CAROL, CAROL, DAN]), tasks_of(BOBS, "bob", [CAROL, DAN])
            knockers = await guard.start(*alices, *bobs)
            addresses = await guard.addresses(*alices, *bobs)
            yield Neighbourhood(
                guard, others, alices, addresses[: len(alices)], knockers[: len(alices)], bobs, knockers[len(alices) :]
            )


async def test_peers_reach_each_other_by_name_on_one_node_and_across_nodes(here: Neighbourhood) -> None:
    """The first task hears its neighbour on carol and the one on dan; the one on dan hears both on carol."""
    names = [host_name("worker", index) for index in range(3)]
    for index in (0, 2):
        peers = ports_of([name for name in names if name != names[index]])
        await here.tasks[index].until_it_hears(peers)


async def test_tasks_of_another_job_and_pods_of_none_are_shut_out(guarded: Cluster, here: Neighbourhood) -> None:
    """On either node, in the tasks' namespace and in another; also whoever has a door's label in a wrong namespace."""
    await here.tasks[0].until_it_hears(ports_of(here.addresses[1:]))
    strangers = [*here.bobs, Knocker()]
    strangers += await let_in(
        here.guard.kubectl,
        stand_in("stranger-here", CAROL, {"app": "stranger"}),
        stand_in("no-proxy", DAN, {"app": "proxy"}),
    )
    strangers += await let_in(
        here.others,
        stand_in("stranger-there", DAN, {"app": "stranger"}),
        stand_in("no-gateway", CAROL, {"app": "gateway"}),
    )
    await asyncio.gather(*(each.is_shut_out(here.targets) for each in strangers))


async def test_front_doors_reach_every_task(here: Neighbourhood) -> None:
    """One beside the tasks by its label, one in another namespace by its label and that of the namespace."""
    doors = await let_in(here.guard.kubectl, stand_in("gateway", DAN, {"app": "gateway"}))
    doors += await let_in(here.others, stand_in("proxy", CAROL, {"app": "proxy"}))
    for each in doors:
        await each.until_it_hears(here.targets)


async def test_a_whole_namespace_may_be_a_front_door(guarded: Cluster, here: Neighbourhood) -> None:
    """From when it has the label, whatever its pods are."""
    await here.tasks[0].until_it_hears(ports_of(here.addresses[1:]))
    async with new_namespace(guarded) as whole:
        (anyone,) = await let_in(whole, stand_in("anyone", DAN, {}))
        await anyone.is_shut_out(here.targets)
        await whole("label", "namespace", whole.namespace, "doors=all")
        await anyone.until_it_hears(here.targets)


async def test_a_backend_outside_of_the_cluster_works_through_the_kubelet(here: Neighbourhood) -> None:
    """It connects to ports and reads logs; and an administrator enters a pod, as every test here does."""
    await here.tasks[0].until_it_hears(ports_of(here.addresses[1:]))
    for plan in here.plans:
        assert await here.guard.dialled(plan) == b"served\n"
        logs = here.guard.engine.logs(plan.uid, LogStream.STDOUT, 0, follow=False)
        assert b"".join([piece async for piece in logs]) == b"up\n"


async def test_it_is_the_policy_that_shuts_out(here: Neighbourhood) -> None:
    """Without bob's, whoever was shut out of bob's ports a moment ago reaches them; alice's stay shut."""
    bobs = ports_of(await here.guard.addresses(*here.bobs_plans))
    await here.bobs[0].until_it_hears(bobs)
    (stranger,) = await let_in(here.guard.kubectl, stand_in("curious", DAN, {"app": "stranger"}))
    for each in (stranger, here.tasks[0]):
        await each.is_shut_out(bobs)
    await here.guard.kubectl("delete", "networkpolicy", naming.attempt_name(job_of(here.bobs_plans[0].uid), 0))
    for each in (stranger, here.tasks[0]):
        await each.until_it_hears(bobs)
    await stranger.is_shut_out(here.targets)
