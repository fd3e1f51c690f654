"""How the holder of a kernel learns that the system has killed it for lack of memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_pai.kernels.task.holder import memory_kills


@pytest.mark.parametrize(
    ("membership", "file", "text"),
    [
        ("0::/task\n", "task/memory.events", "low 0\nmax 9\noom 4\noom_kill 3\noom_group_kill 0\n"),
        ("0::/mapped/away\n", "memory.events", "oom 4\noom_kill 3\n"),
        ("4:cpu,cpuacct:/x\n3:memory:/task\n0::/\n", "memory/task/memory.oom_control", "under_oom 0\noom_kill 3\n"),
        ("3:memory:/outside\n", "memory/memory.oom_control", "oom_kill_disable 0\noom_kill 3\n"),
    ],
)
def test_kills_are_counted_by_the_own_control_group(tmp_path: Path, membership: str, file: str, text: str) -> None:
    (tmp_path / "cgroup").write_text(membership)
    (tmp_path / "groups" / file).parent.mkdir(parents=True)
    (tmp_path / "groups" / file).write_text(text)
    assert memory_kills(str(tmp_path / "cgroup"), str(tmp_path / "groups")) == 3


@pytest.mark.parametrize("membership", ["", "0::/x\n", "3:memory:/x\n"])
def test_where_it_is_not_counted(tmp_path: Path, membership: str) -> None:
    (tmp_path / "cgroup").write_text(membership)
    assert memory_kills(str(tmp_path / "cgroup"), str(tmp_path)) == -1
    assert memory_kills(str(tmp_path / "none"), str(tmp_path)) == -1
