"""The chart's own NetworkPolicy, and the front doors that it tells tasks of, with pods that look like the chart's."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from pai_backend.model.ids import JobUid
from tests.kubernetes.cluster import programs
from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.cluster.kubectl import Json, Kubectl
from tests.kubernetes.deploy.helm import NEEDED, Helm
from tests.kubernetes.policies.conftest import CAROL, DAN, Guard, let_in, new_namespace, tasks_of
from tests.kubernetes.policies.knocking import PORT, SERVED, Knocker, address_of, stand_in

pytestmark = pytest.mark.asyncio(loop_scope="session")

HTTP, SSH, METRICS, UNNAMED = 8080, 2222, 9090, 9999
JOB = JobUid("j0000000000000c4a")


@dataclass
class Installed:
    """What of the chart is in a namespace: its policy, and a pod for each part."""

    objects: list[Json]
    kubectl: Kubectl
    parts: dict[str, str]
    """Address of each part's pod."""

    def of(self, kind: str) -> list[Json]:
        return [each for each in self.objects if each["kind"] == kind]

    def at(self, **ports: int) -> dict[str, str]:
        """These ports of parts, served."""
        return {f"{self.parts[part]}:{port}": SERVED for part, port in ports.items()}


@pytest_asyncio.fixture(loop_scope="session")
async def helm(tmp_path: Path) -> Helm:
    """helm without a cluster."""
    return Helm(await asyncio.to_thread(programs.build, "helm") / "helm", tmp_path)


async def install(helm: Helm, kubectl: Kubectl, values: Mapping[str, Any]) -> Installed:
    """The chart's policy, and pods with the labels and ports of its own that serve these ports and one more."""
    objects = await helm.objects({**NEEDED, **values}, kubectl.namespace)
    found = Installed(objects, kubectl, {})
    await kubectl.create(*found.of("NetworkPolicy"))
    for deployment in found.of("Deployment"):
        template = deployment["spec"]["template"]
        labels = template["metadata"]["labels"]
        part = labels["app.kubernetes.io/component"]
        ports = [*template["spec"]["containers"][0].get("ports", ()), {"containerPort": UNNAMED}]
        await kubectl.create(stand_in(part, CAROL, labels, ports))
        found.parts[part] = await address_of(kubectl, part)
    return found


async def test_only_named_ports_of_the_backend_are_open(helm: Helm, namespace_of_test: Kubectl) -> None:
    """To everybody, as the chart is when nothing else is said."""
    here = await install(helm, namespace_of_test, {})
    (stranger,) = await let_in(namespace_of_test, stand_in("stranger", DAN, {}))
    for each in (stranger, Knocker()):
        await each.until_it_hears(here.at(api=HTTP, gateway=SSH))
        await each.is_shut_out(here.at(api=UNNAMED, gateway=UNNAMED, controller=UNNAMED))


async def test_ports_of_the_backend_are_open_to_those_who_are_named(helm: Helm, namespace_of_test: Kubectl) -> None:
    """An ingress controller reaches the API, addresses the gateway, Prometheus its figures; and none of it the rest."""
    sources = {
        "apiFrom": [{"podSelector": {"matchLabels": {"app": "ingress"}}}],
        "gatewayFrom": [{"podSelector": {"matchLabels": {"app": "bastion"}}}],
        "metricsFrom": [{"podSelector": {"matchLabels": {"app": "prometheus"}}}],
    }
    values = {"networkPolicy": sources, "gateway": {"metricsPort": METRICS}}
    here = await install(helm, namespace_of_test, values)
    api, ssh, figures = here.at(api=HTTP), here.at(gateway=SSH), here.at(gateway=METRICS)
    reach = {"ingress": api, "bastion": ssh, "prometheus": figures, "stranger": {}}
    knockers = await let_in(namespace_of_test, *(stand_in(name, DAN, {"app": name}) for name in reach))
    for each, open_ in zip(knockers, reach.values(), strict=True):
        await each.until_it_hears(open_)
        await each.is_shut_out({**api, **ssh, **figures}.keys() - open_.keys())


async def test_the_charts_own_pods_are_front_doors_of_tasks(
    guarded: Cluster, bundle: str, helm: Helm, namespace_of_test: Kubectl, tmp_path: Path
) -> None:
    """By what the chart writes into the backend's configuration; others of its namespace get no task's port."""
    here = await install(helm, namespace_of_test, {})
    (written,) = here.of("ConfigMap")
    told = yaml.safe_load(written["data"]["config.yaml"])["kubernetes"]
    (stranger,) = await let_in(namespace_of_test, stand_in("stranger", CAROL, {}))
    async with (
        new_namespace(guarded, told["namespace"]) as tasks,
        Guard(tasks, bundle, tmp_path, front_doors=told["pods"]["front_doors"]).watching() as guard,
    ):
        (plan,) = tasks_of(JOB, "alice", [DAN])
        await guard.start(plan)
        target = f"{(await guard.addresses(plan))[0]}:{PORT}"
        for part in ("api", "gateway"):
            await Knocker(namespace_of_test, part).until_it_hears({target: SERVED})
        await stranger.is_shut_out([target])
