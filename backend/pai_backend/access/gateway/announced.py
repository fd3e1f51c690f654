"""Client addresses behind a proxy of ours: the header that the proxy sends before the client's first byte.

The PROXY protocol, versions 1 and 2 (haproxy.org, proxy-protocol.txt of 2020/03/05). The header is required from the
addresses in ``gateway.proxies`` and read from no other, because a peer that sends it can claim any address. A
connection from one of them without the header is closed, as the protocol demands (§2): guessing would let clients of
the proxy speak for it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from pai_backend.access.gateway.options import Network
from pai_backend.access.gateway.transport import FlushingTransport

HEADER_S = 10.0
"""A proxy says it as soon as it has connected."""

_SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"  # §2.2
_MOST_V1 = 107  # §2.1: the longest line, its end included
_MOST_V2 = 16 + 2048  # addresses, and whatever a proxy adds of its own
_ADDRESSES = {0x11: (4, "!4s4sHH"), 0x21: (16, "!16s16sHH")}  # TCP over IPv4, over IPv6

log = logging.getLogger(__name__)


class NotAnnouncedError(ValueError):
    """What came is no header of the protocol."""


@dataclass(frozen=True)
class ProxyHeader:
    """What a header says, and how many bytes it takes."""

    source: tuple[str, int] | None
    """Address and port of the client; None: the proxy speaks for itself (a health check), or does not know."""
    size: int


def read_announcement(data: bytes) -> ProxyHeader | None:
    """What the first bytes of a connection announce; None when more of them are needed. Pure.

    Raises :class:`NotAnnouncedError` as soon as they can be no header any more.
    """
    if data[: len(_SIGNATURE)] == _SIGNATURE[: len(data)]:
        return _version_2(data)
    if data[:6] == b"PROXY "[: len(data)]:
        return _version_1(data)
    raise NotAnnouncedError("it has no PROXY signature")


def _version_1(data: bytes) -> ProxyHeader | None:
    line, end, _ = data[:_MOST_V1].partition(b"\r\n")
    if not end:
        if len(data) >= _MOST_V1:
            raise NotAnnouncedError(f"the line is longer than {_MOST_V1} bytes")
        return None
    size = len(line) + len(end)
    words = line.decode("ascii", "replace").split(" ")
    if words[1] == "UNKNOWN":
        return ProxyHeader(None, size)
    if len(words) != 6 or words[1] not in ("TCP4", "TCP6") or b"%" in line:  # a zone is none of an address's (§2.1)
        raise NotAnnouncedError("the line is not made of a family, two addresses and two ports")
    kind = ipaddress.IPv4Address if words[1] == "TCP4" else ipaddress.IPv6Address
    try:
        source, _ = kind(words[2]), kind(words[3])
    except ValueError as exc:
        raise NotAnnouncedError(str(exc)) from None
    ports = [int(word) for word in words[4:] if word.isascii() and word.isdigit() and len(word) <= 5]
    if len(ports) != 2 or max(ports) > 65535:
        raise NotAnnouncedError("a port is invalid")
    return ProxyHeader((str(source), ports[0]), size)


def _version_2(data: bytes) -> ProxyHeader | None:
    if len(data) < 16:
        return None
    version, family, length = struct.unpack_from("!BBH", data, 12)
    size = 16 + length
    if version >> 4 != 2 or version & 0xF > 1:
        raise NotAnnouncedError("its version or command is not known")
    if size > _MOST_V2:
        raise NotAnnouncedError(f"it is longer than {_MOST_V2} bytes")
    if len(data) < size:
        return None
    if version & 0xF == 0 or family not in _ADDRESSES:  # LOCAL, or a family that has no address here
        return ProxyHeader(None, size)
    width, layout = _ADDRESSES[family]
    if length < struct.calcsize(layout):
        raise NotAnnouncedError("its addresses are cut short")
    source, _, port, _ = struct.unpack_from(layout, data, 16)
    assert len(source) == width
    return ProxyHeader((str(ipaddress.ip_address(source)), port), size)


class ProxyHeaderReader(asyncio.Protocol):
    """Stands before a connection's own protocol until its proxy has said for whom it is."""

    def __init__(self, make: Callable[[], asyncio.Protocol], proxies: Sequence[Network]) -> None:
        """``make`` gives the protocol of the connection, ``proxies`` are those that are asked."""
        self._make, self._proxies = make, proxies
        self._head = b""
        self._transport: asyncio.Transport
        self._limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio with the accepted socket."""
        self._transport = cast("asyncio.Transport", transport)
        if self._is_proxy():
            self._limit = asyncio.get_running_loop().call_later(HEADER_S, self._refuse, "it says nothing")
        else:
            self._hand_over(self._transport, b"")

    def _is_proxy(self) -> bool:
        try:
            address = ipaddress.ip_address(str(self._transport.get_extra_info("peername")[0]).partition("%")[0])
        except (TypeError, ValueError):
            return False
        mapped = getattr(address, "ipv4_mapped", None)
        return any((mapped or address) in network for network in self._proxies)

    def data_received(self, data: bytes) -> None:
        """Called by asyncio, until the header is whole."""
        self._head += data
        try:
            found = read_announcement(self._head)
        except NotAnnouncedError as exc:
            self._refuse(str(exc))
            return
        if found is not None:
            self._hand_over(FlushingTransport(self._transport, found.source), self._head[found.size :])

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio when the proxy has left before that."""
        self._forget_limit()

    def _hand_over(self, transport: asyncio.Transport, rest: bytes) -> None:
        self._forget_limit()
        protocol = self._make()
        self._transport.set_protocol(protocol)
        protocol.connection_made(transport)
        if rest:
            protocol.data_received(rest)

    def _refuse(self, why: str) -> None:
        self._forget_limit()
        log.warning("closed a connection of the proxy %s without a PROXY header: %s", self._peer(), why)
        self._transport.abort()

    def _peer(self) -> object:
        return (self._transport.get_extra_info("peername") or ("?",))[0]

    def _forget_limit(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
