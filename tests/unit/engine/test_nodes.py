"""Nodes as placement sees them, with the NVIDIA driver's library replaced at its boundary."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from pai_backend.engine.local.nodes import detect_machine, simulated_node, sku_word


class FakeDriver(ModuleType):
    """The part of pynvml that detection calls, with devices given by name."""

    class NVMLError(Exception):
        """What the real one raises for everything."""

    def __init__(self, names: list[str], *, broken_at: str = "") -> None:
        super().__init__("pynvml")
        self.names = names
        self.broken_at = broken_at
        self.open = False

    def _do(self, step: str) -> None:
        if step == self.broken_at:
            raise self.NVMLError("driver not loaded")

    def nvmlInit(self) -> None:  # noqa: N802 - the library's name
        self._do("init")
        self.open = True

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open = False

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        self._do("count")
        return len(self.names)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetName(self, handle: int) -> bytes:  # noqa: N802
        return self.names[handle].encode()

    def nvmlDeviceGetUUID(self, handle: int) -> str:  # noqa: N802
        return f"GPU-{handle}"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(total=24 * 2**30)


def test_a_machine_with_a_driver_shows_its_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = FakeDriver(["NVIDIA TITAN X (Pascal)", "NVIDIA H200"])
    monkeypatch.setitem(sys.modules, "pynvml", driver)
    node = detect_machine()
    assert [(gpu.index, gpu.type, gpu.uuid, gpu.memory_mb, gpu.simulated) for gpu in node.gpus] == [
        (0, "TITANX", "GPU-0", 24576, False),
        (1, "H200", "GPU-1", 24576, False),
    ]
    assert not driver.open
    assert node.cpus >= 1
    assert node.memory_mb > 100


@pytest.mark.parametrize("broken_at", ["init", "count"])
def test_a_broken_driver_counts_as_no_gpus(monkeypatch: pytest.MonkeyPatch, broken_at: str) -> None:
    driver = FakeDriver(["NVIDIA H200"], broken_at=broken_at)
    monkeypatch.setitem(sys.modules, "pynvml", driver)
    assert detect_machine().gpus == ()
    assert not driver.open


def test_a_machine_without_the_library_has_no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert detect_machine().gpus == ()


@pytest.mark.parametrize(
    ("device", "word"),
    [
        ("NVIDIA TITAN X (Pascal)", "TITANX"),
        ("NVIDIA GeForce RTX 3080 Ti", "RTX3080TI"),
        ("Tesla V100-SXM2-32GB", "V100"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA A100 80GB PCIe", "A100"),
        ("Tesla K80", "K80"),
        ("Quadro RTX 6000", "RTX6000"),
        ("NVIDIA H100 NVL", "H100"),
        ("", "GPU"),
    ],
)
def test_device_names_become_the_words_of_documents(device: str, word: str) -> None:
    assert sku_word(device) == word


def test_a_simulated_node_shares_this_machine() -> None:
    node = simulated_node("carol", "TITANX", 2, 4, 8192)
    assert (node.address, node.machine, node.simulated) == ("127.0.0.1", detect_machine().machine, True)
    assert [(gpu.index, gpu.type, gpu.simulated) for gpu in node.gpus] == [(0, "TITANX", True), (1, "TITANX", True)]
