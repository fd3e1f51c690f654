"""The shapes of OpenPAI's answers about storages, groups, and what runs where as Kubernetes tells it.

Names are OpenPAI's. What it tells of a storage's keys and passwords is nowhere here.
"""

from __future__ import annotations

from pydantic import Field, RootModel

from pai_backend.api.wire import Camel


class StorageItem(Camel):
    """A team storage that the caller may name in ``extras.storages``."""

    name: str
    share: bool = Field(default=True, description="Whether all who may use it see the same files; they do.")
    volume_name: str


class StorageSummary(Camel):
    """Storages, by name."""

    storages: tuple[StorageItem, ...]


class StorageDetail(StorageItem):
    """One of them. ``data`` is empty: where a storage is, and by what account, is its administrator's."""

    type: str = Field(description="nfs, or other.")
    data: dict[str, str] = Field(default_factory=dict)
    mount_options: tuple[str, ...] = ()


class Acls(Camel):
    """What members of a group may use."""

    admin: bool
    virtual_clusters: tuple[str, ...]
    manages: tuple[str, ...] = Field(description="Virtual clusters that members manage.")
    everything: bool = Field(description="Members may use every virtual cluster, also later ones.")
    storage_configs: tuple[str, ...]


class GroupExtension(Camel):
    """The part of a group that is not its name."""

    acls: Acls


class UserGroup(Camel):
    """A group of users. `default` has every user and `admingroup` every administrator."""

    groupname: str
    description: str
    external_name: str = Field(default="", description="Name of the group at the provider that signs users in.")
    members: tuple[str, ...] = Field(description="Users in it, of these two groups none.")
    extension: GroupExtension


class GroupList(RootModel[tuple[UserGroup, ...]]):
    """All groups."""


class Metadata(Camel):
    """What Kubernetes calls an object."""

    name: str
    labels: dict[str, str]


class TaintObject(Camel):
    """A taint as Kubernetes has it."""

    key: str
    value: str
    effect: str


class NodeSpec(Camel):
    """Whether and for whom a node takes tasks."""

    unschedulable: bool
    taints: tuple[TaintObject, ...]


class Condition(Camel):
    """How a node is."""

    type: str
    status: str
    message: str


class NodeAddress(Camel):
    """Where a node is."""

    type: str
    address: str


class NodeStatus(Camel):
    """What a node has."""

    capacity: dict[str, str]
    allocatable: dict[str, str]
    conditions: tuple[Condition, ...]
    addresses: tuple[NodeAddress, ...]


class NodeObject(Camel):
    """A node as an object of Kubernetes, on whatever engine."""

    metadata: Metadata
    spec: NodeSpec
    status: NodeStatus


class NodeObjects(Camel):
    """All nodes."""

    kind: str = "NodeList"
    api_version: str = "v1"
    items: tuple[NodeObject, ...]


class Requests(Camel):
    """What a container asks for."""

    requests: dict[str, str]


class ContainerObject(Camel):
    """The one container of a task."""

    name: str = "app"
    image: str
    resources: Requests


class PodSpec(Camel):
    """Where a task is and what it asks for."""

    node_name: str
    containers: tuple[ContainerObject, ...]


class PodStatus(Camel):
    """How a task is."""

    phase: str
    host_ip: str = Field(alias="hostIP")


class PodObject(Camel):
    """A task with a place as an object of Kubernetes, on whatever engine."""

    metadata: Metadata
    spec: PodSpec
    status: PodStatus


class PodObjects(Camel):
    """All tasks with a place."""

    kind: str = "PodList"
    api_version: str = "v1"
    items: tuple[PodObject, ...]
