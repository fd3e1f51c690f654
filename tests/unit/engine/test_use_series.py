"""Series of what tasks used: what a crash costs, what is overwritten, and that nothing is invented."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_backend.engine import use_series
from pai_backend.engine.base import GpuWork, TaskUse
from pai_backend.engine.use_series import KEPT, RECORD, UseSample, UseSeries, sampled, thinned
from pai_backend.model.ids import JobUid, TaskUid, slot_of, task_uid

JOB = JobUid("j0123456789abcdef")
TASK = task_uid(JOB, 0, 0, 0)


def filled(series: UseSeries, count: int, first: int = 1, uid: TaskUid = TASK) -> None:
    for at in range(first, first + count):
        series.append(uid, UseSample(at, cpus=1.5, memory_mb=at, gpu_percent=12.5, gpu_memory_mb=None, idle_gpus=0))


def test_a_sample_is_read_as_it_was_written(tmp_path: Path) -> None:
    use = TaskUse(0.25, 1000.4, (GpuWork(0, 500), GpuWork(71, 7), GpuWork(None, 1)))
    series = UseSeries(tmp_path)
    series.append(TASK, sampled(1_800_000_000, use))
    series.append(TASK, sampled(1_800_000_060, TaskUse()))
    assert UseSeries(tmp_path).read(TASK) == [
        UseSample(1_800_000_000, 0.25, 1000, 35.5, 508, 1, is_partial=True),
        UseSample(1_800_000_060),
    ]
    assert series.read(TASK, 1_800_000_060) == [UseSample(1_800_000_060)]
    assert series.read(task_uid(JOB, 0, 1, 0)) == []


def test_the_file_is_a_ring_of_the_last_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(use_series, "KEPT", 10)
    filled(UseSeries(tmp_path), 14)
    filled(UseSeries(tmp_path), 3, first=15)  # by a process that has to find the place
    assert [sample.at for sample in UseSeries(tmp_path).read(TASK)] == list(range(8, 18))
    assert (tmp_path / "use" / JOB / TASK).stat().st_size == 10 * RECORD
    assert KEPT * RECORD < 250_000, "what a task of a week costs on disk"


@given(st.integers(0, RECORD - 1), st.integers(0, 255))
def test_a_write_that_was_cut_costs_that_sample_alone(kept: int, rest: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        series = UseSeries(Path(place))
        filled(series, 3)
        path = Path(place) / "use" / JOB / TASK
        whole = path.read_bytes()
        path.write_bytes(whole[: 2 * RECORD + kept] + bytes([rest]) * (RECORD - kept if rest % 2 else 0))
        after = UseSeries(Path(place))
        seen = [sample.at for sample in after.read(TASK)]
        assert seen[:2] == [1, 2]
        assert set(seen) <= {1, 2, 3}
        filled(after, 1, first=9)
        assert [sample.at for sample in UseSeries(Path(place)).read(TASK)][-1] == 9


def test_series_go_with_their_job_or_a_week_after_their_last_sample(tmp_path: Path) -> None:
    series, other = UseSeries(tmp_path), task_uid(JobUid("jfedcba9876543210"), 0, 0, 0)
    filled(series, 1)
    filled(series, 1, uid=other)
    filled(series, 1, uid=task_uid(JOB, 0, 0, 1))
    assert sorted(series.runs(slot_of(TASK))) == [TASK, task_uid(JOB, 0, 0, 1)]
    os.utime(tmp_path / "use" / JOB / TASK, (1000, 1000))
    series.sweep(1000 + use_series.KEEP_S + 1)
    assert series.runs(slot_of(TASK)) == [task_uid(JOB, 0, 0, 1)]
    series.erase(JOB)
    assert series.runs(slot_of(TASK)) == []
    assert len(series.read(other)) == 1


def test_fewer_points_keep_the_mean_and_hide_no_work() -> None:
    samples = [UseSample(at, cpus=float(at), idle_gpus=at % 2, gpu_percent=None) for at in range(1, 1001)]
    few = thinned(samples, 10)
    assert len(few) == 10
    assert few[0] == UseSample(100, cpus=50.5, idle_gpus=0)
    assert few[-1].at == 1000
    assert thinned(samples[:5], 10) == samples[:5]
