"""A directory as the default file system: the contract, and links that lead nobody anywhere."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pai_backend.storage.areas import copy_name, partial_name
from pai_backend.storage.faults import StorageFault
from pai_backend.storage.files import Files, Parts, PathConflict
from pai_backend.storage.local_files import LocalFiles
from tests.support.files_contract import FilesContract, names, write


class Directory:
    """The root as it is on the disk."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, path: Parts, data: bytes) -> None:
        place = self.root.joinpath(*path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)

    def get(self, path: Parts) -> bytes | None:
        place = self.root.joinpath(*path)
        return place.read_bytes() if place.is_file() else None


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return LocalFiles(tmp_path / "fs")


@pytest.fixture
def behind(tmp_path: Path) -> Directory:
    return Directory(tmp_path / "fs")


class TestTheContract(FilesContract):
    """On a directory."""


@pytest.fixture
def outside(tmp_path: Path, behind: Directory) -> Path:
    """A directory that nobody may reach, and links to it where a user could have put them."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "token").write_text("hunter22")
    behind.put(("alice", "own"), b"1")
    (behind.root / "alice" / "dir").symlink_to(secret)
    (behind.root / "alice" / "file").symlink_to(secret / "token")
    (behind.root / "alice" / "up").symlink_to("..")
    return secret


@pytest.mark.parametrize("path", [("alice", "dir", "token"), ("alice", "file"), ("alice", "up", "bob")])
def test_no_request_goes_through_a_link(files: Files, outside: Path, path: Parts) -> None:
    for call in (
        lambda: files.read(path),
        lambda: files.stat(path[:3]),
        lambda: files.copy(path, ("alice", "copy"), 10),
        lambda: files.make_directory((*path, "new")),
    ):
        with pytest.raises(StorageFault):
            call()
    assert sorted(os.listdir(outside)) == ["token"]


def test_what_is_written_to_a_links_name_replaces_the_link_and_not_what_it_leads_to(
    files: Files, behind: Directory, outside: Path
) -> None:
    write(files, ("alice", "file"), b"mine")
    assert (outside / "token").read_text() == "hunter22"
    assert behind.get(("alice", "file")) == b"mine"
    with pytest.raises(PathConflict):
        write(files, ("alice", "dir", "new"), b"")


def test_an_upload_is_not_led_elsewhere_by_a_link_of_its_own_name(
    files: Files, behind: Directory, outside: Path
) -> None:
    (behind.root / "alice" / partial_name("f")).symlink_to(outside / "token")
    with pytest.raises(StorageFault):
        write(files, ("alice", "f"), b"mine")
    assert (outside / "token").read_text() == "hunter22"


def test_removing_a_directory_removes_links_and_not_what_they_lead_to(files: Files, outside: Path) -> None:
    files.remove(("alice",), recursive=True)
    assert (outside / "token").exists()


def test_a_copy_refuses_links_and_leaves_nothing(files: Files, outside: Path) -> None:
    with pytest.raises(PathConflict, match="symbolic link"):
        files.copy(("alice",), ("copy",), 100)
    assert names(files, ()) == ["alice"]


def test_links_special_files_and_uploads_under_way_are_not_listed(
    files: Files, behind: Directory, outside: Path
) -> None:
    os.mkfifo(behind.root / "alice" / "pipe")
    behind.put(("alice", partial_name("f")), b"")
    behind.put(("alice", copy_name("f")), b"")
    behind.put(("alice", "line\nbreak"), b"")
    (behind.root / "alice" / os.fsdecode(b"\xff")).write_bytes(b"")
    assert names(files, ("alice",)) == ["own"]
    with pytest.raises(PathConflict, match="no file"):
        files.read(("alice", "pipe"))


def test_a_time_that_no_calendar_has_is_left_out(files: Files, behind: Directory) -> None:
    behind.put(("f",), b"")
    os.utime(behind.root / "f", (2**40, 2**40))
    assert files.stat(("f",)).modified is None or files.stat(("f",)).modified
    assert names(files, ()) == ["f"]


def test_a_tree_that_is_nested_very_deeply_is_an_error_and_no_crash(files: Files, behind: Directory) -> None:
    behind.put(("deep", "f"), b"")
    here = os.open(behind.root / "deep", os.O_RDONLY)
    for _ in range(2000):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    try:
        with pytest.raises(StorageFault, match="too deeply"):
            files.copy(("deep",), ("copy",), 10_000)
        with pytest.raises(StorageFault, match="too deeply"):
            files.remove(("deep",), recursive=True)
        assert files.usage(("deep",)) == 0
        assert os.listdir(behind.root) == ["deep"]
    finally:  # pytest's own tidying would give up on it
        subprocess.run(["rm", "-rf", str(behind.root)], check=True, timeout=60)


def test_what_a_task_hides_does_not_empty_the_count_of_all_else(
    files: Files, behind: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    behind.put(("a", "f"), b"123")
    behind.put(("a", "hidden", "g"), b"4")
    real = os.open

    def refusing(name: str, *args: Any, **kwargs: Any) -> int:
        if name == "hidden":  # as a directory of mode 0 does for all but root
            raise PermissionError(errno.EACCES, "Permission denied", name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(os, "open", refusing)
    assert files.usage(("a",)) == 3


def test_files_that_cannot_be_counted_leave_no_room(
    files: Files, behind: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    behind.put(("a", "d", "f"), b"123")
    real = os.open

    def exhausted(name: str, *args: Any, **kwargs: Any) -> int:
        if name == "d":
            raise OSError(errno.EMFILE, "Too many open files")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(os, "open", exhausted)
    with pytest.raises(StorageFault):
        files.usage(("a",))
    assert files.usage(("nothing",)) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other accounts")
def test_what_is_made_belongs_to_the_account_of_its_directory(tmp_path: Path) -> None:
    owned, home, shared = LocalFiles(tmp_path, owners=True), tmp_path / "ann", tmp_path / "pub"
    home.mkdir()
    os.chown(home, 3_171_000_000, 3_171_000_000)
    shared.mkdir()
    shared.chmod(0o1777)
    for top in ("ann", "pub"):
        upload = owned.upload((top, "in", "a.txt"), 0)
        upload.write(b"a")
        upload.finish("")
        upload.close()
        owned.copy((top, "in"), (top, "copy"), 10)
    owned.make_directory(("admins", "below"))
    assert [path.stat().st_mode & 0o7777 for path in (tmp_path / "admins", tmp_path / "admins" / "below")] == [
        0o700
    ] * 2
    assert {path.stat().st_uid for path in home.rglob("*")} == {3_171_000_000}
    assert {path.stat().st_uid for path in shared.rglob("*")} == {0}
    assert [path.stat().st_mode & 0o7777 for path in (shared / "in", shared / "copy")] == [0o1777, 0o1777]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other accounts")
def test_a_file_with_a_second_name_is_given_to_nobody(tmp_path: Path) -> None:
    """An account may have put it in the place of an upload: it would then own what the other name leads to."""
    secret = tmp_path / "secret"
    secret.touch(0o600)
    home = tmp_path / "fs" / "ann"
    home.mkdir(parents=True)
    os.chown(home, 3_171_000_000, 3_171_000_000)
    os.link(secret, home / ".a.txt.part")
    LocalFiles(tmp_path / "fs", owners=True).upload(("ann", "a.txt"), 0).close()
    assert secret.stat().st_uid == 0
