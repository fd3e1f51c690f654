"""What a proxy in front of the gateway says of its clients."""

from __future__ import annotations

import ipaddress
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_backend.access.gateway.announced import NotAnnouncedError, ProxyHeader, read_announcement

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
ADDRESSES = st.ip_addresses(v=4) | st.ip_addresses(v=6)
PORTS = st.integers(0, 65535)


def version_1(source: object, port: int) -> bytes:
    family, other = ("TCP4", "10.0.0.1") if isinstance(source, ipaddress.IPv4Address) else ("TCP6", "::1")
    return f"PROXY {family} {source} {other} {port} 22\r\n".encode()


def version_2(source: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int, more: bytes = b"") -> bytes:
    packed = source.packed
    body = packed + packed + struct.pack("!HH", port, 22) + more
    return SIGNATURE + bytes([0x21, 0x11 if len(packed) == 4 else 0x21]) + struct.pack("!H", len(body)) + body


@given(ADDRESSES, PORTS, st.binary(max_size=40), st.binary(max_size=40))
def test_either_version_is_read_whatever_follows(
    source: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int, extra: bytes, rest: bytes
) -> None:
    for header in (version_1(source, port), version_2(source, port, extra)):
        assert read_announcement(header + rest) == ProxyHeader((str(source), port), len(header))
        for cut in range(len(header)):
            assert read_announcement(header[:cut]) is None


@given(
    st.binary(max_size=200)
    | st.binary(max_size=60).map(SIGNATURE.__add__)
    | st.binary(max_size=120).map(b"PROXY ".__add__)
)
def test_other_bytes_are_read_refused_or_waited_for_and_no_more(data: bytes) -> None:
    try:
        found = read_announcement(data)
    except NotAnnouncedError:
        return
    assert found is None or 0 < found.size <= len(data)


@pytest.mark.parametrize(
    "header",
    [
        b"PROXY UNKNOWN\r\n",
        b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n",
        SIGNATURE + b"\x20\x00\x00\x00",
        SIGNATURE + b"\x20\x11\x00\x0c" + bytes(12),
        SIGNATURE + b"\x21\x00\x00\x00",
        SIGNATURE + b"\x21\x31\x00\xd8" + bytes(216),
    ],
    ids=["unknown", "unknown with more", "local", "local with addresses", "no family", "sockets"],
)
def test_a_proxy_that_names_nobody_stands_for_itself(header: bytes) -> None:
    assert read_announcement(header + b"SSH-2.0-x\r\n") == ProxyHeader(None, len(header))


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"GET / HTTP/1.1\r\n",
        b"\x00",
        b"PROXY TCP4 10.0.0.1 10.0.0.2 1\r\n",
        b"PROXY TCP4 10.0.0.256 10.0.0.2 1 2\r\n",
        b"PROXY TCP4 ::1 ::1 1 2\r\n",
        b"PROXY TCP6 10.0.0.1 10.0.0.1 1 2\r\n",
        b"PROXY TCP6 fe80::1%\x1b[2J ::1 1 2\r\n",
        b"PROXY TCP4 10.0.0.1 10.0.0.2 65536 2\r\n",
        b"PROXY TCP4 10.0.0.1 10.0.0.2 -1 2\r\n",
        "PROXY TCP4 10.0.0.1 10.0.0.2 ² 2\r\n".encode(),
        b"PROXY TCP4 10.0.0.1  10.0.0.2 1 2\r\n",
        b"PROXY  \r\n",
        b"PROXY " + b"1" * 101,
        SIGNATURE + b"\x11\x11\x00\x0c" + bytes(12),
        SIGNATURE + b"\x22\x11\x00\x0c" + bytes(12),
        SIGNATURE + b"\x21\x11\x00\x0b" + bytes(11),
        SIGNATURE + b"\x21\x21\x00\x0c" + bytes(12),
        SIGNATURE + b"\x21\x11\xff\xff",
    ],
)
def test_what_is_no_header_is_refused(data: bytes) -> None:
    with pytest.raises(NotAnnouncedError):
        read_announcement(data)
