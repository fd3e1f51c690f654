"""What the tasks of a job's attempt share: ConfigMap, headless Service, NetworkPolicy."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence

from pai_backend.engine.base import StartRefused
from pai_backend.engine.bundle import layout
from pai_backend.engine.bundle.plan_files import compressed
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.objects import Object
from pai_backend.engine.kubernetes.pods.owner import PodOwner, metadata
from pai_backend.engine.kubernetes.pods.secret import SECRET_BYTES, is_alone, job_record
from pai_backend.model.ids import JobUid, job_of
from pai_backend.model.plan import TaskPlan
from pai_backend.model.pod_settings import FrontDoor, Network, PeerNames, PodSettings


def attempt_map(plan: TaskPlan, namespace: str, instance: str) -> Object:
    """The ConfigMap of the attempt that a task with peers belongs to; whichever task comes first makes it.

    It owns all the others. Raises StartRefused when the job info is more than a ConfigMap can hold.
    """
    job = job_of(plan.uid)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": naming.attempt_name(job, plan.job_attempt),
            "namespace": namespace,
            "labels": _labels(instance, job, plan.job_attempt),
            "annotations": {
                **{naming.JOB: job, naming.USER: plan.user, naming.VIRTUAL_CLUSTER: plan.virtual_cluster},
                **job_record(plan),
            },
        },
        "data": {layout.HOSTS: ""},
        **attempt_files(plan.job_info),
    }


def attempt_files(job_info: str) -> Object:
    """``binaryData`` of that ConfigMap, also to replace it; ``data`` are the hosts. Raises StartRefused as above."""
    return {"binaryData": info_file(job_info)}


def info_file(job_info: str) -> dict[str, str]:
    """The job info as ConfigMaps and Secrets hold it. Raises StartRefused when it is more than one can hold."""
    info = compressed(job_info.encode())
    if (size := len(info)) > SECRET_BYTES:
        raise StartRefused(
            f"the info of the job is {size:,} bytes compressed, and a ConfigMap holds at most {SECRET_BYTES:,}; "
            "make several jobs of it"
        )
    return {layout.JOB_INFO: base64.b64encode(info).decode("ascii")}


def service(plan: TaskPlan, owner: PodOwner, settings: PodSettings) -> Object | None:
    """The headless Service that gives the tasks of an attempt names in the cluster's DNS; None where nothing asks it.

    Also those that are not ready yet have an address: an early connection is refused, as on one machine.
    """
    if plan.job_tasks < 2 or settings.network is not Network.POD or settings.names is not PeerNames.DNS:
        return None
    job = job_of(plan.uid)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(owner, owner.name, _labels(owner.instance, job, plan.job_attempt)),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": naming.job_labels(owner.instance, job, plan.job_attempt),
        },
    }


def network_policy(plan: TaskPlan, owner: PodOwner, settings: PodSettings) -> Object | None:
    """Who may reach the ports of an attempt's tasks; None where everyone may, as with ports of the node.

    What a task may connect to is left alone. Source: Kubernetes documentation, "Network Policies": a pod's own
    node is always let in, so that kubelet and port-forward work.
    """
    if not _has_policy(settings):
        return None
    if is_alone(plan):
        return _shared_policy(owner, settings)
    job = job_of(plan.uid)
    peers = naming.job_labels(owner.instance, job, plan.job_attempt)
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(owner, owner.name, _labels(owner.instance, job, plan.job_attempt)),
        "spec": _let_in(peers, [{"podSelector": {"matchLabels": peers}}, *map(_from, settings.front_doors)]),
    }


def policy_label(plan: TaskPlan, owner: PodOwner, settings: PodSettings) -> dict[str, str]:
    """The label by which the pod of a task without peers is under the policy that such tasks share, if there is one."""
    return {naming.POLICY: policy_of(owner.instance, settings)} if is_alone(plan) and _has_policy(settings) else {}


def _has_policy(settings: PodSettings) -> bool:
    return settings.network_policy and settings.network is Network.POD


def _shared_policy(owner: PodOwner, settings: PodSettings) -> Object:
    """That of all tasks without peers in a namespace: the only thing that differs among them would be its name.

    It stays when they are gone, and never changes: with other front doors another one is made, for later tasks.
    """
    name = policy_of(owner.instance, settings)
    labels = naming.ours(owner.instance)
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {
            "name": name,
            "namespace": owner.namespace,
            "labels": {**labels, naming.COMPONENT: naming.Component.POLICY},
        },
        "spec": _let_in({**labels, naming.POLICY: name}, list(map(_from, settings.front_doors))),
    }


def policy_of(instance: str, settings: PodSettings) -> str:
    """The name of that policy, also the value of the label by which pods are under it.

    It has a digest of all that the policy says, so that one of a later version that says more is another one.
    """
    said = json.dumps(_let_in(naming.ours(instance), list(map(_from, settings.front_doors))), sort_keys=True)
    return naming.policy_name(instance, hashlib.sha256(said.encode()).hexdigest()[:10])


def _let_in(pods: Mapping[str, str], sources: Sequence[Object]) -> Object:
    """A policy's spec. Without a rule nothing gets in; a rule without sources would let everything in."""
    return {
        "podSelector": {"matchLabels": dict(pods)},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": list(sources)}] if sources else [],
    }


def _from(door: FrontDoor) -> Object:
    if door.cidr:
        return {"ipBlock": {"cidr": door.cidr}}
    found: Object = {"podSelector": {"matchLabels": dict(door.pod_labels)}}
    if door.namespace_labels:
        found["namespaceSelector"] = {"matchLabels": dict(door.namespace_labels)}
    return found


def _labels(instance: str, job: JobUid, attempt: int) -> dict[str, str]:
    return {**naming.job_labels(instance, job, attempt), naming.COMPONENT: naming.Component.JOB}
