"""The pod of one task.

A bare pod: only this backend decides whether a task is run again. Its node is decided; the cluster's scheduler, where
it takes part, has no choice left. Its finalizer keeps it until its exit is recorded elsewhere, even if another client
deletes it. Nothing secret is in it: what it runs, with which variables, is in its Secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pai_backend.engine.base import StartForbidden, StartRefused
from pai_backend.engine.bundle import layout
from pai_backend.engine.bundle.host_names import host_name
from pai_backend.engine.bundle.plan_files import remote_outputs
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.objects import Object
from pai_backend.engine.kubernetes.pods.devices import device_variables, init_resources, resources
from pai_backend.engine.kubernetes.pods.job import policy_label
from pai_backend.engine.kubernetes.pods.owner import PodOwner, metadata
from pai_backend.engine.kubernetes.pods.secret import keeps_hosts
from pai_backend.engine.kubernetes.pods.security import init_security, pod_security, runtime_security, task_security
from pai_backend.engine.kubernetes.pods.volumes import (
    Mounted,
    inputs_mounts,
    mounted,
    runtime_mounts,
    task_mounts,
    volumes,
)
from pai_backend.model.ids import job_of
from pai_backend.model.labels import Effect, Operator, Toleration
from pai_backend.model.plan import TaskPlan
from pai_backend.model.pod_settings import Binding, Network, PeerNames, PodSettings

STAGING = "pai_backend.engine.kubernetes.stage_inputs"
"""The program that fetches inputs, in the image that has this backend."""
LOOK_INSIDE_S = 2
"""How often a task that would be kept is asked whether its command still runs: only of such a task nothing else
tells, because its container goes on."""

LOST_NODES = tuple(
    Toleration(key=f"node.kubernetes.io/{condition}", operator=Operator.EXISTS, effect=Effect.NO_EXECUTE)
    for condition in ("not-ready", "unreachable")
)
"""How long a node may be away is decided by us alone; without these the cluster would delete its pods after five
minutes (Kubernetes documentation, "Taint based Evictions")."""


def build_pod(plan: TaskPlan, owner: PodOwner, settings: PodSettings, tolerations: Iterable[Toleration] = ()) -> Object:
    """The pod for a plan; a function of its arguments alone.

    ``tolerations`` are those of the kind of node that it was placed on. Raises StartRefused when the cluster, as it is
    configured, cannot run it; StartForbidden for what its document may not choose (any longer).
    """
    if refused := settings.allowed.refused(plan.pods):
        raise StartForbidden(
            f"its document asks for {refused[0].field} {refused[0].name}, which is not allowed; remove it, or ask the "
            "administrator to list it in kubernetes.pods.allowed"
        )
    settings = settings.chosen(plan.pods)
    extra = mounted(plan, settings)
    tolerated = (*LOST_NODES, *settings.tolerations, *tolerations)
    spec: Object = {
        **_where(plan, settings),
        **_fixed(plan, owner, settings),
        "tolerations": [_toleration(each) for each in dict.fromkeys(tolerated)],
        "securityContext": pod_security(settings),
        "initContainers": _init_containers(plan, settings, extra),
        "containers": [_task(plan, settings, extra)],
        "volumes": volumes(plan, settings, extra),
    }
    found = metadata(
        owner,
        naming.task_name(plan.uid),
        {
            **settings.labels,
            **naming.task_labels(owner.instance, plan),
            **policy_label(plan, owner, settings),
            naming.COMPONENT: naming.Component.TASK,
        },
        {
            "kubectl.kubernetes.io/default-container": layout.TASK_CONTAINER,
            "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
            **settings.annotations,
            **naming.task_annotations(plan),
            **_notes(plan, settings),
        },
    )
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**found, "finalizers": [naming.FINALIZER]},
        "spec": spec,
    }


def _notes(plan: TaskPlan, settings: PodSettings) -> dict[str, str]:
    """Annotations that the reading of the pod goes by; its spec is not kept in memory."""
    found = {}
    if plan.inputs:
        found[naming.INPUTS] = ", ".join(item.name for item in plan.inputs)
    if keeps_hosts(plan, settings):
        found[naming.PEERS] = str(plan.job_placed)
    if plan.keep_on_failure:
        found[naming.KEEP] = "true"
    if is_gated(plan, settings):
        found |= {naming.GANG: str(plan.gang), naming.NODE: plan.placement.node}
    return found


def is_gated(plan: TaskPlan, settings: PodSettings) -> bool:
    """Whether the task's pod is made with a gate, which is taken off once its gang is whole (``gangs``)."""
    return plan.gang > 1 and settings.gang_gates


