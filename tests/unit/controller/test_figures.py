"""The cluster's figures for Prometheus: what is counted of decisions, and what is read of the cluster."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import httpx
import pytest

from pai_backend.controller.figures import ClusterFigures, Seen
from pai_backend.model.job import Causer, Job, Phase, Retries, State, TaskExit
from pai_backend.model.node import Gpu, Node, Placement
from pai_backend.processes.controller_port import serve
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.testing.builders import T0, make_job, make_uid

BY = {"virtual_cluster": "default"}


def value(figures: ClusterFigures, name: str, **labels: str) -> float | None:
    return figures.registry.get_sample_value(name, labels)


def ended(job: Job, reason: str, causer: Causer) -> Job:
    exit_ = TaskExit(code=None, reason=reason, causer=causer, at=T0)
    first, *rest = job.tasks
    return job.model_copy(update={"tasks": (first.model_copy(update={"exit": exit_}), *rest)})


def test_starts_ends_retries_and_exits_are_counted_once() -> None:
    figures, job = ClusterFigures(), make_job()
    started = job.model_copy(update={"launched_at": job.submitted_at + timedelta(seconds=70)})
    figures.changed(job, started)
    figures.changed(started, started)
    assert value(figures, "pai_job_wait_seconds_count", **BY) == 1
    assert value(figures, "pai_job_wait_seconds_bucket", **BY, le="60.0") == 0
    assert value(figures, "pai_job_wait_seconds_bucket", **BY, le="300.0") == 1
    evicted = ended(started, "evicted", Causer.PLATFORM)
    again = evicted.model_copy(update={"retries": Retries(platform=1)})
    over = again.model_copy(update={"state": State.FAILED})
    for before, after in ((started, evicted), (evicted, again), (again, over), (over, over)):
        figures.changed(before, after)
    assert value(figures, "pai_task_exits_total", **BY, reason="evicted", causer="platform") == 1
    assert value(figures, "pai_job_retries_total", **BY, charged="platform") == 1
    assert value(figures, "pai_job_ends_total", **BY, state="FAILED") == 1


def machine(name: str, *, ready: bool = True) -> Node:
    gpus = tuple(Gpu(index=index, type="H100") for index in range(2))
    return Node(name=name, address=name, machine=name, cpus=8, memory_mb=65_536, gpus=gpus, ready=ready)


def test_what_is_used_is_read_of_the_cluster_while_this_process_is_the_controller() -> None:
    figures, placer = ClusterFigures(lambda: T0 + timedelta(minutes=5)), Placer()
    for node in (machine("a"), machine("b", ready=False)):
        placer.set_node(node)
    placer.catch_up()
    waits = make_job("waits", submitted_at=T0)
    runs = make_job("runs", user="bob", uid=make_uid(2))
    place = Placement(node="a", address="a", machine="a", gpus=(0,), gpu_type="H100", ports={"ssh": (15000,)})
    task = runs.tasks[0].model_copy(update={"phase": Phase.RUNNING, "placement": place})
    runs = runs.model_copy(update={"tasks": (task,), "state": State.RUNNING, "phase": Phase.RUNNING})
    assert value(figures, "pai_controller_leader") == 0
    assert value(figures, "pai_ports_leased") is None, "another process has the figures"
    jobs = {job.uid: job for job in (waits, runs)}
    figures.seen = lambda: Seen(jobs, placer, {runs.uid: 1})
    assert value(figures, "pai_controller_leader") == 1
    assert value(figures, "pai_nodes_by_state", state="ready") == 1
    assert value(figures, "pai_nodes_by_state", state="not_ready") == 1
    assert value(figures, "pai_user_gpus", **BY, user="bob") == 1
    assert value(figures, "pai_idle_gpus", **BY, user="bob") == 1
    assert value(figures, "pai_ports_leased") == 1
    assert value(figures, "pai_running_jobs", **BY) == 1
    assert value(figures, "pai_queue_jobs", **BY) == 1
    assert value(figures, "pai_queue_oldest_seconds", **BY) == 300


@pytest.mark.asyncio
async def test_the_port_answers_prometheus_and_probes() -> None:
    figures, trouble = ClusterFigures(), ["The database is being opened."]
    with serve(figures.registry, "127.0.0.1", 0, lambda: trouble[0]) as port:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            health, ready, found = await asyncio.gather(
                *(client.get(path) for path in ("/healthz", "/readyz", "/metrics"))
            )
            assert (health.status_code, ready.status_code) == (200, 503)
            assert ready.json() == {"ready": False, "message": trouble[0]}
            assert "\npai_controller_leader 0.0\n" in found.text
            trouble[0] = ""
            assert (await client.get("/readyz")).status_code == 200
        with pytest.raises(OSError, match="in use"), serve(figures.registry, "127.0.0.1", port, lambda: ""):
            pass
