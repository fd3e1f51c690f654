"""From a node of the cluster's API to a node that tasks are placed on.

Source: Kubernetes documentation, "Node Status", "Well-Known Labels, Annotations and Taints", "Quantity"; NVIDIA's GPU
feature discovery and AMD's node labeller for the labels of GPUs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Final

from pydantic import ValidationError

from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.objects import Object, metadata, name_of
from pai_backend.engine.kubernetes.quantities import quantity
from pai_backend.engine.kubernetes.status.task import NodeAway
from pai_backend.engine.kubernetes.status.view import PodCondition, items, part, time_of, words
from pai_backend.model.cluster_settings import NodeReading
from pai_backend.model.labels import Taint, Toleration
from pai_backend.model.node import Gpu, Node, Others
from pai_backend.model.pod_settings import PodGpuSettings

GPU_TYPE: Final = naming.PREFIX + "gpu-type"
"""Label of a node: the SKU word of its GPUs, where the administrator says it."""
GPU_COUNT: Final = naming.PREFIX + "gpu-count"
"""Label of a node: how many GPUs it has, where no device plugin counts them (visible devices)."""
PRODUCTS: Final = ("nvidia.com/gpu.product", "amd.com/gpu.product-name")
MEMORY: Final = "nvidia.com/gpu.memory"  # MiB of each
UNNAMED: Final = "GPU"
INDEXES: Final = 1000
"""Devices of a further type have numbers of their own: those of the second in ``gpus.resources`` begin at 2000. So what
one type loses does not move the numbers of another one, by which cells know devices."""

TOLD_OTHERWISE: Final = frozenset(
    {"node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}
)
"""Taints that the cluster sets beside a cordon or a lost Ready, which a node of ours says in fields of its own."""

_MIB = Decimal(1024**2)


def node_of(
    found: Object,
    gpus: PodGpuSettings,
    reading: NodeReading,
    tolerations: Sequence[Toleration] = (),
    held: Mapping[str, Decimal] = MappingProxyType({}),
) -> Node:
    """The node. One whose numbers or taints cannot be read is not ready, and says why. Raises Malformed without a name.

    Taints that every pod of ours tolerates keep no task away, and are left out. CPU and memory are what the kubelet
    gives to pods, less what is to be spared. ``held`` is what pods of others hold there, which is taken from what is
    spared first; where it is not known, the cluster refuses what does not fit.
    """
    name = name_of(found)
    condition = _ready(found)
    address = _address(found) or name
    spec = part(found, "spec")
    try:
        room = part(part(found, "status"), "allocatable")
        cpus, others_cpus = _shared(room, held, "cpu", Decimal(1), Decimal(str(reading.spare_cpus)))
        memory_mb, others_memory_mb = _shared(room, held, "memory", _MIB, Decimal(reading.spare_memory_mb))
        devices = _gpus(found, room, gpus, reading)
        others = Others(cpus=others_cpus, memory_mb=others_memory_mb)
        if gpus.by == "device-plugin":
            others = others.model_copy(update=_held_gpus(devices, held, gpus))
        return Node(
            name=name,
            address=address,
            machine=name,
            cpus=cpus,
            memory_mb=memory_mb,
            gpus=devices,
            others=others,
            ready=condition.true,
            reason="" if condition.true else _why(condition),
            schedulable=spec.get("unschedulable") is not True,
            labels=_labels(found),
            taints=_taints(spec, tolerations),
        )
    except (ValueError, ValidationError) as error:
        reason = words(f"what the cluster says of it cannot be read ({error})")
        return Node(name=name, address=address, machine=name, cpus=0, memory_mb=0, ready=False, reason=reason)


def _shared(room: Object, held: Mapping[str, Decimal], name: str, unit: Decimal, spare: Decimal) -> tuple[int, int]:
    """How much of a resource tasks may have, in whole units, and how much of that others hold. Raises ValueError."""
    whole = quantity(room.get(name, "0")) / unit
    ours = max(0, int(whole - spare))
    left = max(0, int(whole - max(spare, held.get(name, Decimal()) / unit)))
    return ours, ours - left


def slim_node(found: Object) -> Object:
    """What is read of a node here. Heartbeats, images and what a machine is take most of a node's bytes."""
    spec, status = part(found, "spec"), part(found, "status")
    ready = [each for each in items(status, "conditions") if each.get("type") == "Ready"]
    return {
        "metadata": _only(metadata(found), "name", "uid", "resourceVersion", "labels"),
        "spec": _only(spec, "taints", "unschedulable"),
        "status": {**_only(status, "allocatable", "addresses"), "conditions": ready},
    }


