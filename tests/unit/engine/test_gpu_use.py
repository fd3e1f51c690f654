"""How much GPUs work, with the NVIDIA driver's library replaced at its boundary."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from pai_backend.engine.base import EngineError, GpuUse, GpuWork
from pai_backend.engine.local.gpu_use import gpu_use
from pai_backend.model.node import Gpu


class FakeDriver(ModuleType):
    """The part of pynvml that is asked; ``percent`` by uuid, and None for a card that does not tell (as with MIG)."""

    class NVMLError(Exception):
        """What the real one raises for everything."""

    def __init__(self, percent: dict[str, int | None]) -> None:
        super().__init__("pynvml")
        self.percent = percent
        self.open = 0

    def nvmlInit(self) -> None:  # noqa: N802 - the library's name
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        return uuid

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(used=len(handle) * 2**30)

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> SimpleNamespace:  # noqa: N802
        percent = self.percent[handle]
        if percent is None:
            raise self.NVMLError("Not Supported")
        return SimpleNamespace(gpu=percent)


def gpus(*uuids: str) -> list[Gpu]:
    return [Gpu(index=number, type="H200", uuid=uuid, memory_mb=1) for number, uuid in enumerate(uuids)]


def test_the_busiest_gpu_counts() -> None:
    driver = FakeDriver({"a": 3, "b": 71})
    told = gpu_use(gpus("a", "bb"), FakeDriver({"a": 3, "bb": 71}))
    assert told == GpuUse(71)
    assert told.gpus == (GpuWork(3, 1024), GpuWork(71, 2048))
    assert gpu_use(gpus("a", "b"), driver) == GpuUse(71)
    assert driver.open == 0


def test_a_gpu_that_does_not_tell_takes_nothing_from_one_that_does() -> None:
    driver = FakeDriver({"a": None, "b": 71})
    assert gpu_use(gpus("a", "b"), driver) == GpuUse(71, "the NVIDIA driver does not tell: Not Supported")
    assert driver.open == 0


def test_simulated_gpus_never_work() -> None:
    assert gpu_use([Gpu(index=0, type="T", uuid="a", memory_mb=1, simulated=True)]) == GpuUse(0)


def test_what_cannot_be_known_is_told_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = FakeDriver({"a": None})
    with pytest.raises(EngineError, match="the NVIDIA driver does not tell: Not Supported"):
        gpu_use(gpus("a"), driver)
    assert driver.open == 0
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(EngineError, match="nvidia-ml-py is not installed"):
        gpu_use(gpus("a"))
