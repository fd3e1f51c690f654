"""Names, labels and annotations of all objects that this engine makes in a cluster, and the namespaces they are in.

Every name is a function of a task's uid, of its job and attempt, or of its role and index, so that whatever is made
twice meets itself. ``bundle.host_names`` makes names of texts that Kubernetes does not take as they are.

Source: Kubernetes documentation, "Object Names and IDs" (RFC 1035 labels, 63 characters), "Labels and Selectors",
"Recommended Labels". ``docs/engine-kubernetes.md`` lists what stands on which object.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from pai_backend.engine.bundle.host_names import LABEL_MAX, dns_label, label_value
from pai_backend.model.cluster_settings import NamespacePer
from pai_backend.model.ids import JobUid, TaskUid, job_of
from pai_backend.model.plan import TaskPlan

SUFFIX_MAX: Final = 8  # of what is put behind a name for an object's other kin, such as "-login"
_HOLDER = "-database-holder"

PREFIX: Final = "jupyter-pai/"

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
INSTANCE: Final = "app.kubernetes.io/instance"
COMPONENT: Final = "app.kubernetes.io/component"
NAME: Final = "app.kubernetes.io/name"
PART_OF: Final = "app.kubernetes.io/part-of"
JOB: Final = PREFIX + "job"
ATTEMPT: Final = PREFIX + "attempt"
TASK: Final = PREFIX + "task"
ROLE: Final = PREFIX + "role"
INDEX: Final = PREFIX + "index"
USER: Final = PREFIX + "user"
VIRTUAL_CLUSTER: Final = PREFIX + "virtual-cluster"

JOB_NAME: Final = PREFIX + "job-name"

MANAGER: Final = "jupyter-pai"
TASK_APPLICATION: Final = "jupyter-pai-task"
"""Never a word of a user's: by ``app.kubernetes.io/name`` the chart's Services and policies know the backend itself."""

STOP: Final = PREFIX + "stop"
"""Annotation of a task's Secret and pod: it was asked to end, at this time (RFC 3339). Written before it is told."""
VERDICT: Final = PREFIX + "verdict"
"""Annotation of a pod: how the task ended, as JSON of a TaskExit, where the engine decided so. It stands for good."""
FORGOTTEN: Final = PREFIX + "forgotten"
"""Annotation of a task's Secret, emptied: its exit is recorded elsewhere, and it must never start again."""
REFRESHED: Final = PREFIX + "refreshed"
"""Annotation of a pod: digest of the job's files it should have; a change makes its kubelet look at once."""
PEERS: Final = PREFIX + "peers"
"""Annotation of a pod with hosts kept by the launcher: how many tasks of its attempt had a place when it was made."""
HOSTS: Final = PREFIX + "hosts"
"""Annotation of a pod: digest of the hosts of its attempt that it should have; a change works as that of REFRESHED."""
INPUTS: Final = PREFIX + "inputs"
"""Annotation of a pod: the names of what is fetched into its working directory, for people."""
KEEP: Final = PREFIX + "keep"
"""Annotation of a pod: its task would be kept if its command failed."""
GATE: Final = PREFIX + "gang"
"""Scheduling gate of a pod whose gang is not whole yet: the cluster gives it no node before it is taken off."""
GANG: Final = PREFIX + "gang"
"""Annotation of a pod that was made with that gate: how many tasks its gang has."""
NODE: Final = PREFIX + "node"
"""Annotation of such a pod: the node that was chosen for it, which its affinity names too."""
POLICY: Final = PREFIX + "policy"
"""Label of a pod without peers: which of the NetworkPolicies that such pods of a namespace share is its."""
DATABASE: Final = PREFIX + "database"
"""Label of what belongs to a task: identity of the backend's database. Another database's tasks are left alone."""
JOB_RECORD: Final = PREFIX + "job-record"
"""Annotation of the object that owns an attempt: sealed, from which a database that lost the job takes it back."""
TASK_RECORD: Final = PREFIX + "task-record"
"""Annotation of a task's Secret: the same, of the job's state and of this task."""
FINALIZER: Final = PREFIX + "exit"
"""Keeps a pod that was deleted, by whomever, until its exit is recorded elsewhere."""


