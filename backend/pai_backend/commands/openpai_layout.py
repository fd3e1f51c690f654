"""The machines of an OpenPAI cluster, as its ``layout.yaml`` lists them.

Source: OpenPAI 1.8, ``contrib/kubespray`` (``machine-sku``, ``machine-list``); before 1.5 the GPUs of a SKU stood under
``gpu`` with their ``type``, and memory was a number of GB.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import yaml

from pai_backend.model.errors import DocumentError
from pai_backend.model.labels import is_label_value
from pai_backend.model.node import Gpu, Node
from pai_backend.scheduling.config import document
from pai_backend.scheduling.config.document import Faults, Path, TooManyFaults

_MEMORY: Final = re.compile(r"([0-9]{1,9})([MGT]?)(i?)B?", re.ASCII)
_DECIMAL: Final = {"M": 10**6, "G": 10**9, "T": 10**12}
_BINARY: Final = {"M": 2**20, "G": 2**30, "T": 2**40}
_MOST_GPUS: Final = 256  # of a node, as in a configuration of cells


@dataclass(frozen=True)
class _Kind:
    """A SKU of machines."""

    cpus: int
    memory_mb: int
    model: str
    gpus: int


def read_layout(text: str) -> tuple[list[Node], list[str]]:
    """The workers, and sentences about what else is to be done or known.

    Raises :class:`~pai_backend.model.errors.DocumentError` with the faults, 100 at most, each with its line and
    a remedy.
    """
    faults, nodes, masters = Faults(), list[Node](), list[str]()
    with suppress(TooManyFaults):
        root = document.compose(text, faults)
        if root is not None:
            nodes, masters = _read(root, faults)
    if not faults.errors and not nodes:
        faults.error(("machine-list",), root, "no machine is a worker", 'Write `pai-worker: "true"` at those that are.')
    if faults.errors:
        raise DocumentError(f"the layout cannot be used: {faults.errors[0].message}", errors=faults.errors)
    return nodes, _remarks(nodes, masters)


def _read(root: yaml.MappingNode, faults: Faults) -> tuple[list[Node], list[str]]:
    sections = document.mapping(root, (), faults)
    kinds = {
        name: _kind(entry, ("machine-sku", name), faults)
        for name, entry in document.mapping(sections.get("machine-sku"), ("machine-sku",), faults).items()
    }
    nodes: list[Node] = []
    masters: list[str] = []
    seen: set[str] = set()
    for path, item in document.sequence(sections.get("machine-list"), ("machine-list",), faults):
        found = document.mapping(item, path, faults)
        name = document.text(found.get("hostname"), (*path, "hostname"), faults, needed=True)
        if name in seen:
            faults.error((*path, "hostname"), found["hostname"], f"{name} is listed twice", "Keep one of the two.")
        seen.add(name)
        if not _yes(found.get("pai-worker")):
            masters.append(name)
            continue
        kind = document.text(found.get("machine-type"), (*path, "machine-type"), faults, needed=True)
        if kind and kind not in kinds:
            have = ", ".join(kinds) or "none"
            faults.error((*path, "machine-type"), found["machine-type"], f"no SKU {kind}", f"There is: {have}.")
        elif kind:
            address = document.text(found.get("hostip"), (*path, "hostip"), faults)
            nodes.append(_node(name, address or name, kinds[kind]))
    return nodes, masters


def _kind(entry: yaml.Node, path: Path, faults: Faults) -> _Kind:
    found = document.mapping(entry, path, faults)
    cpu = document.mapping(found.get("cpu"), (*path, "cpu"), faults)
    cpus = document.number(cpu.get("vcore"), (*path, "cpu", "vcore"), faults, least=1)
    memory = document.text(found.get("mem"), (*path, "mem"), faults, needed=True)
    memory_mb = _memory_mb(memory)
    if memory and memory_mb is None:
        faults.error((*path, "mem"), found["mem"], f"{memory} is not an amount of memory", "Write it as 220Gi.")
    key, word = ("computing-device", "model") if "computing-device" in found else ("gpu", "type")
    if key not in found:
        return _Kind(cpus, memory_mb or 0, "", 0)
    device = document.mapping(found[key], (*path, key), faults)
    model = document.text(device.get(word), (*path, key, word), faults, needed=True)
    if "." in model or not is_label_value(model):
        hint = "Use letters, digits, - and _: documents ask for it by this word."
        faults.error((*path, key, word), device[word], f"{model} cannot be a type of GPUs", hint)
    count = document.number(device.get("count"), (*path, key, "count"), faults, least=1)
    if count > _MOST_GPUS:
        faults.error((*path, key, "count"), device["count"], f"{count} GPUs in a node", f"At most {_MOST_GPUS}.")
    return _Kind(cpus, memory_mb or 0, model, min(count, _MOST_GPUS))


def _memory_mb(text: str) -> int | None:
    """MiB of ``220Gi``, ``220GB`` (decimal) or ``220`` (GB); None for anything else."""
    found = _MEMORY.fullmatch(text)
    if found is None or (found[3] and not found[2]):
        return None
    units = _BINARY if found[3] else _DECIMAL
    return int(found[1]) * units[found[2] or "G"] // 2**20


def _node(name: str, address: str, kind: _Kind) -> Node:
    gpus = tuple(Gpu(index=index, type=kind.model) for index in range(kind.gpus))
    return Node(name=name, address=address, machine=name, cpus=kind.cpus, memory_mb=kind.memory_mb, gpus=gpus)


def _yes(node: yaml.Node | None) -> bool:
    """OpenPAI writes it as text."""
    return isinstance(node, yaml.ScalarNode) and str(node.value).lower() == "true"


def _remarks(nodes: list[Node], masters: list[str]) -> list[str]:
    found = []
    if masters:
        found.append(f"No workers, hence without cells: {', '.join(masters)}.")
    for model in sorted({node.gpus[0].type for node in nodes if node.gpus}):
        names = " ".join(node.name for node in nodes if node.gpus and node.gpus[0].type == model)
        found.append(f"On Kubernetes, say their GPUs' type: kubectl label node {names} jupyter-pai/gpu-type={model}")
    without = [node.name for node in nodes if not node.gpus]
    if without:
        found.append(f"Without GPUs, hence without cells; tasks that ask for no GPU run there: {', '.join(without)}.")
    return found
