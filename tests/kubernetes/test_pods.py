"""Pods of tasks on real nodes: taken by a strict API server, and read as what happens to them."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import SecretStr

from pai_backend.engine.base import EngineError, StartRefused
from pai_backend.engine.kubernetes.failures import ApiForbidden
from pai_backend.engine.kubernetes.objects import slim_pod
from pai_backend.engine.kubernetes.pods.job import network_policy, service
from pai_backend.engine.kubernetes.pods.pod import build_pod
from pai_backend.engine.kubernetes.pods.secret import login_secret
from pai_backend.engine.kubernetes.status.exits import exit_of
from pai_backend.engine.kubernetes.status.refusals import start_error
from pai_backend.engine.kubernetes.status.task import EXPLAINED, Around, read_task
from pai_backend.engine.kubernetes.status.view import time_of, view_of
from pai_backend.model.cluster_settings import TroublePatience
from pai_backend.model.plan import RegistryLogin, StagedInput
from pai_backend.model.pod_settings import PodSettings
from tests.kubernetes import pod_cases
from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.cluster.commands import until
from tests.kubernetes.cluster.kubectl import Json, Kubectl
from tests.kubernetes.fixtures import Kubernetes
from tests.support.pod_readings import READINGS, assert_reads

pytestmark = pytest.mark.asyncio

AT_ONCE = 5
RESTRICTED = {"security": {"restricted": True, "user": 1000}}
BEYOND = {"network": "host"}


def read_as_expected(name: str, pod: Json) -> None:
    """Fail unless the pod, as a mirror keeps it, is read as the case of this name."""
    created = time_of(pod["metadata"]["creationTimestamp"])
    assert created is not None
    view = view_of(pod)
    end = exit_of(view)[0].at if view.over else None
    now = end + EXPLAINED if end is not None else created
    assert_reads(read_task(slim_pod(pod), Around(now, TroublePatience())), READINGS[name])


async def test_every_end_and_every_trouble_is_read_as_what_it_is(kubernetes: Kubernetes, namespace: Kubectl) -> None:
    bench = await pod_cases.bench_in(kubernetes, namespace)
    few = asyncio.Semaphore(AT_ONCE)

    async def check(name: str) -> None:
        async with few:
            read_as_expected(name, await pod_cases.CASES[name](bench))

    results = await asyncio.gather(*map(check, pod_cases.CASES), return_exceptions=True)
    failures = [(name, result) for name, result in zip(pod_cases.CASES, results, strict=True) if result is not None]
    assert not failures


async def test_what_the_cluster_takes_away_is_read_as_taken_away(
    kubernetes: Kubernetes, testbed: Cluster, namespace: Kubectl
) -> None:
    """By a higher priority, a taint, and a pod that its node cannot do without."""
    bench = await pod_cases.bench_in(kubernetes, namespace)
    for name, case in pod_cases.ROUGH.items():
        read_as_expected(name, await case(bench))


@pytest.mark.timeout(400)  # the cluster lets a minute pass before it ends the pods of a deleted node
@pytest.mark.parametrize("name", pod_cases.HARSH)
async def test_a_node_that_fails_or_is_shut_down_is_read_as_that(
    kubernetes: Kubernetes, testbed: Cluster, namespace: Kubectl, name: str
) -> None:
    """Also where the command exits with 0 when it is told to end."""
    bench = await pod_cases.bench_in(kubernetes, namespace)
    read_as_expected(name, await pod_cases.HARSH[name](bench, testbed))


async def dry_run(kubectl: Kubectl, found: Json) -> str:
    """What a strict API server says against the object; empty when it would take it."""
    words = ("create", "--dry-run=server", "--validate=strict", "-f", "-")
    ended = await kubectl.attempt(*words, given=json.dumps(found))
    return "" if ended.code == 0 else ended.err


async def enforce(kubectl: Kubectl, standard: str) -> None:
    label = f"pod-security.kubernetes.io/enforce={standard}"
    await kubectl("label", "--overwrite", "namespace", kubectl.namespace, label)


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"network": "host"},
        {"binding": "direct", "network": "host-port", "security": {"capabilities": ["SYS_ADMIN"]}},
        RESTRICTED,
        {
            "ephemeral_storage_mb": 100,
            "tolerations": [{"key": "a", "value": "b"}, {"operator": "Exists"}],
            "infiniband": {"resource": "rdma/hca", "capabilities": ["IPC_LOCK"]},
            "volumes": [
                {"name": "n", "nfs": {"server": "nas", "path": "/"}, "path": "/n"},
                {"name": "c", "claim": "claim", "path": "/c", "sub_path": "a/b", "read_only": True},
                {"name": "h", "host_path": "/h", "path": "/h"},
            ],
        },
    ],
)
async def test_a_strict_server_takes_every_object(
    kubernetes: Kubernetes, namespace: Kubectl, chosen: dict[str, Any]
) -> None:
    """With fields that few tasks have; and the settings say which standard the namespace may enforce."""
    bench = await pod_cases.bench_in(kubernetes, namespace)
    doors = [{"pod_labels": {"app": "gateway"}}, {"cidr": "10.0.0.0/8"}]
    settings = PodSettings.model_validate(
        {"runtime_image": "r:1", "inputs_image": "i:1", "names": "dns", "front_doors": doors, **chosen}
    )
    await enforce(namespace, settings.standard)
    plan = bench.plan("true").model_copy(
        update={
            "job_tasks": 2,
            "keep_on_failure": True,
            "infiniband": settings.infiniband is not None,
            "inputs": (StagedInput(uri="/x", name="x", max_bytes=1),),
            "image_login": RegistryLogin(username="u", password=SecretStr("p")),
        }
    )
    for found in (
        build_pod(plan, bench.owner, settings),
        login_secret(plan, bench.owner),
        service(plan, bench.owner, settings),
        network_policy(plan, bench.owner, settings),
    ):
        assert found is None or await dry_run(namespace, found) == ""
    broken = build_pod(plan, bench.owner, settings)
    broken["spec"]["nodename"] = "carol"
    assert "nodename" in await dry_run(namespace, broken)


@pytest.mark.parametrize(
    ("standard", "chosen"), [("baseline", BEYOND), ("restricted", {}), ("restricted", BEYOND), ("baseline", RESTRICTED)]
)
async def test_the_standard_that_settings_keep_is_the_one_they_say(
    kubernetes: Kubernetes, namespace: Kubectl, standard: str, chosen: dict[str, Any]
) -> None:
    """A server that enforces more refuses, and the refusal says that settings must change."""
    bench = await pod_cases.bench_in(kubernetes, namespace)
    await enforce(namespace, standard)
    settings = PodSettings.model_validate({"runtime_image": "r:1", **chosen})
    order = ["privileged", "baseline", "restricted"]
    said = await dry_run(namespace, build_pod(bench.plan("true"), bench.owner, settings))
    assert (said == "") == (order.index(settings.standard) >= order.index(standard)), said
    if said:
        error = start_error(ApiForbidden(said, status=403))
        assert not isinstance(error, StartRefused)
        assert "Pod Security Standard" in str(error)


async def test_a_quota_that_is_used_up_is_waited_for(kubernetes: Kubernetes, namespace: Kubectl) -> None:
    bench = await pod_cases.bench_in(kubernetes, namespace)
    await namespace("create", "quota", "team", "--hard=pods=0")
    settings = PodSettings(runtime_image="r:1")

    async def counted() -> bool:  # admission knows of a quota once its controller has counted
        return bool((await namespace.get("quota", "team")).get("status", {}).get("hard"))

    await until(counted, "the quota to be counted", 60)
    said = await dry_run(namespace, build_pod(bench.plan("true"), bench.owner, settings))
    error = start_error(ApiForbidden(said, status=403))
    assert not isinstance(error, StartRefused)
    assert isinstance(error, EngineError)
    assert "quota of its namespace is used up" in str(error)


async def test_one_deletion_collects_all_of_an_attempt(kubernetes: Kubernetes, namespace: Kubectl) -> None:
    """But for a pod whose exit is still to be recorded: it ends, and stays until its finalizer is taken off."""
    bench = await pod_cases.bench_in(kubernetes, namespace)
    name = await bench.start(pod_cases.PLAIN)
    await bench.running(name)
    await namespace("delete", "configmap", bench.owner.name)
    ended = await bench.over(name)
    assert ended["metadata"]["deletionTimestamp"]
    seen = read_task(slim_pod(ended), Around(datetime.now(UTC), TroublePatience())).seen
    assert seen.exit is not None
    assert seen.exit.reason == "vanished"
    await namespace("wait", "--for=delete", "--timeout=60s", f"secret/{name}")
    await namespace("patch", "pod", name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    await namespace("wait", "--for=delete", "--timeout=60s", f"pod/{name}")


async def test_a_change_of_the_attempts_files_reaches_a_task_at_once(
    kubernetes: Kubernetes, namespace: Kubectl
) -> None:
    """A kubelet looks at volumes once a minute or so; a changed annotation of the pod makes it look now."""
    bench = await pod_cases.bench_in(kubernetes, namespace)
    waits = "until grep -q complete /pai/job/hosts; do sleep 0.1; done"
    name = await bench.start(waits, settings={"names": "dns"}, job_tasks=2)  # only tasks with peers share files
    await bench.running(name)
    changed = json.dumps({"data": {"hosts": "10.0.0.1\tworker-0\n# complete\n"}})
    await namespace("patch", "configmap", bench.owner.name, "--type=merge", "-p", changed)
    began = asyncio.get_running_loop().time()
    await namespace("annotate", "pod", name, "jupyter-pai/refreshed=1")
    await bench.over(name)
    assert asyncio.get_running_loop().time() - began < 30
