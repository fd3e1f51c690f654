"""What the cluster refuses, and takes back or does not: told in its words, and tried again where that can help."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.cluster.commands import until
from tests.kubernetes.cluster.images import BUSYBOX
from tests.kubernetes.faults.audit import settled
from tests.kubernetes.faults.jobs import Wanted, good, patient
from tests.kubernetes.faults.obstacles import SAID, a_rule_against, hog, take_room
from tests.kubernetes.faults.product import LIMIT_S, Product, Site, product_on, timed

pytestmark = pytest.mark.asyncio(loop_scope="session")

LATE = "localhost/jupyter-pai/late:1"


async def test_an_image_that_is_missing_is_waited_for(
    product: Product, faulty: Cluster, record_property: Callable[[str, object], None]
) -> None:
    late = await product.submit(Wanted("late-image", image=LATE))
    said = "cannot be fetched"
    job = await product.until(late, lambda job: said in str(job["why"]), "to tell that its image is missing")
    assert "ErrImagePull" in job["why"] or "ImagePullBackOff" in job["why"]
    try:
        with timed(record_property, "recovered_s_image"):
            for node in faulty.nodes.values():
                await node.ctr("images", "tag", BUSYBOX, LATE)
            await product.ended(late)
        await settled(product)
    finally:
        for node in faulty.nodes.values():
            await node.remove_image(LATE)
    assert any(said in line for line in await product.told(late))


async def test_a_quota_that_is_used_up_is_waited_for(product: Product) -> None:
    kubectl = product.site.kubectl
    await kubectl("create", "quota", "none", "--hard=pods=0")
    await kubectl("wait", "--for=jsonpath={.status.hard.pods}=0", "quota/none", "--timeout=60s")
    waits = await product.submit(good("waits-for-quota"))
    said = "quota of its namespace is used up"
    await product.until(waits, lambda job: said in str(job["why"]), "to tell of the quota")
    await kubectl("delete", "quota", "none")
    await settled(product)
    assert any(said in line for line in await product.told(waits))


async def test_a_standard_that_the_settings_do_not_keep_is_waited_for_and_costs_nothing(product: Product) -> None:
    """Here a directory of the node, which the settings give to every task."""
    kubectl, label = product.site.kubectl, "pod-security.kubernetes.io/enforce"
    await kubectl("label", "namespace", kubectl.namespace, f"{label}=baseline")
    try:
        waits = await product.submit(good("waits-for-a-standard"))
        said = "the namespace does not allow what the administrator has set for pods"
        job = await product.until(waits, lambda job: said in str(job["why"]), "to tell of the standard")
        assert "hostPath" in job["why"]
    finally:
        await kubectl("label", "namespace", kubectl.namespace, f"{label}-")
    await settled(product)
    assert not [line for line in await product.told(waits) if line.startswith("retry")]


async def test_what_a_virtual_cluster_is_to_have_is_waited_for_where_it_is_missing(site: Site, tmp_path: Path) -> None:
    """Class, account and label are on the pods of that virtual cluster once they are there."""
    kubectl, name = site.kubectl, f"urgent-{site.kubectl.namespace}"
    own = {"priority_class": name, "service_account": "tasks", "labels": {"team": "vision"}}
    own["allowed"] = {"priority_classes": [f"{name}-low", "missing"], "image_pull_secrets": ["missing"]}
    said = "the cluster does not have what the administrator has set for pods"
    async with product_on(site, tmp_path / "backend", {"by_vc": {"default": own}}) as product:
        waits = await product.submit(patient("waits-for-a-class"))
        try:
            await product.until(waits, lambda job: said in str(job["why"]), "to tell of what is missing")
            await kubectl("create", "serviceaccount", "tasks")
            await product.until(waits, lambda job: "PriorityClass" in str(job["why"]), "to tell of the class")
            await kubectl("create", "priorityclass", name, "--value=1000")
            await product.running(waits)
            (pod,) = (await kubectl.get("pods", "-l", "team=vision"))["items"]
            spec = pod["spec"]
            assert (spec["priorityClassName"], spec["serviceAccountName"]) == (name, "tasks")
            assert not any("serviceAccountToken" in str(volume) for volume in spec["volumes"]), "no token is in it"
            await product.release(waits)
            await settled(product)
            await kubectl("create", "priorityclass", f"{name}-low", "--value=10")
            await choices_of_documents(product, f"{name}-low")
        finally:
            await kubectl("delete", "priorityclass", name, f"{name}-low", "--ignore-not-found")


async def choices_of_documents(product: Product, low: str) -> None:
    """One that is allowed is on the pod; others are refused, at submission, or when the cluster does not have them."""

    async def submit(wanted: Wanted, **choice: object) -> httpx.Response:
        document = {**json.loads(wanted.document()), "extras": {"jupyterPai": {"kubernetes": choice}}}
        text = json.dumps(document, indent=2)
        return await product.client.post(
            "/api/v2/jobs", content=text, params={"name": wanted.name, "filename": "job.json"}
        )

    refused = await submit(good("refused"), priorityClass="system-node-critical")
    assert refused.status_code == 400, refused.text
    (fault,) = refused.json()["errors"]
    assert fault["path"] == "$.extras.jupyterPai.kubernetes.priorityClass"
    assert (fault["line"] > 1, low in fault["hint"]) == (True, True)
    for field, value, said in (
        ("priorityClass", "missing", "PriorityClass"),
        ("imagePullSecrets", ["missing"], "Secret"),
    ):
        lacks = good(f"lacks-{said.lower()}")
        assert (await submit(lacks, **{field: value})).status_code == 202
        job = await product.ended(lacks)
        assert (job["state"], job["retries"]) == ("FAILED", 0)
        assert "does not have what its document asks for" in str(job["taskRoles"])
        assert "start-forbidden" in str(job["taskRoles"])
        assert said in str(job["taskRoles"])
    chooses = patient("chooses")
    assert (await submit(chooses, priorityClass=low)).status_code == 202
    await product.running(chooses)
    (pod,) = (await product.site.kubectl.get("pods", "-l", "jupyter-pai/job-name=chooses"))["items"]
    assert (pod["spec"]["priorityClassName"], pod["spec"]["serviceAccountName"]) == (low, "tasks")
    await product.release(chooses)
    await product.ended(chooses)


async def test_a_webhook_that_does_not_answer_is_told_of_and_costs_nothing(product: Product) -> None:
    kubectl = product.site.kubectl
    name = f"silent-{kubectl.namespace}"
    webhook = {
        "name": "silent.example.org",
        "clientConfig": {"url": "https://127.0.0.1:9/pods"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": kubectl.namespace}},
        "failurePolicy": "Fail",
        "timeoutSeconds": 1,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    about = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    await kubectl.create({**about, "kind": "ValidatingWebhookConfiguration", "webhooks": [webhook]})
    tried = json.dumps(hog("tried", "carol", 0))

    async def in_force() -> bool:
        return (
            "failed calling webhook"
            in (await kubectl.attempt("create", "--dry-run=server", "-f", "-", given=tried)).err
        )

    try:
        await until(in_force, "the webhook to be asked", LIMIT_S)
        waits = await product.submit(good("waits-for-a-webhook"))
        said = "a webhook that the cluster asks about pods does not answer"
        job = await product.until(waits, lambda job: said in str(job["why"]), "to tell of the webhook")
        assert "silent.example.org" in job["why"]
    finally:
        await kubectl("delete", "validatingwebhookconfiguration", name)
    await settled(product)
    assert not [line for line in await product.told(waits) if line.startswith("retry")]


async def test_a_limit_that_a_document_goes_beyond_fails_its_job_and_costs_nothing(product: Product) -> None:
    kubectl = product.site.kubectl
    limits = {"limits": [{"type": "Container", "max": {"memory": "64Mi"}, "default": {"memory": "32Mi"}}]}
    await kubectl.create({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"}, "spec": limits})
    try:
        big = await product.submit(Wanted("too-big", code=None, reason="start-forbidden"))
        await product.ended(big)
    finally:
        await kubectl("delete", "limitrange", "small")
    await settled(product)
    assert not [line for line in await product.told(big) if line.startswith("retry")]
    assert "memory" in (await product.task(big))["exit"]["message"]


async def test_a_rule_of_the_cluster_against_it_fails_a_job_in_the_words_of_the_rule(product: Product) -> None:
    async with a_rule_against(product.site.kubectl, "never"):
        refused = Wanted("refused", code=None, reason="start-forbidden")
        await product.submit(refused, name="never")
        await product.submit(good("allowed-beside"))
        await settled(product)
    exit_ = (await product.task(refused))["exit"]
    assert "a rule of the cluster forbids" in exit_["message"]
    assert SAID in exit_["message"]


async def test_a_node_that_is_full_gives_a_task_back_to_the_queue_with_its_words(
    site: Site, faulty: Cluster, tmp_path: Path
) -> None:
    """Pods of other people take the room, and are not counted; pods of ours name their node themselves.

    A refusal is remembered: what comes afterwards goes to the other node, or waits when both have refused.
    """
    room = {
        each["metadata"]["name"]: float(each["status"]["allocatable"]["cpu"]) - 0.5
        for each in (await faulty.kubectl.get("nodes"))["items"]
    }
    env = {"PAI_BACKEND_KUBERNETES__NODES__COUNT_OTHER_PODS": "false"}
    async with product_on(site, tmp_path / "direct", {"binding": "direct"}, env) as product:
        await take_room(site.kubectl, "carol", room["carol"])
        beside = []
        for number in range(3):
            beside.append(await product.submit(Wanted(f"beside-refusals-{number}", attempts=None)))
            await product.ended(beside[-1])
        refusals = [sum(line.startswith("retry") for line in await product.told(each)) for each in beside]
        assert sum(refusals) <= 1, refusals
        await take_room(site.kubectl, "dan", room["dan"])
        full = await product.submit(Wanted("full", code=None, reason="stopped", attempts=None))
        job = await product.until(
            full, lambda job: str(job["why"]).startswith("waits for"), "to have been refused by both"
        )
        assert job["state"] == "WAITING"
        assert "OutOfcpu" in " ".join(await product.told(full))
        await site.kubectl("delete", "pods", "hog-carol", "hog-dan", "--grace-period=1", "--timeout=60s")
        await product.stop(full)
        await settled(product)
        assert any(line.startswith("retry 1 free=True") for line in await product.told(full))


async def test_a_task_goes_where_others_have_left_room_and_waits_with_the_reason_where_they_have_not(
    product: Product, faulty: Cluster, record_property: Callable[[str, object], None]
) -> None:
    """At once, without being refused by any kubelet."""
    kubectl = product.site.kubectl
    room = {
        each["metadata"]["name"]: float(each["status"]["allocatable"]["cpu"])
        for each in (await faulty.kubectl.get("nodes"))["items"]
    }
    await take_room(kubectl, "carol", room["carol"] - 0.5)
    beside = [await product.submit(good(f"beside-{number}")) for number in range(3)]
    with timed(record_property, "placed_beside_others_s"):
        for each in beside:
            await product.ended(each)
    await take_room(kubectl, "dan", room["dan"] - 0.5)
    waits = await product.submit(good("waits-for-others"))
    job = await product.until(waits, lambda job: job["why"], "to say why it waits")
    assert job["state"] == "WAITING"
    await kubectl("delete", "pod", "hog-dan", "--grace-period=1", "--timeout=60s")
    await product.ended(waits)
    await kubectl("delete", "pod", "hog-carol", "--grace-period=1", "--timeout=60s")
    await settled(product)
    for each in (*beside, waits):
        assert not [line for line in await product.told(each) if line.startswith("retry")], "no kubelet refused it"
