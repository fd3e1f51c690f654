"""What stays of finished tasks, and that how they ended always does."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from pai_backend.engine.base import EngineError
from pai_backend.engine.local import layout
from pai_backend.engine.local.layout import write_exit
from pai_backend.engine.local.ledger import TaskDirectories
from pai_backend.engine.local.retention import (
    UNUSED_S,
    Finished,
    FolderRetention,
    KeepRule,
    TaskFolders,
    done_folder,
    erase,
    expired,
)
from pai_backend.engine.providers import COMPLETE
from pai_backend.model.ids import JobUid, TaskUid

NOW = 1_000_000.0


def names(found: list[Finished]) -> list[str]:
    return [each.name for each in found]


@pytest.mark.parametrize(
    ("keep", "gone"),
    [
        (KeepRule(0, 0, 0), []),
        (KeepRule(250, 0, 0), ["a", "b"]),
        (KeepRule(0, 1, 0), ["a", "b", "c"]),
        (KeepRule(0, 0, 20), ["a", "b"]),
        (KeepRule(0, 0, 5), ["a", "b", "c", "d"]),
        (KeepRule(350, 2, 30), ["a", "b"]),
    ],
)
def test_the_oldest_go_first_by_age_number_and_bytes(keep: KeepRule, gone: list[str]) -> None:
    found = [Finished(name, NOW - age, 10) for name, age in (("c", 200), ("a", 400), ("d", 100), ("b", 300))]
    assert names(expired(found, keep, NOW)) == gone


def finished(root: Path, uid: str, age_s: float) -> Path:
    """A task that was put away, with a log and a read-only input."""
    directory = root / layout.DONE / uid
    (directory / layout.WORK / "code").mkdir(parents=True)
    (directory / layout.WORK / "code" / "train.py").write_text("x" * 10_000)
    (directory / "stdout-0.log").write_bytes(bytes(50_000))
    (directory / layout.WORK / "outside").symlink_to(root.parent / "outside")
    (directory / layout.WORK / "code").chmod(0o500)
    write_exit(str(directory), code=3, reason="exited", message="", causer="user")
    os.utime(directory / layout.EXIT, (time.time() - age_s,) * 2)
    return directory


def test_a_task_keeps_how_it_ended_and_nothing_else(tmp_path: Path) -> None:
    root = tmp_path / "engine"
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "data").write_text("theirs")
    old, new = finished(root, "j1-0-0-0", 100), finished(root, "j2-0-0-0", 10)
    (root / layout.TASKS / "j3-0-0-0").mkdir(parents=True)
    for job in ("j1", "j3"):
        (root / layout.JOBS).mkdir(exist_ok=True)
        (root / layout.JOBS / job).write_text("sealed")
        os.utime(root / layout.JOBS / job, (time.time() - UNUSED_S - 60,) * 2)
    retention = FolderRetention(done_folder(root), KeepRule(seconds=50, tasks=0, bytes=0))
    assert retention.sweep() == 1
    assert retention.sweep() == 0
    assert {path.name for path in old.iterdir()} == {layout.EXIT}
    assert (new / "stdout-0.log").stat().st_size == 50_000
    assert (tmp_path / "outside" / "data").read_text() == "theirs"
    assert {path.name for path in (root / layout.JOBS).iterdir()} == {"j3"}
    ledger = TaskDirectories(root, 4096)
    seen = ledger.recall(TaskUid("j1-0-0-0"))
    assert seen is not None
    assert seen.exit is not None
    assert seen.exit.code == 3
    assert not ledger.live(TaskUid("j1-0-0-0")).exists()


def test_a_full_root_is_brought_below_its_bytes(tmp_path: Path) -> None:
    root = tmp_path / "engine"
    made = [finished(root, f"j{number}-0-0-0", 100 - number) for number in range(6)]
    FolderRetention(done_folder(root), KeepRule(seconds=0, tasks=0, bytes=200_000)).sweep()
    left = [path.name for path in made if (path / "stdout-0.log").exists()]
    assert left == [path.name for path in made[-len(left) :]]
    assert 0 < len(left) < 6
    assert sum((root / layout.DONE / name / "stdout-0.log").stat().st_size for name in left) <= 200_000


def test_logs_that_were_collected_from_pods_go_when_they_are_complete(tmp_path: Path) -> None:
    for name, complete in (("j1-0-0-0", True), ("j2-0-0-0", False)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "all-0.log").write_bytes(bytes(1000))
        if complete:
            (tmp_path / name / COMPLETE).touch()
            os.utime(tmp_path / name / COMPLETE, (time.time() - 100,) * 2)
    (tmp_path / "log-volume").write_text("mark")

    FolderRetention(TaskFolders(tmp_path, COMPLETE), KeepRule(seconds=50, tasks=0, bytes=0)).sweep()

    assert sorted(path.name for path in tmp_path.iterdir()) == ["j2-0-0-0", "log-volume"]


def test_nothing_is_left_of_a_deleted_job_and_all_of_others(tmp_path: Path) -> None:
    root = tmp_path / "engine"
    made = [finished(root, uid, 0) for uid in ("j1-0-0-0", "j1-0-1-3", "j12-0-0-0")]
    (root / layout.JOBS).mkdir()
    for job in ("j1", "j12"):
        (root / layout.JOBS / job).write_text("sealed")

    erase(root, JobUid("j1"))
    erase(root, JobUid("j1"))

    assert [path.exists() for path in made] == [False, False, True]
    assert [path.name for path in (root / layout.JOBS).iterdir()] == ["j12"]


def test_a_job_with_a_live_task_is_not_erased(tmp_path: Path) -> None:
    root = tmp_path / "engine"
    done = finished(root, "j1-0-0-0", 0)
    (root / layout.TASKS / "j1-0-1-0").mkdir(parents=True)

    with pytest.raises(EngineError, match="not forgotten"):
        erase(root, JobUid("j1"))

    assert (done / "stdout-0.log").exists()
