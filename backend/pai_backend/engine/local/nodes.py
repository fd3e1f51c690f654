"""The machines of a local engine: this one as it is, and simulated ones that share it."""

from __future__ import annotations

import importlib
import logging
import os
import platform
import re
from collections.abc import Mapping
from types import ModuleType

from pai_backend.engine.local.layout import LOOPBACK
from pai_backend.model.labels import Taint, is_label_value
from pai_backend.model.node import Gpu, Node

_log = logging.getLogger(__name__)

SIMULATED_GPU_MEMORY_MB = 12288  # a TITAN X's, so that a simulated table looks plausible
_BRANDS = frozenset({"NVIDIA", "GEFORCE", "TESLA", "QUADRO", "GRAPHICS", "DEVICE"})
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""What Python calls a machine -> what Go, and with it Kubernetes, does."""
_FORM = re.compile(r"(\d+GB|HBM\d\w*|PCIE|SXM\d*|NVL)", re.ASCII)  # how it is built in, not what it is


def sku_word(name: str) -> str:
    """The word that documents use as gpuType for a driver's device name, ``TITANX`` for ``NVIDIA TITAN X (Pascal)``."""
    plain = re.sub(r"\(.*?\)", " ", name).upper()
    words = [word for word in re.split(r"[\s\-_]+", plain) if word and word not in _BRANDS]
    kept = [word for word in words if not _FORM.fullmatch(word)]
    return "".join(kept) or "GPU"


def detect_machine() -> Node:
    """The machine as it is: usable CPUs, memory in MiB, and the GPUs that its driver shows (none without one)."""
    try:
        driver = importlib.import_module("pynvml")
    except ImportError:
        driver = None
    host = platform.node() or "localhost"
    return Node(
        name=host,
        address=LOOPBACK,
        machine=host,
        cpus=_usable_cpus(),
        memory_mb=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20,
        gpus=_gpus(driver) if driver else (),
    )


def simulated_node(name: str, gpu_type: str, gpu_count: int, cpus: int, memory_mb: int) -> Node:
    """A node that is only a name: its tasks run here, share this machine's ports and see simulated GPUs."""
    gpus = tuple(
        Gpu(
            index=index,
            type=gpu_type,
            uuid=f"GPU-simulated-{index}",
            memory_mb=SIMULATED_GPU_MEMORY_MB,
            simulated=True,
        )
        for index in range(gpu_count)
    )
    return Node(
        name=name,
        address=LOOPBACK,
        machine=platform.node() or "localhost",
        cpus=cpus,
        memory_mb=memory_mb,
        gpus=gpus,
        simulated=True,
    )


def marked(node: Node, labels: Mapping[str, str], taints: tuple[Taint, ...], *, schedulable: bool) -> Node:
    """The node with these labels and taints, and those labels that every node of Kubernetes has.

    So a document that selects a node by its name, or a machine's architecture, means the same here and there.
    Source: Kubernetes, "Well-Known Labels, Annotations and Taints".
    """
    everywhere = {
        "kubernetes.io/hostname": node.name,
        "kubernetes.io/os": platform.system().lower(),
        "kubernetes.io/arch": _ARCHITECTURES.get(platform.machine().lower(), platform.machine().lower()),
    }
    # A machine's own name may be no label's value ("Anna's laptop").
    known = {key: value for key, value in everywhere.items() if is_label_value(value)}
    return node.model_copy(update={"labels": {**known, **labels}, "taints": taints, "schedulable": schedulable})


def _usable_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _gpus(driver: ModuleType) -> tuple[Gpu, ...]:
    """What the NVIDIA driver shows. A driver that is broken is logged and counts as none."""
    try:
        driver.nvmlInit()
    except driver.NVMLError as exc:
        _log.info("no NVIDIA GPUs here: %s", exc)
        return ()
    try:
        return tuple(_gpu(driver, index) for index in range(driver.nvmlDeviceGetCount()))
    except driver.NVMLError as exc:
        _log.warning("the NVIDIA driver failed while its GPUs were listed, none are used: %s", exc)
        return ()
    finally:
        driver.nvmlShutdown()


def _gpu(driver: ModuleType, index: int) -> Gpu:
    handle = driver.nvmlDeviceGetHandleByIndex(index)
    return Gpu(
        index=index,
        type=sku_word(_text(driver.nvmlDeviceGetName(handle))),
        uuid=_text(driver.nvmlDeviceGetUUID(handle)),
        memory_mb=int(driver.nvmlDeviceGetMemoryInfo(handle).total) // 2**20,
    )


def _text(value: str | bytes) -> str:
    """Older bindings answer bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
