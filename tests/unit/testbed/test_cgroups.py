"""Control groups of nodes on trees like those of the two versions; the kernel's own answers are met by real nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kubernetes.cluster import cgroups


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """Version 1: a hierarchy for each controller, some under two names."""
    for controller in ("cpu,cpuacct", "cpuset", "memory"):
        (tmp_path / controller).mkdir()
    (tmp_path / "cpu").symlink_to("cpu,cpuacct")
    (tmp_path / "cpuset" / "cpuset.cpus").write_text("0-1\n")
    (tmp_path / "cpuset" / "cpuset.mems").write_text("0\n")
    return tmp_path


@pytest.fixture
def second(tmp_path: Path) -> Path:
    """Version 2: one tree, whose root gives nothing away yet."""
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    (tmp_path / "cgroup.subtree_control").write_text("cpu\n")
    (tmp_path / "cgroup.procs").write_text("1\n17\n")
    return tmp_path


def groups(mount: Path) -> list[str]:
    return sorted(path.parent.name for path in mount.glob("*/node"))


def test_with_version_1_a_group_is_in_every_hierarchy_once(first: Path) -> None:
    cgroups.create("node", first)
    assert groups(first) == ["cpu", "cpu,cpuacct", "cpuset", "memory"]
    assert not cgroups.unified(first)


def test_with_version_1_a_group_may_use_all_cpus_and_memory_of_its_parent(first: Path) -> None:
    cgroups.create("node", first)
    assert (first / "cpuset/node/cpuset.cpus").read_text() == "0-1\n"
    assert (first / "cpuset/node/cpuset.mems").read_text() == "0\n"


def test_with_version_2_the_root_gives_away_the_controllers_that_it_kept(second: Path) -> None:
    cgroups.create("node", second)
    assert (second / "cgroup.subtree_control").read_text() == "+cpuset +io +memory +pids"
    assert (second / "node").is_dir()
    assert not (second / "init").exists()


def test_with_version_2_nothing_is_written_when_all_is_given_away(second: Path) -> None:
    given = "cpuset cpu io memory pids\n"
    (second / "cgroup.subtree_control").write_text(given)
    cgroups.create("node", second)
    assert (second / "cgroup.subtree_control").read_text() == given


def test_with_version_2_processes_of_a_containers_root_move_aside(
    second: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_text
    tried: list[str] = []

    def refuse_once(path: Path, text: str) -> int:
        if path.name == "cgroup.subtree_control" and not tried:
            tried.append(text)
            raise OSError(16, "Device or resource busy")
        return write(path, text)

    monkeypatch.setattr(Path, "write_text", refuse_once)
    cgroups.create("node", second)
    assert (second / "init/cgroup.procs").read_text() == "17"  # written one by one, as the kernel wants it
    assert (second / "cgroup.subtree_control").read_text() == tried[0]


@pytest.mark.asyncio
async def test_a_group_goes_with_all_below_it(first: Path) -> None:
    cgroups.create("node", first)
    (first / "memory/node/kubepods/pod").mkdir(parents=True)
    for file in ("cpuset.cpus", "cpuset.mems"):
        (first / "cpuset/node" / file).unlink()  # in the kernel's tree files go with their group
    await cgroups.remove("node", first)
    assert not groups(first)


@pytest.mark.asyncio
async def test_a_group_that_is_gone_is_no_fault(second: Path) -> None:
    await cgroups.remove("node", second)
