"""What the chart makes of its values: objects that a strict server takes, pods that a restricted namespace lets run."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from pai_backend.config.load import load
from pai_backend.config.settings import ProcessRole
from pai_backend.processes.components import Components
from tests.kubernetes.cluster.commands import run
from tests.kubernetes.cluster.kubectl import Json, Kubectl
from tests.kubernetes.deploy.helm import NEEDED, Helm
from tests.kubernetes.fixtures import Kubernetes

pytestmark = pytest.mark.asyncio

SCHEMAS = "1.34"
OTHERS = (
    "gateway.networking.k8s.io",
    "monitoring.coreos.com",
)  # custom resources, of which neither schemas nor servers here know

EVERYTHING: dict[str, Any] = {
    "api": {
        "publicUrl": "https://pai.example.com",
        "serviceDomain": "services.example.com",
        "service": {"type": "NodePort", "nodePort": 30080, "annotations": {"a": "b"}},
        "affinity": {"nodeAffinity": {}},
        "podAnnotations": {"a": "b"},
    },
    "controller": {
        "replicas": 2,
        "metricsPort": 9095,
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"operator": "Exists"}],
    },
    "monitoring": {"serviceMonitor": True, "alerts": True, "dashboard": True, "labels": {"release": "prometheus"}},
    "gateway": {
        "publicHost": "ssh.example.com",
        "publicPort": 22,
        "metricsPort": 9090,
        "service": {"type": "LoadBalancer", "externalTrafficPolicy": "Local"},
    },
    "image": {**NEEDED["image"], "pullSecrets": ["registry"]},
    "config": {
        "virtual_clusters": ["default", "vision"],
        "kubernetes": {"pods": {"names": "dns"}},
        "gateway": {"processes": 2, "drain_s": 40.5},
    },
    "commonLabels": {"team": "ml"},
    "storage": {"className": "nfs", "size": "1Ti"},
    "rbac": {"portForward": True},
    "ingress": {"enabled": True, "className": "nginx", "host": "pai.example.com", "tlsSecretName": "tls"},
    "gatewayApi": {
        "enabled": True,
        "host": "pai.example.com",
        "parentRefs": [{"name": "web"}],
        "ssh": {"enabled": True, "parentRefs": [{"name": "tcp"}]},
    },
    "networkPolicy": {
        "apiFrom": [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
        "metricsFrom": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
    },
    "priorityClassName": "system-cluster-critical",
    "terminationGracePeriodSeconds": 61,
}
FRONT: dict[str, Any] = {
    **EVERYTHING,
    "front": {"image": "registry.example.com/envoy:1.40"},
}
CASES: dict[str, dict[str, Any]] = {
    "the least": {},
    "everything": EVERYTHING,
    "with a front": FRONT,
    "standalone": {"standalone": True, "storage": {"accessModes": ["ReadWriteOnce"]}},
    "others' objects": {
        "storage": {"existingClaim": "logs"},
        "rbac": {"create": False},
        "serviceAccount": {"create": False, "names": {"api": "a", "controller": "c", "gateway": "g"}},
        "tasks": {"createNamespaces": False, "namespace": "batch"},
        "networkPolicy": {"enabled": False},
        "podDisruptionBudget": {"enabled": False},
        "runAs": None,
    },
    "namespaces of users": {"tasks": {"per": "user", "names": ["alice", "bob"], "podSecurity": "privileged"}},
}
cases = pytest.mark.parametrize("values", CASES.values(), ids=CASES.keys())


def full(values: Mapping[str, Any]) -> dict[str, Any]:
    return {**NEEDED, **values}


def named(objects: list[Json], kind: str) -> dict[str, Json]:
    return {each["metadata"]["name"]: each for each in objects if each["kind"] == kind}


def pods_of(objects: list[Json]) -> dict[str, Json]:
    return {
        name.rsplit("-", 1)[1]: each["spec"]["template"]["spec"] for name, each in named(objects, "Deployment").items()
    }


@cases
async def test_the_chart_is_clean_and_its_objects_are_valid(helm: Helm, values: dict[str, Any]) -> None:
    linted = await helm.lint(full(values))
    assert linted.code == 0, linted.out + linted.err
    objects = await helm.objects(full(values))
    assert objects
    for each in objects:
        if not each["apiVersion"].startswith(OTHERS):
            kubernetes_validate.validate(each, SCHEMAS, strict=True)


@cases
async def test_the_backend_takes_the_configuration_that_is_written(
    helm: Helm, values: dict[str, Any], tmp_path: Any
) -> None:
    written = named(await helm.objects(full(values)), "ConfigMap")["pai-jupyter-pai"]
    file = tmp_path / "config.yaml"
    file.write_text(written["data"]["config.yaml"])
    settings = load(["--config", str(file)]).settings
    assert settings.engine.kind == "kubernetes"
    assert settings.kubernetes.pods.runtime_image == NEEDED["runtimeImage"]
    assert settings.kubernetes.pods.inputs_image == "registry.example.com/jupyter-pai:1"
    own = values.get("config", {}).get("storage", {}).get("default_uri")
    assert settings.default_fs_uri == (own or "/mnt/jobs")
    reach = Components(settings, (ProcessRole.API,), "1", asyncio.Event()).task_reach()
    assert reach.task_fs_uri == settings.default_fs_uri, "tasks reach what is their storage by default"
    assert settings.virtual_clusters == tuple(values.get("config", {}).get("virtual_clusters", ["default"]))
    assert settings.api.public_url == values.get("api", {}).get("publicUrl")


async def test_tasks_have_a_claim_of_their_own_unless_another_storage_is_named(helm: Helm) -> None:
    users = {"tasks": {"per": "user", "names": ["alice", "bob"]}}

    async def claims(values: dict[str, Any]) -> set[str]:
        found = [
            each["metadata"] for each in await helm.objects(full(values)) if each["kind"] == "PersistentVolumeClaim"
        ]
        return {each["namespace"] for each in found if each["name"].endswith("-jobs")}

    assert await claims({}) == {"pai-tasks"}
    assert await claims(users) == {"pai-tasks-alice", "pai-tasks-bob"}
    assert await claims({"config": {"storage": {"default_uri": "s3://bucket"}}}) == set()
    assert await claims({"tasks": {"storage": {"enabled": False}}}) == set()
    assert await claims({"tasks": {"storage": {"existingClaim": "ours"}}}) == set()


async def test_volumes_of_the_administrator_stand_beside_the_claim(helm: Helm, tmp_path: Any) -> None:
    own = {"name": "data", "claim": "data", "path": "/data"}
    values = full({"config": {"kubernetes": {"pods": {"volumes": [own]}}}})
    (written,) = named(await helm.objects(values), "ConfigMap").values()
    volumes = yaml.safe_load(written["data"]["config.yaml"])["kubernetes"]["pods"]["volumes"]
    assert [each["name"] for each in volumes] == ["jobs", "data"]


async def test_each_pod_is_given_the_secrets_that_it_needs_and_no_other(helm: Helm) -> None:
    found = {
        part: {each["name"].removeprefix("PAI_BACKEND_") for each in pod["containers"][0]["env"] if "valueFrom" in each}
        for part, pod in pods_of(await helm.objects(full({}))).items()
    }
    common = {"DATABASE", "SECRET_KEY"}
    assert found == {
        "api": common | {"STORAGE__OPTIONS", "API__TOKENS", "API__USERS"},
        "controller": common | {"STORAGE__OPTIONS"},
        "gateway": common,
    }


async def test_who_may_reach_tasks_is_who_the_backend_is(helm: Helm) -> None:
    objects = await helm.objects(full({}))
    written = named(objects, "ConfigMap")["pai-jupyter-pai"]
    (door,) = yaml.safe_load(written["data"]["config.yaml"])["kubernetes"]["pods"]["front_doors"]
    assert door["namespace_labels"] == {"kubernetes.io/metadata.name": "pai"}
    for deployment in named(objects, "Deployment").values():
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        assert door["pod_labels"].items() <= labels.items()


async def test_pods_of_others_are_seen_by_the_controller_alone_and_only_where_it_counts_them(helm: Helm) -> None:
    async def seeing(values: dict[str, Any]) -> list[str]:
        roles = named(await helm.objects(full(values)), "ClusterRole")
        return [
            name.rpartition("-")[2]
            for name, role in roles.items()
            if any("pods" in rule["resources"] and rule["verbs"] == ["list", "watch"] for rule in role["rules"])
        ]

    assert await seeing({}) == ["controller"]
    assert await seeing({"config": {"kubernetes": {"nodes": {"count_other_pods": False}}}}) == []
    assert await seeing({"tasks": {"per": "user", "names": ["alice"]}}) == ["controller"]


@pytest.mark.parametrize(("kinds", "version"), [((), "v1alpha2"), ((f"{OTHERS[0]}/v1/TCPRoute",), "v1")])
async def test_a_tcproute_is_of_the_version_that_the_cluster_has(
    helm: Helm, kinds: tuple[str, ...], version: str
) -> None:
    (route,) = named(await helm.objects(full(EVERYTHING), kinds=kinds), "TCPRoute").values()
    assert route["apiVersion"] == f"{OTHERS[0]}/{version}"


async def test_time_outs_of_routes_are_the_controllers_own_unless_they_are_said(helm: Helm) -> None:
    for told, expected in ((EVERYTHING["gatewayApi"], None), ({"timeouts": {"request": "0s"}}, {"request": "0s"})):
        values = {**EVERYTHING, "gatewayApi": {**EVERYTHING["gatewayApi"], **told}}
        (route,) = named(await helm.objects(full(values)), "HTTPRoute").values()
        (rule,) = route["spec"]["rules"]
        assert rule.get("timeouts") == expected


async def test_figures_of_each_process_of_a_gateway_are_told_to_those_who_may_ask(helm: Helm) -> None:
    objects = await helm.objects(full(EVERYTHING))
    written = named(objects, "ConfigMap")["pai-jupyter-pai"]
    gateway = yaml.safe_load(written["data"]["config.yaml"])["gateway"]
    assert (gateway["metrics_host"], gateway["metrics_port"], gateway["processes"]) == ("0.0.0.0", 9090, 2)
    ports = {port["name"]: port["containerPort"] for port in pods_of(objects)["gateway"]["containers"][0]["ports"]}
    assert ports == {"ssh": 2222, "metrics": 9090}
    (policy,) = named(objects, "NetworkPolicy").values()
    assert policy["spec"]["ingress"][-1] == {
        "ports": [{"port": 9090, "endPort": 9091}],
        "from": EVERYTHING["networkPolicy"]["metricsFrom"],
    }


@pytest.mark.parametrize("standalone", [False, True])
async def test_a_front_passes_services_on_beside_the_api(helm: Helm, standalone: bool, tmp_path: Path) -> None:
    objects = await helm.objects(full({**FRONT, "standalone": standalone}))
    written = named(objects, "ConfigMap")["pai-jupyter-pai"]
    file = tmp_path / "envoy.yaml"
    file.write_text(written["data"]["envoy.yaml"])
    told = yaml.safe_load(written["data"]["envoy.yaml"])
    (listener,) = told["static_resources"]["listeners"]
    assert listener["address"]["socket_address"] == {"address": "0.0.0.0", "port_value": 8081}
    assert "*.services.example.com" in file.read_text()
    assert "pai.example.org" not in file.read_text()
    assert "%REQ(:SCHEME)%" not in file.read_text(), "TLS has ended before it"
    await run(Path(sys.executable).parent / "envoy", "--mode", "validate", "-c", file)
    assert yaml.safe_load(written["data"]["config.yaml"])["api"]["proxies"] == ["127.0.0.1"]

    having = [part for part, pod in pods_of(objects).items() if "front" in {each["name"] for each in pod["containers"]}]
    assert having == ["backend" if standalone else "api"]
    backends = {
        rule["host"]: rule["http"]["paths"][0]["backend"]["service"]["port"]["name"]
        for each in named(objects, "Ingress").values()
        for rule in each["spec"]["rules"]
    }
    assert backends == {"pai.example.com": "http", "*.services.example.com": "services"}
    routes = {
        each["spec"]["hostnames"][0]: each["spec"]["rules"][0]["backendRefs"][0]["port"]
        for each in named(objects, "HTTPRoute").values()
    }
    assert routes == {"pai.example.com": 80, "*.services.example.com": 8081}
    service = next(each for name, each in named(objects, "Service").items() if name.endswith("-api"))
    assert [each["port"] for each in service["spec"]["ports"]] == [80, 8081]


async def test_services_and_budgets_find_pods(helm: Helm) -> None:
    for values in ({}, CASES["standalone"]):
        objects = await helm.objects(full(values))
        pods = [each["spec"]["template"] for each in named(objects, "Deployment").values()]
        labels = [pod["metadata"]["labels"] for pod in pods]
        ports = {port["name"] for pod in pods for port in pod["spec"]["containers"][0].get("ports", ())}
        selectors = [each["spec"]["selector"] for each in named(objects, "Service").values()]
        selectors += [
            each["spec"]["selector"]["matchLabels"] for each in named(objects, "PodDisruptionBudget").values()
        ]
        for selector in selectors:
            assert sum(selector.items() <= each.items() for each in labels) == 1
        assert {each["spec"]["ports"][0]["targetPort"] for each in named(objects, "Service").values()} == ports


@pytest.mark.parametrize("case", ["the least", "everything", "with a front", "standalone"])
async def test_a_strict_server_takes_everything_into_a_restricted_namespace(
    kubernetes: Kubernetes, namespace: Kubectl, helm: Helm, case: str
) -> None:
    level = "pod-security.kubernetes.io/enforce=restricted"
    await namespace("label", "namespace", namespace.namespace, level)
    # Into one namespace, because others that are only tried out are not there for what is to be in them.
    values = {**full(CASES[case]), "tasks": {"namespace": namespace.namespace}}
    objects = [
        each for each in await helm.objects(values, namespace.namespace) if not each["apiVersion"].startswith(OTHERS)
    ]
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, **template["metadata"]},
            "spec": {key: value for key, value in template["spec"].items() if key != "serviceAccountName"},
        }
        for name, template in ((n, d["spec"]["template"]) for n, d in named(objects, "Deployment").items())
    ]
    whole = {"apiVersion": "v1", "kind": "List", "items": [*objects, *pods]}
    words = ("apply", "--dry-run=server", "--validate=strict", "-f", "-")
    said = await namespace.attempt(*words, given=json.dumps(whole))
    assert said.code == 0, said.err
    assert "would violate" not in said.err
    assert said.out.count("(server dry run)") == len(objects) + len(pods)
