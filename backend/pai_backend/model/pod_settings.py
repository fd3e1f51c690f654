"""What an administrator chooses about the pods of tasks.

The defaults ask for nothing that the ``baseline`` Pod Security Standard forbids, whatever a document says; what goes
beyond it (host network, host ports, host paths, more capabilities) is off until it is set here.
Source: Kubernetes documentation, "Pod Security Standards"; OpenPAI 1.8 for what its jobs had.
"""

from __future__ import annotations

import contextlib
from enum import StrEnum
from ipaddress import ip_network
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from pai_backend.model.base import Model
from pai_backend.model.labels import Labels, Toleration, is_label_key
from pai_backend.model.pod_choice import AllowedChoices, ObjectName, PodChoice


class Network(StrEnum):
    """How a task's ports are reached."""

    POD = "pod"
    """Each pod has an address of its own; peers are told names, which hold before there is a pod."""
    HOST_PORT = "host-port"
    """As ``pod``, and every leased port is passed on from the node's address, which peers are told."""
    HOST = "host"
    """The node's own network, as in OpenPAI: direct, and nothing between InfiniBand and the task."""


class PeerNames(StrEnum):
    """How the names of peers on the pod network are made addresses of."""

    HOSTS = "hosts"
    """The launcher keeps /etc/hosts from what the backend tells it: no cluster DNS is needed."""
    DNS = "dns"
    """A headless Service for each attempt of a job, and the cluster's DNS."""


class Binding(StrEnum):
    """Who puts a pod on the node that was chosen for it."""

    SCHEDULER = "scheduler"
    """The cluster's scheduler, by a node affinity that leaves it no choice: it sees all pods, also other people's."""
    DIRECT = "direct"
    """The pod says so itself (nodeName): quicker, and a node that is full refuses it."""


def _absolute(path: str) -> str:
    parts = path.split("/")
    if not path.startswith("/") or path == "/" or ":" in path or any(part in (".", "..") for part in parts):
        raise ValueError("must be an absolute path without ':', '.' and '..', and not the root")
    if parts[1] == "pai":
        raise ValueError("must not be in /pai, where the platform's own files are")
    return path.rstrip("/")


MountPath = Annotated[str, AfterValidator(_absolute)]


def _resource(name: str) -> str:
    if not is_label_key(name) or "/" not in name:
        raise ValueError("must be the name of an extended resource, such as nvidia.com/gpu")
    return name


ResourceName = Annotated[str, AfterValidator(_resource)]


def _cidr(text: str) -> str:
    """As Kubernetes takes it, which ignores bits behind the prefix and knows no netmasks; empty for none."""
    length = text.rpartition("/")[2]
    with contextlib.suppress(ValueError):
        if not text or (length != text and length.isdecimal() and ip_network(text, strict=False)):
            return text
    raise ValueError("must be addresses with the length of their prefix, such as 10.1.0.0/16 or fd00::/8")


Cidr = Annotated[str, AfterValidator(_cidr)]


class PodGpuSettings(Model):
    """How tasks get their GPUs."""

    by: Literal["device-plugin", "visible-devices"] = Field(
        default="device-plugin",
        description="`device-plugin`: the pod asks for a number of them, and the node's device plugin chooses which. "
        "`visible-devices`: the task gets exactly those that were placed, named in a variable that the container "
        "runtime reads, as HiveD does it; other pods on these nodes must not use the device plugin then.",
    )
    resource: ResourceName = Field(default="nvidia.com/gpu", description="What the device plugin offers.")
    resources: dict[str, ResourceName] = Field(
        default={},
        description="The same for GPUs of one type, where it is another: `{MI300: amd.com/gpu}`. A node that offers "
        "several of these has GPUs of several types, such as slices: `{MIG-1g: nvidia.com/mig-1g.10gb}`. "
        "Add new ones at the end: the numbers of devices go by the order.",
    )
    variable: str = Field(
        default="NVIDIA_VISIBLE_DEVICES",
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="What the container runtime reads. A task without GPUs has `none` in it with either way, since "
        "images set it to `all`.",
    )

    def resource_of(self, gpu_type: str) -> str:
        """The resource that GPUs of this type are asked for by."""
        return self.resources.get(gpu_type, self.resource)


class InfinibandSettings(Model):
    """What a task whose role asks for InfiniBand gets."""

    resource: ResourceName = Field(description="What the device plugin offers, e.g. `rdma/hca`.")
    count: int = Field(default=1, ge=1, description="How many.")
    capabilities: tuple[str, ...] = Field(
        default=(), description="Capabilities that its container gets; `IPC_LOCK` for memory that is registered."
    )


