"""Writing and reading rotated logs without a task in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_backend.engine.local.logfiles import LogReader, resolve_offset, segments, times
from pai_backend.engine.local.shim.capture import Capture


def read_all(directory: Path, offset: int, stream: str = "all") -> bytes:
    reader = LogReader(stream, offset)
    return b"".join(iter(lambda: reader.read(directory), b""))


def test_segments_are_contiguous_and_only_two_are_kept(tmp_path: Path) -> None:
    capture = Capture(str(tmp_path), 10)
    for _ in range(5):
        capture.add("stdout", b"12345678")
    assert [(s.base, s.end) for s in segments(tmp_path, "stdout")] == [(16, 32), (32, 40)]
    capture.close()
    assert capture.error is None


def test_the_merged_log_has_the_order_of_arrival(tmp_path: Path) -> None:
    capture = Capture(str(tmp_path), 1000)
    for stream, data in (("stdout", b"a"), ("stderr", b"b"), ("stdout", b"c")):
        capture.add(stream, data)
    assert read_all(tmp_path, 0) == b"abc"
    assert (read_all(tmp_path, 0, "stdout"), read_all(tmp_path, 0, "stderr")) == (b"ac", b"b")


@pytest.mark.parametrize(
    ("offset", "expected"), [(0, b"efghij"), (6, b"ghij"), (-3, b"hij"), (-99, b"efghij"), (10, b""), (99, b"")]
)
def test_offsets_count_from_the_first_byte_ever(tmp_path: Path, offset: int, expected: bytes) -> None:
    capture = Capture(str(tmp_path), 4)
    for data in (b"abcd", b"efgh", b"ij"):
        capture.add("stdout", data)
    assert read_all(tmp_path, offset) == expected


def test_a_reader_that_is_overtaken_by_rotation_goes_on_at_the_oldest_byte(tmp_path: Path) -> None:
    capture = Capture(str(tmp_path), 4)
    capture.add("stdout", b"abcd")
    reader = LogReader("all", 0)
    assert reader.read(tmp_path) == b"abcd"
    for data in (b"efgh", b"ijkl", b"mnop"):
        capture.add("stdout", data)
    assert reader.read(tmp_path) == b"ijkl"
    assert reader.read(tmp_path) == b"mnop"


def test_an_offset_from_the_end_is_fixed_once_there_is_output(tmp_path: Path) -> None:
    reader = LogReader("all", -2)
    assert reader.read(tmp_path) == b""
    capture = Capture(str(tmp_path), 100)
    capture.add("stdout", b"abcd")
    assert reader.read(tmp_path) == b"cd"
    capture.add("stdout", b"ef")
    assert reader.read(tmp_path) == b"ef"


def test_an_empty_log_resolves_to_its_beginning() -> None:
    assert resolve_offset([], -5) == 0


def test_output_after_a_failure_is_dropped_and_the_failure_kept(tmp_path: Path) -> None:
    capture = Capture(str(tmp_path), 4)
    capture.add("stdout", b"abcd")
    for file in tmp_path.iterdir():
        file.unlink()
    tmp_path.rmdir()
    capture.add("stdout", b"efgh")
    capture.add("stderr", b"x")
    assert isinstance(capture.error, FileNotFoundError)


def test_every_byte_may_have_a_time_of_its_own(tmp_path: Path) -> None:
    """A dot a second, for 20 hours."""
    seconds = iter(range(0, 10**9, 1000))
    capture = Capture(str(tmp_path), 10**6, lambda: next(seconds))
    for _ in range(70_000):
        capture.add("stdout", b".")
    assert times(tmp_path, "stdout", 0, 70_000) == [(byte, 1000 * byte) for byte in range(70_000)]
    assert times(tmp_path, "stdout", 60_000, 60_002) == [(60_000, 60_000_000), (60_001, 60_001_000)]
