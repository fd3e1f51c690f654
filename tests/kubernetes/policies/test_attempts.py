"""NetworkPolicies of attempts, as they come and go; and what the settings make of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio

from pai_backend.engine.base import EngineError
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.access import Access
from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.client import connect
from pai_backend.engine.kubernetes.ending import TOMBSTONE, Ender
from pai_backend.engine.kubernetes.marks import marks_of
from pai_backend.engine.kubernetes.places import ApiPaths
from pai_backend.model.ids import JobUid, job_of
from pai_backend.model.plan import TaskPlan
from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.cluster.commands import until
from tests.kubernetes.cluster.kubectl import Kubectl
from tests.kubernetes.policies.conftest import CAROL, DAN, Guard, let_in, tasks_of
from tests.kubernetes.policies.knocking import PORT, SERVED, Knocker, stand_in

pytestmark = pytest.mark.asyncio(loop_scope="session")

JOB = JobUid("j00000000000000a7")
POLICIES = "count/networkpolicies.networking.k8s.io"


@pytest_asyncio.fixture(loop_scope="session")
async def guard(namespace_of_test: Kubectl, bundle: str, tmp_path: Path) -> AsyncIterator[Guard]:
    """An engine without front doors."""
    async with Guard(namespace_of_test, bundle, tmp_path).watching() as running:
        yield running


def policy_of(plan: TaskPlan) -> str:
    return naming.attempt_name(job_of(plan.uid), plan.job_attempt)


async def names(kubectl: Kubectl, kind: str) -> set[str]:
    return {each["metadata"]["name"] for each in (await kubectl.get(kind))["items"]}


async def forbid_more_policies(kubectl: Kubectl) -> None:
    """As many as there are now, and none beside them."""
    have = len(await names(kubectl, "networkpolicies"))
    await kubectl("create", "quota", "policies", f"--hard={POLICIES}={have}")

    async def counted() -> bool:
        status = (await kubectl.get("quota", "policies")).get("status", {})
        return bool(status.get("used", {}).get(POLICIES) == str(have))

    await until(counted, "the quota to be counted", 60)


def two_attempts() -> list[list[TaskPlan]]:
    """The first on carol, and the next on dan; each has two tasks, since those of one have no policy of their own."""
    return [tasks_of(JOB, "alice", [node, node], attempt=n) for n, node in enumerate((CAROL, DAN))]


async def test_a_second_attempt_is_shut_from_its_first_moment(guard: Guard, namespace_of_test: Kubectl) -> None:
    """Its pods are not made before its policy is there: where none may be made, the tasks wait."""
    first, again = two_attempts()
    await guard.start(*first)
    await guard.addresses(*first)
    await forbid_more_policies(namespace_of_test)
    with pytest.raises(EngineError, match="quota"):
        await guard.start(again[0])
    assert await names(namespace_of_test, "pods") == {naming.task_name(each.uid) for each in first}
    await namespace_of_test("delete", "quota", "policies")
    await guard.start(*again)
    assert await names(namespace_of_test, "networkpolicies") == {policy_of(first[0]), policy_of(again[0])}
    target = f"{(await guard.addresses(*again))[0]}:{PORT}"
    await Knocker(namespace_of_test, naming.task_name(again[0].uid)).until_it_hears({target: SERVED})
    # Attempts of one job are no peers: what is left of the first has no business with the second.
    (stranger,) = await let_in(namespace_of_test, stand_in("stranger", DAN, {}))
    for each in (stranger, Knocker(namespace_of_test, naming.task_name(first[0].uid))):
        await each.is_shut_out([target])


async def test_a_policy_goes_with_its_attempt_and_no_other_does(guard: Guard, namespace_of_test: Kubectl) -> None:
    first, again = two_attempts()
    await guard.start(*first, *again)
    target = f"{(await guard.addresses(*again))[0]}:{PORT}"
    await Knocker(namespace_of_test, naming.task_name(again[0].uid)).until_it_hears({target: SERVED})
    for each in first:
        await guard.end(each)
    await sweep(namespace_of_test, datetime.now(UTC) + 2 * TOMBSTONE)
    await namespace_of_test("wait", "--for=delete", "--timeout=60s", f"networkpolicy/{policy_of(first[0])}")
    assert await names(namespace_of_test, "networkpolicies") == {policy_of(again[0])}
    (stranger,) = await let_in(namespace_of_test, stand_in("stranger", DAN, {}))
    await stranger.is_shut_out([target])
    assert await guard.dialled(again[0]) == b"served\n"


async def test_tasks_without_peers_share_a_policy_that_stays(guard: Guard, namespace_of_test: Kubectl) -> None:
    """None is made before it is there; each is shut to all, also to another one of them; and it goes with none."""
    first, again = (tasks_of(JOB, "alice", [node], attempt=n)[0] for n, node in enumerate((CAROL, DAN)))
    await forbid_more_policies(namespace_of_test)
    with pytest.raises(EngineError, match="quota"):
        await guard.start(first)
    assert await names(namespace_of_test, "pods") == set()
    await namespace_of_test("delete", "quota", "policies")
    await guard.start(first, again)
    (shared,) = await names(namespace_of_test, "networkpolicies")
    assert await names(namespace_of_test, "configmaps") == {"kube-root-ca.crt"}
    target = f"{(await guard.addresses(first, again))[1]}:{PORT}"
    await Knocker(namespace_of_test, naming.task_name(again.uid)).until_it_hears({target: SERVED})
    (stranger,) = await let_in(namespace_of_test, stand_in("stranger", DAN, {}))
    for each in (stranger, Knocker(namespace_of_test, naming.task_name(first.uid))):
        await each.is_shut_out([target])
    await guard.end(first)
    await sweep(namespace_of_test, datetime.now(UTC) + 2 * TOMBSTONE)
    await namespace_of_test("wait", "--for=delete", "--timeout=60s", f"secret/{naming.task_name(first.uid)}")
    assert await names(namespace_of_test, "networkpolicies") == {shared}
    await stranger.is_shut_out([target])
    assert await guard.dialled(again) == b"served\n"


async def sweep(kubectl: Kubectl, now: datetime) -> None:
    """What the engine does now and then: remove attempts that ended long before this time."""
    marks = [found for each in (await kubectl.get("secrets"))["items"] if (found := marks_of(each)) is not None]
    client = await connect(Access(kubectl.kubeconfig, namespace=kubectl.namespace))
    try:
        await Ender(Calls(client), ApiPaths(kubectl.namespace), "policies").sweep(marks, now)
    finally:
        await client.aclose()


async def test_an_address_may_be_a_front_door(
    guarded: Cluster, namespace_of_test: Kubectl, bundle: str, tmp_path: Path
) -> None:
    """That of this machine, by which a backend beside the cluster comes; pods still do not get in."""
    doors = [{"cidr": f"{guarded.slot.addresses.host}/31"}]  # of which the last bit is not looked at
    async with Guard(namespace_of_test, bundle, tmp_path, front_doors=doors).watching() as guard:
        (plan,) = tasks_of(JOB, "alice", [CAROL])
        await guard.start(plan)
        target = f"{(await guard.addresses(plan))[0]}:{PORT}"
        await Knocker().until_it_hears({target: SERVED})
        (stranger,) = await let_in(namespace_of_test, stand_in("stranger", CAROL, {}))
        await stranger.is_shut_out([target])


async def test_without_policies_everybody_gets_in(namespace_of_test: Kubectl, bundle: str, tmp_path: Path) -> None:
    """``network_policy: false``: the namespace's own policies alone count, and here there are none."""
    async with Guard(namespace_of_test, bundle, tmp_path, network_policy=False).watching() as guard:
        (plan,) = tasks_of(JOB, "alice", [CAROL])
        await guard.start(plan)
        target = f"{(await guard.addresses(plan))[0]}:{PORT}"
        (stranger,) = await let_in(namespace_of_test, stand_in("stranger", DAN, {}))
        for each in (stranger, Knocker()):
            await each.until_it_hears({target: SERVED})
        assert await names(namespace_of_test, "networkpolicies") == set()
