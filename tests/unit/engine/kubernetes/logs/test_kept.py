"""What is kept of a log is whole after a kill, and after a power cut as far as it was on the disk."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from pai_backend.engine.kubernetes.logs.kept import Extent, InUse, KeptLog
from pai_backend.engine.kubernetes.logs.lines import Position
from pai_backend.engine.local.logfiles import LogReader

LINE = Position(stamp=b"2026-11-21T12:00:00.123456789+08:00", nth=2, inside=3)


def at(end: int) -> Position:
    return replace(LINE, end=end)


def content(kept: KeptLog) -> bytes:
    reader, data = LogReader("all", 0), b""
    while piece := reader.read(kept.directory):
        data += piece
    return data


@pytest.fixture
def kept(tmp_path: Path) -> KeptLog:
    return KeptLog(tmp_path / "logs" / "task", 10)


def test_a_log_is_gone_on_with_where_it_was(kept: KeptLog) -> None:
    assert kept.look() is None
    with kept.writing() as position:
        assert position == Position()
        kept.append(b"one\n", at(4))
    with kept.writing() as position:
        assert position == at(4)
        kept.append(b"two\n", at(8))
        kept.complete(at(8))
    assert kept.look() == Extent(0, at(8), complete=True)
    assert content(kept) == b"one\ntwo\n"


def test_two_segments_are_kept(kept: KeptLog) -> None:
    with kept.writing():
        for number in range(9):
            kept.append(b"line %d of it\n" % number, at(13 * (number + 1)))
    assert kept.look() == Extent(91, at(117), complete=False)
    assert content(kept) == b"line 7 of it\nline 8 of it\n"


def test_what_was_written_without_its_position_is_dropped(kept: KeptLog) -> None:
    """Killed between the two; the kubelet has it still."""
    with kept.writing():
        kept.append(b"0123456789", at(10))
    with (kept.directory / "all-000000000010.log").open("wb") as file:
        file.write(b"more")
    with kept.writing() as position:
        assert position == at(10)
        kept.append(b"MORE", at(14))
    assert content(kept) == b"0123456789MORE"


def test_a_power_cut_goes_back_to_what_was_on_the_disk(kept: KeptLog) -> None:
    with kept.writing():
        kept.append(b"sure", at(4))
        kept.secure(at(4))
        kept.append(b"lost", at(8))
    os.truncate(kept.directory / "all-000000000000.log", 6)
    assert kept.look() == Extent(0, at(4), complete=False)
    with kept.writing() as position:
        assert position == at(4)
    assert content(kept) == b"sure"


@pytest.mark.parametrize("torn", [b"", b"end=00", b"\0" * 100])
def test_a_torn_position_is_none(kept: KeptLog, torn: bytes) -> None:
    with kept.writing():
        kept.append(b"some", at(4))
    (kept.directory / "position").write_bytes(torn)
    assert kept.look() is None
    with kept.writing() as position:
        assert position == Position()
    assert content(kept) == b""


def test_one_writes_at_a_time(kept: KeptLog) -> None:
    with kept.writing(), pytest.raises(InUse, match="another process"), KeptLog(kept.directory, 10).writing():
        raise AssertionError
    with kept.writing():
        kept.append(b"free", at(4))


def test_nobody_else_may_read_it(kept: KeptLog) -> None:
    with kept.writing():
        kept.append(b"some", at(4))
    assert {path.stat().st_mode & 0o077 for path in (kept.directory, *kept.directory.iterdir())} == {0}
