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

from pai_backend.access.hostca import host_ca_public_key
from pai_backend.access.keys import gateway_public_key, job_key, public_line
from pai_backend.controller.plans import Planner
from pai_backend.engine.base import SshPlan, TaskPlan
from pai_backend.model.errors import ReadOnlyJob
from pai_backend.model.spec import PortSpec
from pai_backend.store.base import peer_key_slot
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
async def test_each_task_is_certified_for_its_names_and_lets_in_the_gateway_and_peers_alone(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        job = await world.running(await world.submit(SPEC))
        plans = {plan.role: plan for plan in await world.engine.started(2)}
        names = {"ps": [job.alias, f"{job.alias}--ps-0"], "worker": [f"{job.alias}--worker-0"]}
        ca = await host_ca_public_key(world.store)
        assert await job_key(world.store, job.uid)
        peers = await world.store.task_keys.get(peer_key_slot(job.uid)) or ""

        for role, plan in plans.items():
            ssh, certificate = ssh_of(plan), certificate_of(plan)
            assert [name.decode() for name in certificate.valid_principals] == names[role]
            certified = certificate.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
            assert certified == public_line(ssh.host_key.get_secret_value())
            assert ssh.authorized_keys == (
                await gateway_public_key(world.store),
                f"{public_line(peers)} pai-peers-{job.uid}",
            )
            assert ssh.peers is not None
            assert (ssh.peers.key.get_secret_value(), ssh.peers.host_ca) == (peers, ca)
            assert peers.splitlines()[3] not in repr(plan)


@pytest.mark.asyncio
async def test_the_key_of_peers_goes_with_the_job_and_does_not_come_back(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        job = await world.submit(SPEC)
        await world.running(job)
        assert await world.store.task_keys.get(peer_key_slot(job.uid)) is not None
        await world.store.jobs.request_stop(job.uid, job.user, datetime.now(UTC))
        await world.final(job)

        assert await world.store.task_keys.get(peer_key_slot(job.uid)) is None
        with pytest.raises(ReadOnlyJob):
            await world.store.task_keys.keep({peer_key_slot(job.uid): ("private", "ssh-ed25519 AAAA")})


@pytest.mark.asyncio
async def test_a_job_that_is_stopped_while_it_is_placed_needs_no_keys(tmp_path: Path) -> None:
    async with cluster(tmp_path) as world:
        job = await world.submit(SPEC)
        running = await world.running(job)
        await world.store.jobs.request_stop(job.uid, job.user, datetime.now(UTC))
        await world.final(job)
        await Planner(world.store).prepare(running, {task.uid for task in running.tasks})
        assert await world.store.task_keys.get(peer_key_slot(job.uid)) is None


@pytest.mark.asyncio
async def test_no_key_of_a_job_that_is_done_with_stays_in_memory(tmp_path: Path) -> None:
    """Not even one that was made for a task which was stopped before its first plan."""
    engine = ScriptedEngine()
    async with opened(tmp_path) as store, controlled(store, engine) as controller:
        world, planner = Cluster(store, engine), controller._planner
        running = await world.running(await world.submit(SPEC))
        await planner.prepare(running, {task.uid for task in running.tasks})
        assert planner._keys._coming
        await store.jobs.request_stop(running.uid, running.user, datetime.now(UTC))
        await world.until(running.uid, lambda job: job.state.final and all(task.forgotten for task in job.tasks))
        async with asyncio.timeout(60):
            while planner._keys._coming:  # noqa: ASYNC110 - the controller tells nobody that it is done with a job
                await asyncio.sleep(0.01)
