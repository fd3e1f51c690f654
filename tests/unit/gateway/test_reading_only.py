"""SFTP that may only read: what becomes of each request, however its bytes are cut."""

from __future__ import annotations

import pytest
from asyncssh.packet import String, UInt32
from hypothesis import given
from hypothesis import strategies as st

from pai_backend.access.gateway.reading_only import ReadingOnly
from pai_backend.engine.ssh_wire import PacketDecodeError

HANDLE = b"\0\0\0\x01"


def _packet(kind: int, body: bytes) -> bytes:
    return UInt32(1 + len(body)) + bytes([kind]) + body


def _ask(kind: int, *fields: bytes) -> bytes:
    return _packet(kind, UInt32(9) + b"".join(fields))


READS = {
    "close": _ask(4, String(HANDLE)),
    "read": _ask(5, String(HANDLE), UInt32(0) * 2, UInt32(32768)),
    "lstat": _ask(7, String("a")),
    "fstat": _ask(8, String(HANDLE)),
    "opendir": _ask(11, String("")),
    "readdir": _ask(12, String(HANDLE)),
    "realpath": _ask(16, String(".")),
    "stat": _ask(17, String("x" * 300)),
    "readlink": _ask(19, String("a")),
    "statvfs": _ask(200, String("statvfs@openssh.com"), String("/")),
    "limits": _ask(200, String("limits@openssh.com")),
    "version 3": _packet(1, UInt32(3)),
}
CHANGES = {
    "write": _ask(6, String(HANDLE), UInt32(0) * 2, String(b"data" * 100)),
    "setstat": _ask(9, String("a"), UInt32(4), UInt32(0o777)),
    "fsetstat": _ask(10, String(HANDLE), UInt32(0)),
    "remove": _ask(13, String("a")),
    "mkdir": _ask(14, String("a"), UInt32(0)),
    "rmdir": _ask(15, String("")),
    "rename": _ask(18, String("a"), String("b")),
    "symlink": _ask(20, String("a"), String("b")),
    "link": _ask(21, String("a"), String("b"), b"\0"),
    "posix-rename": _ask(200, String("posix-rename@openssh.com"), String("a"), String("b")),
    "hardlink": _ask(200, String("hardlink@openssh.com"), String("a"), String("b")),
    "copy-data": _ask(200, String("copy-data"), String(HANDLE)),
    "a file with the name of an extension": _ask(13, String("posix-rename@openssh.com")),
    "almost harmless": _ask(200, String("statvfs@openssh.org"), String("/")),
    "unknown": _ask(99, String("limits@openssh.com")),
}


def _cut(data: bytes, cuts: list[int]) -> bytes:
    """What comes out when the bytes come in pieces that end at ``cuts``."""
    filter_ = ReadingOnly()
    ends = sorted({cut % (len(data) + 1) for cut in cuts} | {len(data)})
    return b"".join(filter_.filtered(data[a:b]) for a, b in zip([0, *ends], ends, strict=False))


@pytest.mark.parametrize("request_", READS.values(), ids=READS.keys())
def test_what_reads_passes_unchanged(request_: bytes) -> None:
    assert ReadingOnly().filtered(request_ * 3) == request_ * 3


@pytest.mark.parametrize("request_", CHANGES.values(), ids=CHANGES.keys())
def test_what_changes_becomes_an_unknown_request_under_its_number(request_: bytes) -> None:
    out = ReadingOnly().filtered(request_)
    length = int.from_bytes(request_[9:13], "big")
    name = out[13 : 13 + length]
    assert out[:4] == request_[:4]
    assert out[4] == 200
    assert out[5:13] == request_[5:13]
    assert name == b"" or name.endswith(b"x")
    assert name not in (b"posix-rename@openssh.com", b"hardlink@openssh.com", b"copy-data")
    assert out[13 + length :] == request_[13 + length :]


@pytest.mark.parametrize("flags", [0, 1, 2, 0x1A, 0xFFFFFFFF])
def test_files_are_opened_for_reading(flags: int) -> None:
    request = _ask(3, String("file"), UInt32(flags), UInt32(4), UInt32(0o600))
    assert ReadingOnly().filtered(request) == _ask(3, String("file"), UInt32(1), UInt32(4), UInt32(0o600))


def test_later_versions_of_the_protocol_are_not_spoken() -> None:
    assert ReadingOnly().filtered(_packet(1, UInt32(6))) == _packet(1, UInt32(3))
    assert (
        ReadingOnly()
        .filtered(_packet(1, UInt32(6) + String("x") + String("y")))
        .startswith(UInt32(15) + b"\x01" + UInt32(3))
    )


@given(
    st.lists(st.sampled_from([*READS.values(), *CHANGES.values()]), min_size=1, max_size=8),
    st.lists(st.integers(0, 5000), max_size=30),
)
def test_where_the_bytes_are_cut_makes_no_difference(requests: list[bytes], cuts: list[int]) -> None:
    whole = b"".join(ReadingOnly().filtered(request) for request in requests)
    assert _cut(b"".join(requests), cuts) == whole


@pytest.mark.parametrize(
    "lie",
    [
        UInt32(0) + CHANGES["remove"],
        UInt32(1) + b"\x05" + CHANGES["remove"],
        UInt32(1) + bytes([200]) + UInt32(9) + String("posix-rename@openssh.com"),
        UInt32(9) + bytes([200]) + UInt32(9) + String("posix-rename@openssh.com"),
        UInt32(13) + b"\x03" + UInt32(9) + String("file") + UInt32(0x1A),
        UInt32(9) + b"\x0d" + UInt32(9) + UInt32(1000),
    ],
    ids=["nothing", "a type alone", "an extension alone", "name outside", "flags outside", "string outside"],
)
def test_a_request_that_ends_within_a_field_ends_the_session(lie: bytes) -> None:
    with pytest.raises(PacketDecodeError):
        ReadingOnly().filtered(lie)
