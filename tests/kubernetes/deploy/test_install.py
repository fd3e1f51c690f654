"""A release on a real cluster: jobs through its Services, its rights, an upgrade under running tasks, its removal."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.kubernetes.cluster.commands import until
from tests.kubernetes.deploy.rare_requests import ask_what_is_rarely_asked, look_for_the_log_of_nothing
from tests.kubernetes.deploy.release import LIMIT_S, Release
from tests.kubernetes.deploy.training import Training
from tests.kubernetes.events import until_told

pytestmark = pytest.mark.asyncio(loop_scope="session")

VALUES: dict[str, object] = {}
IDLE_S = 10
MEET = "echo hello; getent hosts r-0 r-1; sleep 1000"
OF_OTHER_SERVERS = {
    ("list", "metrics.k8s.io pods"),  # of those with metrics-server, once a minute while tasks run
    ("create", "pods/exec"),  # from 1.35 on, for what is a ``get`` before
    # Of servers that do not stream lists. Events are listed by all as well, where the pod of a task is missing.
    *(("list", resource) for resource in ("pods", "nodes", "events")),
}


async def stop(release: Release, name: str) -> None:
    """Stop a job and wait until nothing of it is left."""
    assert (await release.client.put(f"/api/v2/jobs/{name}/executionType", json={"value": "STOP"})).status_code == 202
    await release.until_state(name, "STOPPED")
    await until_forgotten(release, name)


async def until_forgotten(release: Release, name: str) -> None:
    async def gone() -> bool:
        return not await release.task_pods(name)

    await until(gone, f"the pods of {name} to be forgotten", LIMIT_S)


async def test_a_job_of_two_tasks_runs_and_is_reached_through_the_services(release: Release) -> None:
    await release.submit("two", MEET, tasks=2)
    await release.until_state("two", "RUNNING")
    for index in (0, 1):
        await release.until_log("two", "r-1", index)
    inside = await release.ssh("two--r-1", "hostname")
    assert (inside.code, inside.out.strip()) == (0, "r-1"), inside.err
    await stop(release, "two")
    assert "r-1" in await release.log("two", 1)  # kept by the controller, read by the API


async def test_what_a_job_leaves_in_its_output_directory_outlives_its_pod(release: Release) -> None:
    await release.submit("leaves", 'echo kept >"$PAI_OUTPUT_DIR/result"')
    await release.until_state("leaves", "SUCCEEDED")
    await until_forgotten(release, "leaves")
    (result,) = (release.place / "jobs").rglob("result")
    assert result.read_text() == "kept\n"


async def test_each_part_asks_for_all_that_it_may_ask_and_for_nothing_else(
    release: Release, runtime_image: str
) -> None:
    await release.submit("kept", "echo kept; exit 3", jobEnvs={"isDebug": True})
    await release.until_phase("kept", "kept for debugging")
    inside = await release.ssh("kept", "echo", "in")
    assert (inside.code, inside.out) == (0, "in\n"), inside.err
    assert "kept" in await release.log("kept")
    assert (await release.client.post("/api/v2/jobs/kept/release")).status_code == 202
    await release.until_state("kept", "FAILED")
    await until_forgotten(release, "kept")
    await release.submit("pair", MEET, tasks=2)
    await release.until_state("pair", "RUNNING")
    pods = (await release.tasks.get("pods", "-l", f"jupyter-pai/job={(await release.job('pair'))['uid']}"))["items"]
    assert [
        (each["metadata"]["annotations"]["jupyter-pai/gang"], "schedulingGates" in each["spec"]) for each in pods
    ] == [("2", False)] * 2
    await stop(release, "pair")
    for pod in pods:
        await until_told(release.tasks, pod["metadata"]["name"], {"Placed", "GangOpened", "UserStopped"})
    controller = await release.account("controller")
    await ask_what_is_rarely_asked(controller, release.tasks.namespace, runtime_image, release.image)
    await look_for_the_log_of_nothing(await release.account("api"), release.tasks.namespace, release.place / "none")
    for part in ("controller", "api", "gateway"):
        asked = release.requests(part)
        assert [each for each in asked if each[2] == 403] == []
        assert {each[:2] for each in asked} | OF_OTHER_SERVERS == await release.rights(part) | OF_OTHER_SERVERS, part


async def test_gpus_that_work_keep_a_job_that_nobody_uses_and_those_that_rest_do_not(release: Release) -> None:
    """By the controller's own account. The program of NVIDIA's driver is the test's: no GPU is behind the node's."""
    training = Training(release, "training", IDLE_S)
    await release.submit(training.name, "echo begun; sleep 1000", gpus=1, extras={"idleTimeout": f"{IDLE_S}s"})
    await release.until_log(training.name, "begun")
    held = await training.until_told("job.idle-held")
    assert "there is no nvidia-smi in its container" in held["unread"]["gpu"]
    assert "They may work, so it is not stopped" in (await training.idle())["sentence"]

    await training.gpu_works(97)
    used = await training.until_used(datetime.fromisoformat(held["since"]), "gpu")
    await training.until_used(used, "gpu")
    assert (await release.job(training.name))["state"] == "RUNNING"
    assert await training.told("job.idle-warning") == []

    await training.gpu_works(0)
    assert (await training.until_told("job.idle-warning"))["unread"] == {}
    assert (await training.until_told("job.stop-requested"))["cause"] == "idle"
    stopped = await release.until_state(training.name, "STOPPED")
    assert stopped["exit"]["message"] == f"idle: nothing has used it for {IDLE_S}s, its idleTimeout"
    await until_forgotten(release, training.name)


async def test_no_part_may_read_what_is_not_its_own(release: Release) -> None:
    tasks, own = release.tasks.namespace, release.kubectl.namespace
    for part in ("gateway", "api", "controller"):
        for namespace in (own, "kube-system"):  # where the database's password is, and the cluster's own
            assert not await release.may(part, "get", "secrets", namespace)
            assert not await release.may(part, "create", "pods", namespace)
        assert not await release.may(part, "update", "pods", tasks)
        assert not await release.may(part, "patch", "nodes", tasks)
    assert not await release.may("gateway", "get", "secrets", tasks)
    assert not await release.may("gateway", "list", "nodes", tasks)
    assert not await release.may("api", "list", "secrets", tasks)  # it may read one whose name it knows
    assert await release.may("controller", "list", "secrets", tasks)


async def test_an_upgrade_replaces_all_pods_of_the_backend_and_none_of_a_task(release: Release) -> None:
    await release.submit("through", "echo begun; sleep 1000")
    await release.until_log("through", "begun")
    before = await release.task_pods("through")
    parts = {part: await release.pods(part) for part in ("api", "controller", "gateway")}
    inside = await release.ssh("through", "true")
    assert inside.code == 0, inside.err
    await release.install(commonLabels={"upgraded": "yes"})

    async def replaced() -> bool:
        now = {part: await release.pods(part) for part in parts}
        return all(not set(parts[part].values()) & set(now[part].values()) for part in parts)

    await until(replaced, "the pods of before to be gone", LIMIT_S)
    assert {part: len(await release.pods(part)) for part in parts} == {"api": 1, "controller": 1, "gateway": 1}
    assert await release.task_pods("through") == before
    assert (await release.job("through"))["state"] == "RUNNING"
    inside = await release.ssh("through", "echo", "in")  # the host key is the same, whichever gateway it is
    assert (inside.code, inside.out) == (0, "in\n"), inside.err
    await release.submit("after", "echo done")
    await release.until_state("after", "SUCCEEDED")
    await stop(release, "through")


async def test_tasks_outlive_the_release_and_are_taken_up_by_the_next(release: Release) -> None:
    await release.submit("stays", "echo begun; sleep 1000")
    await release.until_log("stays", "begun")
    before = await release.task_pods("stays")
    await release.uninstall()

    async def away() -> bool:
        return not (await release.kubectl.get("pods"))["items"]

    await until(away, "the pods of the backend to be gone", LIMIT_S)
    (pod,) = (await release.tasks.get("pods"))["items"]
    assert (pod["metadata"]["uid"], pod["status"]["phase"]) == (before[pod["metadata"]["name"]], "Running")
    await release.install()
    assert (await release.until_state("stays", "RUNNING"))["retries"] == 0
    assert await release.task_pods("stays") == before
    await stop(release, "stays")
