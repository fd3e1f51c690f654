"""Any fsspec file system as the default one: the contract, on fsspec's own in memory."""

from __future__ import annotations

import os
import time
from pathlib import Path

import fsspec
import pytest

from pai_backend.storage import filesystems
from pai_backend.storage.faults import StorageFault
from pai_backend.storage.files import Files, Parts
from pai_backend.storage.remote_files import FORGOTTEN_S, RemoteFiles
from pai_backend.storage.uris import StorageLocation, parse
from tests.support.files_contract import FilesContract, write


class Memory:
    """fsspec's memory of this process."""

    def __init__(self, root: str) -> None:
        self.root, self.system = root, fsspec.filesystem("memory")

    def put(self, path: Parts, data: bytes) -> None:
        self.system.makedirs("/".join((self.root, *path[:-1])), exist_ok=True)
        self.system.pipe_file("/".join((self.root, *path)), data)

    def get(self, path: Parts) -> bytes | None:
        place = "/".join((self.root, *path))
        return self.system.cat_file(place) if self.system.isfile(place) else None


@pytest.fixture
def behind(tmp_path: Path) -> Memory:
    return Memory(f"/{tmp_path.name}")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return RemoteFiles(parse(f"memory:///{tmp_path.name}"), {}, tmp_path / "spool")


class TestTheContract(FilesContract):
    """In memory."""


class TestTheContractByDocumentedParts(FilesContract):
    """The same with a release of fsspec that lacks the methods which are for its implementations."""

    @pytest.fixture(autouse=True)
    def _without_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(filesystems, "_can_parse", lambda _: False)


def test_a_release_without_the_methods_is_noticed_once(caplog: pytest.LogCaptureFixture) -> None:
    class Changed(fsspec.get_filesystem_class("memory")):  # type: ignore[misc]  # fsspec has no types
        _strip_protocol = None

    assert filesystems._can_parse(fsspec.get_filesystem_class("memory"))
    assert [filesystems._can_parse(Changed) for _ in range(2)] == [False, False]
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_a_chain_is_no_path_of_a_release_without_the_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filesystems, "_can_parse", lambda _: False)
    with pytest.raises(StorageFault, match="::"):
        filesystems.path_in(fsspec.filesystem("memory"), StorageLocation("memory", "", "/a::file:///etc/passwd"))


def test_what_is_kept_of_an_upload_survives_the_process_that_took_it(files: Files, tmp_path: Path) -> None:
    first = files.upload(("a", "f"), 0)
    first.write(b"1234")
    first.close()
    again = RemoteFiles(parse(f"memory:///{tmp_path.name}"), {}, tmp_path / "spool")
    assert again.kept(("a", "f")) == 4


def test_nothing_is_left_in_the_spool(files: Files, tmp_path: Path) -> None:
    write(files, ("a", "f"), b"1234")
    assert list((tmp_path / "spool").iterdir()) == []


def test_unfinished_uploads_count_for_the_place_they_are_for(files: Files) -> None:
    for path, data in ((("a", "f"), b"1234"), (("a", "d", "g"), b"56"), (("Output", "a", "j", "h"), b"7")):
        part = files.upload(path, 0)
        part.write(data)
        part.close()
    write(files, ("a", "whole"), b"89")
    assert [files.usage(place) for place in (("a",), ("Output", "a"), ("b",))] == [8, 1, 0]
    assert files.usage(("a", "d")) == 0


def test_an_unfinished_upload_is_forgotten_after_a_week(files: Files, tmp_path: Path) -> None:
    for name in ("old", "new"):
        part = files.upload(("a", name), 0)
        part.write(b"1234")
        part.close()
        if name == "old":
            (kept,) = (tmp_path / "spool").iterdir()
            os.utime(kept, (time.time() - FORGOTTEN_S - 1,) * 2)
    assert (files.kept(("a", "old")), files.kept(("a", "new"))) == (0, 4)