class SecuritySettings(Model):
    """As whom tasks run. Nothing set: as their images say."""

    restricted: bool = Field(
        default=False,
        description="Run under the `restricted` Pod Security Standard: never as root, no capabilities, no gain of "
        "privileges. Images must name a user by number, or `user` must be set.",
    )
    user: int | None = Field(default=None, ge=0, description="Number of the user, whatever the image says; 0 is root.")
    group: int | None = Field(default=None, ge=0, description="Number of the user's group.")
    fs_group: int | None = Field(default=None, ge=0, description="Group that volumes are given to where they can be.")
    capabilities: tuple[str, ...] = Field(
        default=(),
        description="Capabilities beyond the container runtime's own. OpenPAI's jobs had `SYS_ADMIN`, `IPC_LOCK` and "
        "`DAC_READ_SEARCH`.",
    )
    seccomp: Literal["RuntimeDefault", "Unconfined"] = Field(
        default="RuntimeDefault", description="Profile of system calls; `Unconfined` for debuggers of old kernels."
    )

    @model_validator(mode="after")
    def _as_restricted_asks(self) -> Self:
        if self.restricted and (self.user == 0 or self.capabilities or self.seccomp != "RuntimeDefault"):
            raise ValueError("restricted allows neither the user 0 nor capabilities nor another seccomp profile")
        return self


class NfsSource(Model):
    """A directory of an NFS server."""

    server: str = Field(min_length=1)
    path: str = Field(pattern=r"^/")


class VolumeSettings(Model):
    """A directory that tasks have beside their own: of every task, or where the document names a team storage."""

    name: str = Field(pattern=r"^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$", description="Name of the volume, unique.")
    claim: str | None = Field(default=None, description="A PersistentVolumeClaim of the tasks' namespace.")
    nfs: NfsSource | None = Field(default=None, description="`{server, path}`.")
    host_path: str | None = Field(
        default=None, pattern=r"^/", description="A directory of the nodes; needs the `privileged` standard."
    )
    path: MountPath | None = Field(default=None, description="Where every task has it.")
    storage: str | None = Field(
        default=None, description="The team storage that it is: tasks have it where their document says."
    )
    sub_path: str = Field(default="", pattern=r"^([^/].*)?$", description="Directory in the volume to begin at.")
    read_only: bool = Field(default=False, description="Tasks may only read.")

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        if sum(source is not None for source in (self.claim, self.nfs, self.host_path)) != 1:
            raise ValueError("needs exactly one of claim, nfs, host_path")
        if (self.path is None) == (self.storage is None):
            raise ValueError("needs either path or storage")
        return self


class FrontDoor(Model):
    """Who besides the peers of a task may reach its ports: pods by their labels, or addresses."""

    namespace_labels: Labels = Field(default={}, description="Labels of their namespace; none: the tasks' own.")
    pod_labels: Labels = Field(default={}, description="Labels of the pods; none: all pods of that namespace.")
    cidr: Cidr = Field(default="", description="Addresses instead, e.g. `10.0.0.0/8`.")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if bool(self.cidr) == bool(self.namespace_labels or self.pod_labels):
            raise ValueError("needs either labels or cidr")
        return self


class VcPodSettings(Model):
    """What pods of the tasks of one virtual cluster have instead of what all have, or beside it."""

    priority_class: ObjectName | None = Field(default=None, description="PriorityClass, instead of that of all.")
    runtime_class: ObjectName | None = Field(default=None, description="RuntimeClass, instead of that of all.")
    service_account: ObjectName | None = Field(
        default=None, description="ServiceAccount, instead of that of all; they never get its token."
    )
    image_pull_secrets: tuple[ObjectName, ...] = Field(
        default=(), description="More Secrets that images may be fetched with."
    )
    labels: Labels = Field(default={}, description="More labels; one of the same key replaces that of all.")
    annotations: dict[str, str] = Field(
        default={}, description="More annotations; one of the same key replaces that of all."
    )
    allowed: AllowedChoices = Field(default=AllowedChoices(), description="What documents may choose beside that.")