def _only(found: Object, *names: str) -> Object:
    return {name: found[name] for name in names if name in found}


def away(found: Object) -> NodeAway | None:
    """Since when and why a node is not ready; None when it is, or when the cluster does not say since when."""
    condition = _ready(found)
    if condition.true or condition.since is None:
        return None
    return NodeAway(condition.since, _why(condition))


def _gpus(found: Object, room: Object, gpus: PodGpuSettings, reading: NodeReading) -> tuple[Gpu, ...]:
    labels = _labels(found)
    product = next((labels[key] for key in PRODUCTS if key in labels), UNNAMED)
    type_ = labels.get(GPU_TYPE) or reading.gpu_types.get(product, product)
    if gpus.by == "device-plugin":
        count = int(quantity(room.get(gpus.resource_of(type_), "0")))
    else:
        count = int(labels.get(GPU_COUNT, "0"))
    memory_mb = _whole(labels.get(MEMORY, "0"))
    devices = [Gpu(index=index, type=type_, memory_mb=memory_mb) for index in range(count)]
    if gpus.by == "device-plugin":
        devices += _further(room, gpus, type_, labels)
    return tuple(devices)


def _further(room: Object, gpus: PodGpuSettings, type_: str, labels: Mapping[str, str]) -> Iterator[Gpu]:
    """Devices of other types than the node's own: slices of GPUs, GPUs that are shared, GPUs of another vendor."""
    seen = {gpus.resource_of(type_)}
    for number, (kind, resource) in enumerate(gpus.resources.items(), 1):
        if kind == type_ or resource in seen:
            continue
        seen.add(resource)
        memory_mb = _whole(labels.get(f"{resource}.memory", "0"))
        for index in range(min(int(quantity(room.get(resource, "0"))), INDEXES)):
            yield Gpu(index=number * INDEXES + index, type=kind, memory_mb=memory_mb)


def _held_gpus(devices: Sequence[Gpu], held: Mapping[str, Decimal], gpus: PodGpuSettings) -> dict[str, object]:
    """How many of these devices others hold, and of a node with several types how many of each."""
    there = Counter(gpu.type for gpu in devices)
    by_type = {kind: min(count, int(held.get(gpus.resource_of(kind), 0))) for kind, count in there.items()}
    return {"gpus": sum(by_type.values()), "by_type": by_type if len(by_type) > 1 else {}}


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0


def _taints(spec: Object, tolerations: Sequence[Toleration]) -> tuple[Taint, ...]:
    found = [each for each in items(spec, "taints") if each.get("key") not in TOLD_OTHERWISE]
    taints = (
        Taint.model_validate({"key": each.get("key"), "value": each.get("value", ""), "effect": each.get("effect")})
        for each in found
    )
    return tuple(taint for taint in taints if not any(each.tolerates(taint) for each in tolerations))


def _ready(found: Object) -> PodCondition:
    conditions = items(part(found, "status"), "conditions")
    each = next((each for each in conditions if each.get("type") == "Ready"), None)
    if each is None:
        return PodCondition(true=False, message="its kubelet has not said yet that it is ready")
    return PodCondition(
        true=each.get("status") == "True",
        reason=str(each.get("reason") or ""),
        message=words(str(each.get("message") or "")),
        since=time_of(each.get("lastTransitionTime")),
    )


def _why(condition: PodCondition) -> str:
    return condition.message or condition.reason or "no reason is given"


def _address(found: Object) -> str:
    by_type = {each.get("type"): each.get("address") for each in items(part(found, "status"), "addresses")}
    chosen = by_type.get("InternalIP") or by_type.get("ExternalIP") or by_type.get("Hostname")
    return chosen if isinstance(chosen, str) else ""


def _labels(found: Object) -> dict[str, str]:
    return {str(key): str(value) for key, value in part(metadata(found), "labels").items()}
