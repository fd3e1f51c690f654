"""How much the GPUs of this machine work, as the NVIDIA driver tells it."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import ModuleType

from pai_backend.engine.base import EngineError, GpuUse, GpuWork
from pai_backend.model.node import Gpu


def gpu_use(gpus: Sequence[Gpu], driver: ModuleType | None = None) -> GpuUse:
    """How much they worked in the driver's last sampling period, a second or less; simulated ones never do. Blocks.

    ``driver`` is the module ``pynvml`` unless another is given. Raises EngineError when that cannot be known.
    Source: NVML, nvmlDeviceGetUtilizationRates, which GPUs in MIG mode do not support.
    """
    if all(gpu.simulated for gpu in gpus):
        return GpuUse(0, gpus=(GpuWork(0, 0),) * len(gpus))
    try:
        driver = driver or importlib.import_module("pynvml")
    except ImportError:
        raise EngineError("the Python package nvidia-ml-py is not installed") from None
    try:
        driver.nvmlInit()
        try:
            return _busiest([_look(driver, gpu) for gpu in gpus])
        finally:
            driver.nvmlShutdown()
    except driver.NVMLError as exc:
        raise EngineError(_words(exc)) from exc


def _look(driver: ModuleType, gpu: Gpu) -> tuple[GpuWork, str]:
    """What it does, and why it does not tell how much it works; empty when it does."""
    memory_mb, percent, silent = None, None, ""
    try:
        handle = driver.nvmlDeviceGetHandleByUUID(gpu.uuid)
        memory_mb = int(driver.nvmlDeviceGetMemoryInfo(handle).used) // 2**20
        percent = int(driver.nvmlDeviceGetUtilizationRates(handle).gpu)
    except driver.NVMLError as exc:
        silent = _words(exc)
    return GpuWork(percent, memory_mb), silent


def _busiest(told: Sequence[tuple[GpuWork, str]]) -> GpuUse:
    numbers = [work.percent for work, _ in told if work.percent is not None]
    silent = next((why for _, why in told if why), "")
    if not numbers:
        raise EngineError(silent)
    return GpuUse(max(numbers), silent, tuple(work for work, _ in told))


def _words(error: Exception) -> str:
    return f"the NVIDIA driver does not tell: {error}"
