"""The Secrets of a task: what it runs, and what its image is fetched with.

A Secret holds 1 MiB at most. Source: Kubernetes documentation, "Secrets" (size limit, kubernetes.io/dockerconfigjson).
"""

from __future__ import annotations

import base64
from typing import Final

from pai_backend.engine.base import StartRefused
from pai_backend.engine.bundle import layout
from pai_backend.engine.bundle.plan_files import compressed, plan_files, remote_outputs, stage_text
from pai_backend.engine.bundle.registry_login import docker_config
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.objects import Object
from pai_backend.engine.kubernetes.pods.owner import PodOwner, metadata
from pai_backend.model.plan import TaskPlan
from pai_backend.model.pod_settings import Network, PeerNames, PodSettings

SECRET_BYTES: Final = 1_048_576
"""All values of a Secret or ConfigMap together."""
RECORD_MAX: Final = 196_608  # characters of the record of a job, in an annotation
TASK_RECORD_MAX: Final = 32_768  # of that of a task beside it


def task_secret(plan: TaskPlan, owner: PodOwner, settings: PodSettings) -> Object:
    """The Secret with a task's plan.

    Raises StartRefused when no process can be given its variables, or when it is more than a Secret can hold; the
    message repeats no value.
    """
    files = plan_files(plan, settings.hosts_wait_s if keeps_hosts(plan, settings) else None)
    if is_alone(plan):
        files[layout.JOB_INFO] = compressed(plan.job_info.encode())
    inputs, remote = plan.inputs, remote_outputs(plan)
    if inputs or remote:
        files[layout.STAGE] = stage_text(inputs, remote, plan.user)
    size = sum(map(len, files.values()))
    if size > SECRET_BYTES:
        raise StartRefused(
            f"command and variables of the task are {size:,} bytes compressed, and a Secret holds at most "
            f"{SECRET_BYTES:,}; put what is large into a file"
        )
    return {**mark_secret(plan, owner), "data": {name: _base64(content) for name, content in files.items()}}


def mark_secret(plan: TaskPlan, owner: PodOwner) -> Object:
    """That Secret without a plan: what the attempt of a task that can never run is known and removed by."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(
            owner,
            naming.task_name(plan.uid),
            {**naming.task_labels(owner.instance, plan), naming.COMPONENT: naming.Component.TASK},
            {**naming.task_annotations(plan), **_records(plan)},
        ),
        "type": "jupyter-pai/plan",
    }


def job_record(plan: TaskPlan) -> dict[str, str]:
    """The annotation from which a database that lost the job takes it back; none where it is too large for one.

    An annotation and no file of the Secret: the task does not get it. All annotations of an object together hold
    256 KiB (Kubernetes documentation, "Annotations").
    """
    fits = 0 < len(plan.job_record) <= RECORD_MAX
    return {naming.JOB_RECORD: plan.job_record} if fits else {}


def _records(plan: TaskPlan) -> dict[str, str]:
    task = {naming.TASK_RECORD: plan.task_record} if 0 < len(plan.task_record) <= TASK_RECORD_MAX else {}
    return {**task, **(job_record(plan) if is_alone(plan) else {})}


def login_secret(plan: TaskPlan, owner: PodOwner) -> Object | None:
    """The Secret that the task's image is fetched with; None when the plan has no credentials."""
    if plan.image_login is None:
        return None
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(
            owner,
            naming.login_name(plan.uid),
            {**naming.task_labels(owner.instance, plan), naming.COMPONENT: naming.Component.LOGIN},
            naming.task_annotations(plan),
        ),
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": _base64(docker_config(plan.image_login, plan.image))},
    }


def is_alone(plan: TaskPlan) -> bool:
    """Whether it is the only task of its job. Then its Secret has the job info, and the ConfigMap need not be mounted.

    Each object that a pod mounts is a list and a watch of its kubelet's, and one more thing to wait for.
    """
    return plan.job_tasks < 2


def keeps_hosts(plan: TaskPlan, settings: PodSettings) -> bool:
    """Whether the launcher keeps the task's /etc/hosts: it has peers, and they are told by names that no DNS knows."""
    return plan.job_tasks > 1 and settings.network is Network.POD and settings.names is PeerNames.HOSTS


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
