"""What a plan says of SSH: who is let in, by which name the task is recognised, and by what it enters its peers."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    SSHCertificate,
    load_ssh_public_identity,
)

from pai_backend.access.broker.authority import rotate
from pai_backend.access.broker.stock import make_rsa
from pai_backend.access.hostca import host_ca_public_key
from pai_backend.access.keys import gateway_public_key, job_rsa_key, public_line
from pai_backend.controller.planning import Planner
from pai_backend.engine.base import SshPlan, TaskPlan
from pai_backend.model.errors import ReadOnlyJob
from pai_backend.model.spec import PortSpec
from pai_backend.store.base import job_key_slots, peer_key_slot
from pai_backend.store.grants import Act
from pai_backend.testing.builders import make_role, make_spec
from tests.support.scripted_cluster import Cluster, cluster, controlled, opened
from tests.support.scripted_engine import ScriptedEngine

SSH = [PortSpec(label="ssh")]
SPEC = make_spec(roles=[make_role("ps", ports=SSH), make_role("worker", ports=SSH)])


def ssh_of(plan: TaskPlan) -> SshPlan:
    assert plan.ssh is not None
    return plan.ssh


def certificate_of(plan: TaskPlan) -> SSHCertificate:
    found = load_ssh_public_identity(ssh_of(plan).host_certificate.encode())
    assert isinstance(found, SSHCertificate)
    found.verify_cert_signature()
    return found


@pytest.mark.asyncio
async def test_each_task_is_certified_for_its_names_and_lets_in_peers_and_users(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        job = await world.running(await world.submit(SPEC))
        plans = {plan.role: plan for plan in await world.engine.started(2)}
        names = {"ps": [job.alias, f"{job.alias}--ps-0"], "worker": [f"{job.alias}--worker-0"]}
        ca = await host_ca_public_key(world.store)
        kept = await world.store.kept_task_keys([job_key_slots(job.uid)[0], peer_key_slot(job.uid)])
        own, peers = kept[job_key_slots(job.uid)[0]], kept[peer_key_slot(job.uid)]
        (user_ca,) = await world.store.grants.user_cas(datetime.now(UTC))

        for role, plan in plans.items():
            ssh, certificate = ssh_of(plan), certificate_of(plan)
            assert [name.decode() for name in certificate.valid_principals] == names[role]
            certified = certificate.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
            assert certified == public_line(ssh.host_key.get_secret_value())
            assert ssh.authorized_keys == (
                await gateway_public_key(world.store),
                f"{public_line(own)} pai-job-{job.uid}",
                f"{public_line(peers)} pai-peers-{job.uid}",
                f'cert-authority,principals="{job.alias},{job.alias}--{role}-0" {user_ca.public_key} pai-user-ca-1',
            )
            assert ssh.peers is not None
            assert (ssh.peers.key.get_secret_value(), ssh.peers.host_ca) == (peers, ca)
            assert peers.splitlines()[3] not in repr(plan)


@pytest.mark.asyncio
async def test_tasks_that_start_after_a_rotation_trust_the_new_key(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        first = await world.running(await world.submit(SPEC))
        await rotate(world.store, Act("root", datetime.now(UTC)))
        await world.running(await world.submit(SPEC.model_copy(update={"name": "later"})))
        plans = await world.engine.started(4)

    trusted = {plan.job_name == first.name: ssh_of(plan).authorized_keys[-1] for plan in plans}
    assert trusted[True].endswith(" pai-user-ca-1")
    assert trusted[False].endswith(" pai-user-ca-2")


@pytest.mark.asyncio
async def test_a_task_that_starts_after_the_jobs_rsa_key_was_made_lets_it_in(tmp_path: Path) -> None:
    async def make() -> str:
        return make_rsa()

    async with cluster(tmp_path) as world:
        job = await world.running(await world.submit(SPEC))
        planner, task = Planner(world.store), job.tasks[0]
        before = ssh_of(await planner.plan(job, task)).authorized_keys
        made = public_line(await job_rsa_key(world.store, job.uid, make))
        again = task.model_copy(update={"attempt": task.attempt + 1})
        after = ssh_of(await planner.plan(job, again)).authorized_keys
    assert after == (*before[:2], f"{made} pai-job-{job.uid}", *before[2:])


@pytest.mark.asyncio
async def test_the_key_of_peers_goes_with_the_job_and_does_not_come_back(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        job = await world.submit(SPEC)
        await world.running(job)
        assert await world.store.task_keys(peer_key_slot(job.uid)) is not None
        await world.store.request_stop(job.uid, job.user, datetime.now(UTC))
        await world.final(job)

        assert await world.store.task_keys(peer_key_slot(job.uid)) is None
        with pytest.raises(ReadOnlyJob):
            await world.store.keep_task_keys({peer_key_slot(job.uid): ("private", "ssh-ed25519 AAAA")})


@pytest.mark.asyncio
async def test_a_job_that_is_stopped_while_it_is_placed_needs_no_keys(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        job = await world.submit(SPEC)
        running = await world.running(job)
        await world.store.request_stop(job.uid, job.user, datetime.now(UTC))
        await world.final(job)
        await Planner(world.store).prepare(running, {task.uid for task in running.tasks})
        assert await world.store.task_keys(peer_key_slot(job.uid)) is None


@pytest.mark.asyncio
async def test_no_key_of_a_job_that_is_done_with_stays_in_memory(tmp_path: Path) -> None:
    """Not even one that was made for a task which was stopped before its first plan."""
    engine = ScriptedEngine()
    async with opened(tmp_path) as store, controlled(store, engine) as controller:
        world, planner = Cluster(store, engine), controller._planner
        running = await world.running(await world.submit(SPEC))
        await planner.prepare(running, {task.uid for task in running.tasks})
        assert planner._keys._coming
        await store.request_stop(running.uid, running.user, datetime.now(UTC))
        await world.until(running.uid, lambda job: job.state.final and all(task.forgotten for task in job.tasks))
        async with asyncio.timeout(60):
            while planner._keys._coming:  # noqa: ASYNC110 - the controller tells nobody that it is done with a job
                await asyncio.sleep(0.01)