def _where(plan: TaskPlan, settings: PodSettings) -> Object:
    """The node, and how the pod gets there. The API server takes no gated pod that names its node itself."""
    node, gated = plan.placement.node, is_gated(plan, settings)
    if settings.binding is Binding.DIRECT and not gated:
        return {"nodeName": node}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    found: Object = {"affinity": {"nodeAffinity": required}}
    if gated:
        found["schedulingGates"] = [{"name": naming.GATE}]
    if settings.scheduler_name:
        found["schedulerName"] = settings.scheduler_name
    return found


def _fixed(plan: TaskPlan, owner: PodOwner, settings: PodSettings) -> Object:
    """What has nothing to do with containers. Nothing of the cluster's API is told to the task."""
    found: Object = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": settings.grace_s,
    }
    if settings.network is Network.HOST:
        found |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    else:
        found["hostname"] = host_name(plan.role, plan.index)
        if plan.job_tasks > 1:
            job = job_of(plan.uid)
            found["subdomain"] = naming.attempt_name(job, plan.job_attempt)
            if settings.network is Network.POD and settings.names is PeerNames.DNS:
                domain = naming.domain_of(job, plan.job_attempt, owner.namespace, settings.cluster_domain)
                found["dnsConfig"] = {"searches": [domain]}
    chosen = {
        "priorityClassName": settings.priority_class,
        "runtimeClassName": settings.runtime_class,
        "serviceAccountName": settings.service_account,
    }
    found |= {name: value for name, value in chosen.items() if value}
    logins = list(settings.image_pull_secrets)
    if plan.image_login is not None:
        logins.append(naming.login_name(plan.uid))
    if logins:
        found["imagePullSecrets"] = [{"name": name} for name in logins]
    return found


def _toleration(each: Toleration) -> Object:
    found: Object = {"operator": each.operator.value}
    if each.key:
        found["key"] = each.key
    if each.value:
        found["value"] = each.value
    if each.effect is not None:
        found["effect"] = each.effect.value
    if each.toleration_seconds is not None:
        found["tolerationSeconds"] = each.toleration_seconds
    return found


def _init_containers(plan: TaskPlan, settings: PodSettings, extra: Sequence[Mounted]) -> list[Object]:
    """What is put in place before: the runtime bundle; then inputs, by the program that all engines use."""
    common: Object = {
        "resources": init_resources(plan, settings),
        "securityContext": init_security(settings),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    runtime = {
        "name": layout.RUNTIME_CONTAINER,
        "image": settings.runtime_image,
        "command": [layout.INSTALLER, layout.RUNTIME, layout.STATE],
        "volumeMounts": runtime_mounts(),
        "securityContext": runtime_security(settings),
    }
    if not plan.inputs and not remote_outputs(plan):
        return [{**common, **runtime}]
    if not settings.inputs_image:
        raise StartRefused(
            "its document names a codeDir or an outputDir that must be fetched or made from outside, and no image for "
            "that is configured; leave it out, or ask the administrator to set inputs_image"
        )
    inputs = {
        "name": layout.INPUTS_CONTAINER,
        "image": settings.inputs_image,
        "command": ["python", "-E", "-P", "-m", STAGING, layout.PLAN],
        "workingDir": layout.WORK,
        "volumeMounts": inputs_mounts(extra),
    }
    return [{**common, **runtime}, {**inputs, **common}]


def _task(plan: TaskPlan, settings: PodSettings, extra: Sequence[Mounted]) -> Object:
    """The task's own container. Its command is the launcher; the image's entry point is not used, as in OpenPAI."""
    found: Object = {
        "name": layout.TASK_CONTAINER,
        "image": plan.image,
        "command": [layout.LAUNCHER],
        "workingDir": layout.WORK,
        "env": _variables(device_variables(plan, settings)),
        "resources": resources(plan, settings),
        "securityContext": task_security(plan, settings),
        "terminationMessagePath": layout.TERMINATION_LOG,
        "terminationMessagePolicy": "File",
        "volumeMounts": task_mounts(plan, settings, extra),
    }
    if settings.image_pull_policy is not None:
        found["imagePullPolicy"] = settings.image_pull_policy
    if settings.network is not Network.POD:
        numbers = sorted({port for ports in plan.placement.ports.values() for port in ports})
        found["ports"] = [{"containerPort": port, "hostPort": port, "protocol": "TCP"} for port in numbers]
    if plan.keep_on_failure:
        found["readinessProbe"] = {
            "exec": {"command": [layout.LAUNCHER, "--is-running"]},
            "periodSeconds": LOOK_INSIDE_S,
            "failureThreshold": 1,
            "timeoutSeconds": 5,
        }
    return found


def _variables(devices: Mapping[str, str]) -> list[Object]:
    """Variables that are no secret, and that only the cluster can fill in."""
    addresses = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
        for name, path in (("PAI_POD_IP", "status.podIP"), ("PAI_NODE_NAME", "spec.nodeName"))
    ]
    return [*addresses, *({"name": name, "value": value} for name, value in devices.items())]
