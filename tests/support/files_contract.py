"""What every default file system must do, whatever it is made of: run by each implementation's tests.

A subclass gives ``files``, and two ways behind its back: ``put`` and ``get``.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from typing import Protocol

import pytest

from pai_backend.storage.faults import Absent, StorageFault
from pai_backend.storage.files import Files, Parts, PathConflict


class Behind(Protocol):
    """A file system's contents, seen without it."""

    def put(self, path: Parts, data: bytes) -> None:
        """Make a file, and the directories above it."""
        ...

    def get(self, path: Parts) -> bytes | None:
        """A file's bytes; None when it is not there."""
        ...


def write(files: Files, path: Parts, data: bytes, *, offset: int = 0, sha256: str = "") -> None:
    """Upload in one go."""
    upload = files.upload(path, offset)
    try:
        upload.write(data)
        upload.finish(sha256)
    finally:
        upload.close()


def names(files: Files, path: Parts, after: str = "", limit: int = 100) -> list[str]:
    return [info.name for info in files.listing(path, after, limit)]


class FilesContract:
    """The tests. ``files`` and ``behind`` are fixtures of the subclass; ``top`` a directory of each test's own."""

    @pytest.fixture
    def top(self) -> Parts:
        return (f"t{os.urandom(6).hex()}",)

    def test_an_upload_appears_whole_with_its_directories(self, files: Files, behind: Behind, top: Parts) -> None:
        path, data = (*top, "a", "b.bin"), os.urandom(3_000_000)
        upload = files.upload(path, 0)
        upload.write(data[:1_000_000])
        assert behind.get(path) is None
        assert names(files, (*top, "a")) == [] if _there(files, (*top, "a")) else True
        upload.write(data[1_000_000:])
        assert upload.size == len(data)
        upload.finish(hashlib.sha256(data).hexdigest())
        upload.close()
        assert behind.get(path) == data
        assert files.stat(path).size == len(data)
        assert names(files, (*top, "a")) == ["b.bin"]

    def test_an_upload_goes_on_where_it_was_left(self, files: Files, behind: Behind, top: Parts) -> None:
        path = (*top, "f")
        first = files.upload(path, 0)
        first.write(b"hello, ")
        first.close()
        assert files.kept(path) == 7
        write(files, path, b"world", offset=7, sha256=hashlib.sha256(b"hello, world").hexdigest())
        assert (behind.get(path), files.kept(path)) == (b"hello, world", 0)

    def test_going_on_earlier_drops_what_is_behind(self, files: Files, behind: Behind, top: Parts) -> None:
        path = (*top, "f")
        first = files.upload(path, 0)
        first.write(b"0123456789")
        first.close()
        write(files, path, b"X", offset=3)
        assert behind.get(path) == b"012X"

    def test_going_on_behind_what_is_kept_is_refused(self, files: Files, top: Parts) -> None:
        path = (*top, "f")
        first = files.upload(path, 0)
        first.write(b"0123")
        first.close()
        with pytest.raises(PathConflict, match="only 4 bytes"):
            files.upload(path, 5)
        assert files.kept(path) == 4

    def test_two_uploads_of_one_file_do_not_mix(self, files: Files, top: Parts) -> None:
        first = files.upload((*top, "f"), 0)
        try:
            with pytest.raises(PathConflict, match="by another request"):
                files.upload((*top, "f"), 0)
        finally:
            first.close()
        files.upload((*top, "f"), 0).close()

    def test_damaged_bytes_are_refused_and_forgotten(self, files: Files, behind: Behind, top: Parts) -> None:
        behind.put((*top, "f"), b"old")
        with pytest.raises(PathConflict, match="SHA-256"):
            write(files, (*top, "f"), b"damaged", sha256=hashlib.sha256(b"meant").hexdigest())
        assert (behind.get((*top, "f")), files.kept((*top, "f"))) == (b"old", 0)

    def test_a_new_version_takes_the_place_of_the_old_one(self, files: Files, behind: Behind, top: Parts) -> None:
        behind.put((*top, "f"), b"old and longer")
        write(files, (*top, "f"), b"new")
        assert behind.get((*top, "f")) == b"new"
        assert names(files, top) == ["f"]

    def test_an_empty_file_is_a_file(self, files: Files, behind: Behind, top: Parts) -> None:
        write(files, (*top, "empty"), b"", sha256=hashlib.sha256(b"").hexdigest())
        assert behind.get((*top, "empty")) == b""

    def test_a_directory_is_not_replaced_by_a_file(self, files: Files, top: Parts) -> None:
        files.make_directory((*top, "d"))
        with pytest.raises(PathConflict, match="is a directory"):
            files.upload((*top, "d"), 0)

    def test_reading_begins_anywhere(self, files: Files, behind: Behind, top: Parts) -> None:
        behind.put((*top, "f"), b"0123456789")
        file = files.read((*top, "f"))
        try:
            file.seek(7)
            assert file.read(100) == b"789"
            assert not file.read(100)
        finally:
            file.close()

    def test_a_listing_is_in_order_and_comes_in_pages(self, files: Files, behind: Behind, top: Parts) -> None:
        for name in ("b", "a", "ä", "c d"):
            behind.put((*top, name), name.encode())
        files.make_directory((*top, "dir"))
        assert names(files, top) == ["a", "b", "c d", "dir", "ä"]
        assert names(files, top, after="a", limit=2) == ["b", "c d"]
        kinds = {info.name: (info.directory, info.size) for info in files.listing(top, "", 100)}
        assert (kinds["dir"], kinds["c d"]) == ((True, 0), (False, 3))

    def test_files_and_directories_are_removed(self, files: Files, behind: Behind, top: Parts) -> None:
        behind.put((*top, "d", "deep", "f"), b"1")
        behind.put((*top, "g"), b"2")
        with pytest.raises(PathConflict, match="is not empty"):
            files.remove((*top, "d"), recursive=False)
        files.remove((*top, "g"), recursive=False)
        files.remove((*top, "d"), recursive=True)
        files.make_directory((*top, "e"))
        files.remove((*top, "e"), recursive=False)
        assert (behind.get((*top, "g")), behind.get((*top, "d", "deep", "f"))) == (None, None)
        assert not _there(files, (*top, "e"))

    def test_removing_forgets_an_unfinished_upload(self, files: Files, behind: Behind, top: Parts) -> None:
        behind.put((*top, "g"), b"old")
        for name in ("f", "g"):
            upload = files.upload((*top, name), 0)
            upload.write(b"0123")
            upload.close()
            files.remove((*top, name), recursive=False)
            assert (files.kept((*top, name)), behind.get((*top, name))) == (0, None)

    def test_a_file_is_copied_over_another(self, files: Files, behind: Behind, top: Parts) -> None:
        behind.put((*top, "f"), b"new")
        behind.put((*top, "x", "g"), b"old")
        files.copy((*top, "f"), (*top, "x", "g"), 100)
        assert (behind.get((*top, "x", "g")), behind.get((*top, "f"))) == (b"new", b"new")
        assert names(files, (*top, "x")) == ["g"]

    def test_a_directory_is_copied_whole(self, files: Files, behind: Behind, top: Parts) -> None:
        behind.put((*top, "d", "a"), b"1")
        behind.put((*top, "d", "sub", "b"), b"2")
        files.copy((*top, "d"), (*top, "e"), 100)
        assert (behind.get((*top, "e", "a")), behind.get((*top, "e", "sub", "b"))) == (b"1", b"2")
        assert names(files, top) == ["d", "e"]

    def test_too_large_a_copy_is_refused_and_leaves_nothing(self, files: Files, behind: Behind, top: Parts) -> None:
        for number in range(5):
            behind.put((*top, "d", str(number)), b"")
        with pytest.raises(StorageFault, match="too many files"):
            files.copy((*top, "d"), (*top, "e"), 3)
        assert names(files, top) == ["d"]

    def test_more_than_was_measured_is_not_copied(self, files: Files, behind: Behind, top: Parts) -> None:
        behind.put((*top, "d", "a"), b"123")
        behind.put((*top, "d", "b"), b"456")
        with pytest.raises(PathConflict, match="has grown"):
            files.copy((*top, "d"), (*top, "e"), 100, 5)
        assert names(files, top) == ["d"]
        files.copy((*top, "d"), (*top, "e"), 100, 6)
        assert names(files, top) == ["d", "e"]

    def test_usage_counts_all_that_is_below(self, files: Files, behind: Behind, top: Parts) -> None:
        behind.put((*top, "a"), b"12345")
        behind.put((*top, "d", "b"), b"123")
        assert files.usage(top) == 8
        assert files.usage((*top, "gone")) == 0

    @pytest.mark.parametrize(
        "call",
        [
            lambda files, path: files.stat(path),
            lambda files, path: files.listing(path, "", 10),
            lambda files, path: files.read(path),
            lambda files, path: files.remove(path, recursive=True),
            lambda files, path: files.copy(path, (*path[:-1], "copy"), 10),
        ],
    )
    def test_what_is_not_there_is_said_to_be_absent(
        self, files: Files, top: Parts, call: Callable[[Files, Parts], object]
    ) -> None:
        files.make_directory(top)
        with pytest.raises(Absent, match="does not exist"):
            call(files, (*top, "gone"))

    def test_a_file_is_no_directory(self, files: Files, behind: Behind, top: Parts) -> None:
        behind.put((*top, "f"), b"1")
        for call in (
            lambda: files.listing((*top, "f"), "", 10),
            lambda: files.make_directory((*top, "f")),
            lambda: write(files, (*top, "f", "below"), b"1"),
            lambda: files.read(top),
        ):
            with pytest.raises(StorageFault):
                call()
        assert behind.get((*top, "f")) == b"1"


def _there(files: Files, path: Parts) -> bool:
    try:
        files.stat(path)
    except Absent:
        return False
    return True
