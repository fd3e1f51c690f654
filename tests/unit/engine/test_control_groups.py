"""Where control groups of tasks are made, as files of /proc say it, and what is written into them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pai_backend.engine.local.control_groups import ControlGroups, TaskLimits, control_groups
from pai_backend.model.ids import TaskUid

UID = TaskUid("j0-0-0-0")


def system(tmp_path: Path, mounts: list[str], membership: list[str]) -> ControlGroups:
    """What is found on a system with these mounts (below ``tmp_path``) and this membership."""
    rows = (f"{number} 1 0:{number} {row}" for number, row in enumerate(mounts, 30))
    (tmp_path / "mountinfo").write_text("\n".join(rows).replace("@", str(tmp_path)) + "\n")
    (tmp_path / "cgroup").write_text("\n".join(membership) + "\n")
    return control_groups(str(tmp_path / "mountinfo"), str(tmp_path / "cgroup"))


def group(path: Path, **files: str) -> Path:
    """A directory of a control group."""
    path.mkdir(parents=True)
    for name, content in {"cgroup_procs": "", **files}.items():
        (path / name.replace("_", ".", 1)).write_text(content)
    return path


def v1_mount(name: str, root: str = "/") -> str:
    """A line of mountinfo, but for its numbers."""
    return f"{root} @/{name} rw,relatime shared:9 - cgroup cgroup rw,{name}"


def test_groups_of_version_1_are_below_the_one_that_the_backend_is_in(tmp_path: Path) -> None:
    bases = {name: group(tmp_path / name / "own") for name in ("memory", "cpu", "pids")}
    found = system(tmp_path, list(map(v1_mount, bases)), ["3:memory:/own", "2:cpu:/own", "1:pids:/own"])
    assert (found.v1, found.v2, found.reasons) == (bases, None, {})
    made = found.make(UID, TaskLimits(memory_mb=5, cpus=2, pids=7))
    assert made == [base / "pai-task-j0-0-0-0" for base in bases.values()]
    assert {path.name: path.read_text() for place in made for path in place.iterdir()} == {
        "memory.limit_in_bytes": str(5 * 2**20),  # no file of swap here, so no limit of it
        "cpu.cfs_period_us": "100000",
        "cpu.cfs_quota_us": "200000",
        "pids.max": "7",
    }


def test_in_a_container_the_mount_begins_further_down(tmp_path: Path) -> None:
    base = group(tmp_path / "memory" / "inner")
    found = system(tmp_path, [v1_mount("memory", "/docker/x")], ["3:memory:/docker/x/inner"])
    assert found.v1 == {"memory": base}


def test_what_is_not_asked_for_has_no_group(tmp_path: Path) -> None:
    for name in ("memory", "cpu", "pids"):
        group(tmp_path / name)
    mounts = list(map(v1_mount, ("memory", "cpu", "pids")))
    found = system(tmp_path, mounts, ["3:memory:/", "2:cpu:/", "1:pids:/"])
    assert found.make(UID, TaskLimits(0, 0, 0)) == []


def test_a_controller_that_is_not_there_is_named_with_the_reason(tmp_path: Path) -> None:
    group(tmp_path / "memory")
    found = system(tmp_path, [v1_mount("memory")], ["3:memory:/"])
    assert found.reasons == {
        "cpu": "its control group is not mounted here",
        "pids": "its control group is not mounted here",
    }
    assert not found.hold_processes


def test_a_system_without_control_groups_says_so(tmp_path: Path) -> None:
    found = control_groups(str(tmp_path / "none"), str(tmp_path / "none"))
    assert set(found.reasons.values()) == {"this system has no control groups"}


V2 = "/ @/v2 rw - cgroup2 cgroup rw"


def v2_base(tmp_path: Path) -> Path:
    """A group of version 2 with this process and another one in it."""
    base = group(tmp_path / "v2" / "unit", cgroup_controllers="cpuset cpu io memory pids\n", cgroup_subtree_control="")
    (base / "cgroup.procs").write_text(f"{os.getpid()}\n")
    return base


def test_a_delegated_group_of_version_2_gives_its_controllers_to_groups_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = v2_base(tmp_path)
    monkeypatch.setattr(os, "getxattr", lambda path, name: b"1" if name == "user.delegate" else b"")
    found = system(tmp_path, [V2], ["0::/unit"])
    assert (found.v2, set(found.v2_controllers), dict(found.reasons)) == (base, {"memory", "cpu", "pids"}, {})
    assert (base / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"
    assert (base / "pai-backend" / "cgroup.procs").read_text() == str(os.getpid())
    (made,) = found.make(UID, TaskLimits(memory_mb=1, cpus=3, pids=9))
    assert {path.name: path.read_text() for path in made.iterdir()} == {
        "memory.max": "1048576",
        "cpu.max": "300000 100000",
        "pids.max": "9",
    }


def test_a_group_of_version_2_that_is_not_delegated_is_left_alone(tmp_path: Path) -> None:
    base = v2_base(tmp_path)
    found = system(tmp_path, [V2], ["0::/unit"])
    assert found.v2 is None
    assert all("Delegate=yes" in why for why in found.reasons.values())
    assert set(found.reasons) == {"memory", "cpu", "pids"}
    assert sorted(path.name for path in base.iterdir()) == [
        "cgroup.controllers",
        "cgroup.procs",
        "cgroup.subtree_control",
    ]