class PodSettings(Model):
    """The pods of tasks."""

    runtime_image: str = Field(
        default="", description="Image with the launcher and SSH server of tasks. Needed: there is no task without."
    )
    inputs_image: str = Field(
        default="", description="Image with this backend, to fetch inputs with. None: documents cannot have any."
    )
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = Field(
        default=None, description="When tasks' images are fetched. None: as Kubernetes does, `Always` for `latest`."
    )
    image_pull_secrets: tuple[str, ...] = Field(
        default=(), description="Secrets of the namespace that any task's image may be fetched with."
    )
    network: Network = Field(
        default=Network.POD, description="How ports are reached: `pod`, `host-port` or `host` (OpenPAI's way)."
    )
    names: PeerNames = Field(
        default=PeerNames.HOSTS, description="How peers are found on the pod network: `hosts` or `dns`."
    )
    cluster_domain: str = Field(
        default="cluster.local", pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", description="Domain of the cluster."
    )
    hosts_wait_s: int = Field(
        default=60, ge=0, description="Seconds that a task waits at most for its peers' addresses, with `hosts`."
    )
    network_policy: bool = Field(
        default=True, description="On the pod network, let only peers of the job and `front_doors` reach its ports."
    )
    front_doors: tuple[FrontDoor, ...] = Field(
        default=(), description="Proxy, gateway and backend, where they connect to pods: `{pod_labels}` or `{cidr}`."
    )
    binding: Binding = Field(
        default=Binding.SCHEDULER,
        description="`scheduler`: the cluster's scheduler binds the pod to its node; `direct`: the pod names it.",
    )
    gang_gates: bool = Field(
        default=True,
        description="Keep the pods of a job whose tasks start together from the scheduler (`schedulingGates`) until "
        "all of them are made and their nodes have room. Such pods are bound by the scheduler also with `direct`.",
    )
    scheduler_name: str = Field(default="", description="The scheduler, when it is not the default one.")
    priority_class: str = Field(default="", description="PriorityClass of all tasks.")
    runtime_class: str = Field(default="", description="RuntimeClass of all tasks, e.g. `nvidia`.")
    service_account: str = Field(default="", description="ServiceAccount of all tasks; they never get its token.")
    cpu_limits: bool = Field(default=True, description="Hold tasks to the CPUs they asked for also when some are idle.")
    ephemeral_storage_mb: int = Field(
        default=0, ge=0, description="MiB of the node's disk that a task may fill; 0: no limit of ours."
    )
    tolerations: tuple[Toleration, ...] = Field(default=(), description="Taints that all tasks tolerate.")
    gpus: PodGpuSettings = Field(default=PodGpuSettings(), description="How tasks get their GPUs.")
    infiniband: InfinibandSettings | None = Field(
        default=None, description="InfiniBand: `{resource, count, capabilities}`. None: roles cannot ask for it."
    )
    security: SecuritySettings = Field(default=SecuritySettings(), description="As whom tasks run.")
    volumes: tuple[VolumeSettings, ...] = Field(default=(), description="Directories that tasks have.")
    grace_s: int = Field(default=30, ge=0, description="Seconds between TERM and KILL when another client ends a pod.")
    labels: Labels = Field(default={}, description="More labels of all pods.")
    annotations: dict[str, str] = Field(default={}, description="More annotations of all pods.")
    allowed: AllowedChoices = Field(
        default=AllowedChoices(),
        description="What documents may choose in `extras.jupyterPai.kubernetes`, by name: "
        "`{priority_classes: [batch], runtime_classes: [], service_accounts: [], image_pull_secrets: []}`. "
        "What is not listed is refused at submission.",
    )
    by_vc: dict[str, VcPodSettings] = Field(
        default={},
        description="Classes, account, Secrets, labels and annotations of the pods of virtual clusters, "
        '`{vision: {priority_class: batch, labels: {cost-center: "7"}}}`.',
    )

    def of_vc(self, name: str) -> PodSettings:
        """The settings for the pods of a virtual cluster."""
        own = self.by_vc.get(name)
        if own is None:
            return self
        chosen = {key: getattr(own, key) for key in ("priority_class", "runtime_class", "service_account")}
        return self.model_copy(
            update={
                **{key: value for key, value in chosen.items() if value is not None},
                "image_pull_secrets": tuple(dict.fromkeys((*self.image_pull_secrets, *own.image_pull_secrets))),
                "labels": {**self.labels, **own.labels},
                "annotations": {**self.annotations, **own.annotations},
                "allowed": self.allowed.beside(own.allowed),
            }
        )

    def chosen(self, choice: PodChoice) -> PodSettings:
        """The settings for the pods of a document that chooses so, which was checked (``allowed.refused``)."""
        fields = ("priority_class", "runtime_class", "service_account")
        return self.model_copy(
            update={
                **{field: value for field in fields if (value := getattr(choice, field))},
                "image_pull_secrets": tuple(dict.fromkeys((*self.image_pull_secrets, *choice.image_pull_secrets))),
            }
        )

    @model_validator(mode="after")
    def _distinct_volumes(self) -> Self:
        names = [volume.name for volume in self.volumes]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"has two volumes with the name {twice}")
        paths = [volume.path for volume in self.volumes if volume.path]
        twice = next((path for path in paths if paths.count(path) > 1), None)
        if twice is not None:
            raise ValueError(f"has two volumes at {twice}")
        return self

    @property
    def standard(self) -> Literal["privileged", "baseline", "restricted"]:
        """The strictest Pod Security Standard that a namespace may enforce with these settings."""
        beyond = [
            self.network is not Network.POD,
            bool({*self.security.capabilities, *self._infiniband_capabilities} - BASELINE_CAPABILITIES),
            self.security.seccomp == "Unconfined",
            any(volume.host_path for volume in self.volumes),
        ]
        if any(beyond):
            return "privileged"
        nfs = any(volume.nfs for volume in self.volumes)  # restricted has a list of kinds of volumes without it
        restricted = self.security.restricted and not nfs and not self._infiniband_capabilities
        return "restricted" if restricted else "baseline"

    @property
    def _infiniband_capabilities(self) -> tuple[str, ...]:
        return self.infiniband.capabilities if self.infiniband else ()


BASELINE_CAPABILITIES = frozenset(
    {
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    }
)
"""Capabilities that the ``baseline`` standard lets a container add."""
