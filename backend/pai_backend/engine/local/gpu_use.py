"""How much the GPUs of this machine work, as the NVIDIA driver tells it."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import ModuleType

from pai_backend.engine.base import EngineError
from pai_backend.model.node import Gpu


def gpu_use(gpus: Sequence[Gpu], driver: ModuleType | None = None) -> int:
    """Percent of the driver's last sampling period (a second or less) in which the busiest of them worked. Blocks.

    ``driver`` is the module ``pynvml`` unless another is given. Raises EngineError when that cannot be known.
    Source: NVML, nvmlDeviceGetUtilizationRates.
    """
    if any(gpu.simulated for gpu in gpus):
        raise EngineError("its GPUs are simulated")
    try:
        driver = driver or importlib.import_module("pynvml")
    except ImportError:
        raise EngineError("the Python package nvidia-ml-py is not installed") from None
    try:
        driver.nvmlInit()
        try:
            return max(_percent(driver, gpu) for gpu in gpus)
        finally:
            driver.nvmlShutdown()
    except driver.NVMLError as exc:
        raise EngineError(f"the NVIDIA driver does not tell: {exc}") from exc


def _percent(driver: ModuleType, gpu: Gpu) -> int:
    handle = driver.nvmlDeviceGetHandleByUUID(gpu.uuid)
    return int(driver.nvmlDeviceGetUtilizationRates(handle).gpu)
