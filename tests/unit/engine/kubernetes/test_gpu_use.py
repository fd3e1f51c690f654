"""What nvidia-smi's words in a container come to, of whichever program bears that name."""

from __future__ import annotations

import pytest

from pai_backend.engine.base import EngineError, GpuUse, GpuWork
from pai_backend.engine.kubernetes.channels import CommandExit
from pai_backend.engine.kubernetes.gpu_use import LATE, TOO_MUCH, told

MIG = "NVIDIA's driver does not tell how much a GPU of it works, as it does not for those in MIG mode"
REMARK = "WARNING: infoROM is corrupted at gpu 0000:5E:00.0\n"


@pytest.mark.parametrize(
    ("output", "use"),
    [
        ("0, 0\n", GpuUse(0)),
        ("0, 100\n", GpuUse(100)),
        ("0, 3\n1, 71\n2, 0\n", GpuUse(71)),
        ("0,7\r\n  10 ,\t9  ", GpuUse(9)),
        ("".join(f"{index}, {index}\n" for index in range(16)), GpuUse(15)),
        ("0, 71\n1, [N/A]\n", GpuUse(71, MIG)),
        ("0, 0\n1, [GPU requires reset]\n", GpuUse(0, MIG)),
        (f"0, 71\n{REMARK}", GpuUse(71)),
    ],
    ids=["rests", "works", "the busiest", "other spaces", "sixteen", "one in MIG mode", "one to be reset", "a remark"],
)
def test_the_busiest_gpu_counts_and_one_without_a_number_is_told(output: str, use: GpuUse) -> None:
    assert told(CommandExit(0, output)) == use


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("", "nvidia-smi reports no GPU"),
        ("No devices were found\n", "nvidia-smi reports no GPU"),
        ("0, [N/A]\n1, N/A\n", MIG),
        ("97\n", "nvidia-smi reports no GPU"),
        ("0, -1\n0, 9.5\n0, ９\n0, 1, 2, 3\n", "nvidia-smi reports no GPU"),
        ("0, 101\n", "nvidia-smi reports more than 100 percent"),
        ("0, 0\n1, 101\n", "nvidia-smi reports more than 100 percent"),
        ("\x00\x1b[2J{}<>" * 1000, "nvidia-smi reports no GPU"),
        ("0, " + "9" * 4000, "nvidia-smi reports no GPU"),
    ],
    ids=["nothing", "no GPU", "MIG", "no index", "no percent", "too busy", "one too busy", "garbage", "huge"],
)
def test_what_is_no_answer_is_none(output: str, why: str) -> None:
    with pytest.raises(EngineError) as found:
        told(CommandExit(0, output))
    assert str(found.value) == why


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (127, "there is no nvidia-smi in its container; .* unless the image leaves `utility` out of NVIDIA_DRIVER"),
        (126, "there is no nvidia-smi in its container"),
        (LATE, "did not answer within 8 s"),
        (TOO_MUCH, "more than 4096 bytes"),
        (9, "finds no driver"),
        (15, "fallen off the bus"),
        (77, "nvidia-smi failed with exit code 77"),
        (None, "no program can be run in its container now"),
    ],
    ids=["missing", "no program", "late", "too much", "no driver", "off the bus", "any other", "no container"],
)
def test_a_failure_is_told_in_words_of_ours(code: int | None, why: str) -> None:
    with pytest.raises(EngineError, match=why) as found:
        told(CommandExit(code, "a secret, and \x1b[2J"))
    assert "secret" not in str(found.value)


def test_a_corrupted_inforom_is_a_remark_and_no_failure() -> None:
    assert told(CommandExit(14, f"0, 0\n{REMARK}")) == GpuUse(0)


def test_each_gpu_is_told_with_its_memory() -> None:
    found = told(CommandExit(0, "0, 7, 1024\n1, [N/A], 3\n2, 8, [N/A]\n"))
    assert found.gpus == (GpuWork(7, 1024), GpuWork(None, 3), GpuWork(8))


def test_what_was_told_before_a_failure_counts_as_use_but_not_as_rest() -> None:
    use = told(CommandExit(15, "0, 88\nUnable to determine the device handle for GPU1\n"))
    assert use.percent == 88
    assert "fallen off the bus" in use.unread
