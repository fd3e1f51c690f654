"""How much the GPUs of this machine work, as the NVIDIA driver tells it."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import ModuleType

from pai_backend.engine.base import EngineError, GpuUse
from pai_backend.model.node import Gpu


def gpu_use(gpus: Sequence[Gpu], driver: ModuleType | None = None) -> GpuUse:
    """How much they worked in the driver's last sampling period, a second or less; simulated ones never do. Blocks.

    ``driver`` is the module ``pynvml`` unless another is given. Raises EngineError when that cannot be known.
    Source: NVML, nvmlDeviceGetUtilizationRates, which GPUs in MIG mode do not support.
    """
    if all(gpu.simulated for gpu in gpus):
        return GpuUse(0)
    try:
        driver = driver or importlib.import_module("pynvml")
    except ImportError:
        raise EngineError("the Python package nvidia-ml-py is not installed") from None
    try:
        driver.nvmlInit()
        try:
            return _busiest([_percent(driver, gpu) for gpu in gpus])
        finally:
            driver.nvmlShutdown()
    except driver.NVMLError as exc:
        raise EngineError(_words(exc)) from exc


def _percent(driver: ModuleType, gpu: Gpu) -> int | str:
    """A number, or why there is none."""
    try:
        handle = driver.nvmlDeviceGetHandleByUUID(gpu.uuid)
        return int(driver.nvmlDeviceGetUtilizationRates(handle).gpu)
    except driver.NVMLError as exc:
        return _words(exc)


def _busiest(told: Sequence[int | str]) -> GpuUse:
    numbers, silent = [each for each in told if isinstance(each, int)], [each for each in told if isinstance(each, str)]
    if not numbers:
        raise EngineError(silent[0])
    return GpuUse(max(numbers), silent[0] if silent else "")


def _words(error: Exception) -> str:
    return f"the NVIDIA driver does not tell: {error}"