class Component(StrEnum):
    """What an object is for; the value of its component label."""

    JOB = "job"
    TASK = "task"
    LOGIN = "login"
    POLICY = "policy"
    HOLDER = "holder"


def namespace_of(base: str, per: NamespacePer, *, virtual_cluster: str, user: str) -> str:
    """The namespace of a user's tasks in a virtual cluster; ``base`` is that of all, or what its name begins with."""
    owner = {
        NamespacePer.CLUSTER: "",
        NamespacePer.VIRTUAL_CLUSTER: virtual_cluster,
        NamespacePer.USER: user,
    }[per]
    return dns_label(f"{base}-{owner}") if owner else base


def task_name(uid: TaskUid) -> str:
    """The name of a task's pod and of its Secret."""
    return dns_label(uid, LABEL_MAX - SUFFIX_MAX)


def login_name(uid: TaskUid) -> str:
    """The name of the Secret that its image is pulled with."""
    return f"{task_name(uid)}-login"


def attempt_name(job: JobUid, attempt: int) -> str:
    """The name of what the tasks of a job's attempt share: ConfigMap (their owner), Service, NetworkPolicy."""
    return f"{dns_label(job, LABEL_MAX - 16)}-a{attempt}"


def policy_name(instance: str, digest: str) -> str:
    """The name of the NetworkPolicy that tasks without peers share in their namespace; others have other digests."""
    return f"{dns_label(instance, LABEL_MAX - len(digest) - 1)}-{digest}"


def holder_name(instance: str) -> str:
    """The name of the ConfigMap that says whose tasks the backend of this name runs; no attempt's ends so."""
    return f"{dns_label(instance, LABEL_MAX - len(_HOLDER))}{_HOLDER}"


def domain_of(job: JobUid, attempt: int, namespace: str, cluster_domain: str) -> str:
    """The domain that the host names of an attempt are in, as the cluster's DNS makes it of a headless Service.

    Source: Kubernetes documentation, "DNS for Services and Pods", hostname and subdomain.
    """
    return f"{attempt_name(job, attempt)}.{namespace}.svc.{cluster_domain}"


def ours(instance: str) -> dict[str, str]:
    """The labels of everything that the backend of this name makes: what its lists and watches select."""
    return {MANAGED_BY: MANAGER, INSTANCE: label_value(instance)}


def selector(labels: Mapping[str, str]) -> str:
    """Labels as the API's ``labelSelector`` has them."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def job_labels(instance: str, job: JobUid, attempt: int) -> dict[str, str]:
    """Labels of what the tasks of a job's attempt share; those of its tasks have them too."""
    return {**ours(instance), JOB: label_value(job), ATTEMPT: str(attempt)}


def task_labels(instance: str, plan: TaskPlan) -> dict[str, str]:
    """Labels of a task's pod and Secrets. Where a value cannot be a label, the annotation of the same name has it."""
    return {
        **job_labels(instance, job_of(plan.uid), plan.job_attempt),
        **({DATABASE: plan.database} if plan.database else {}),
        NAME: TASK_APPLICATION,
        PART_OF: MANAGER,
        JOB_NAME: label_value(plan.job_name),
        TASK: label_value(plan.uid),
        ROLE: label_value(plan.role),
        INDEX: str(plan.index),
        USER: label_value(plan.user),
        VIRTUAL_CLUSTER: label_value(plan.virtual_cluster),
    }


def task_annotations(plan: TaskPlan) -> dict[str, str]:
    """What a task's labels say, in full: the uid is read from here."""
    return {TASK: plan.uid, ROLE: plan.role, USER: plan.user, VIRTUAL_CLUSTER: plan.virtual_cluster}
