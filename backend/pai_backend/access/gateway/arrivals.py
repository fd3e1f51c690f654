"""Who may knock: connections that have not logged in yet, bounded in all and for each source. Pure.

A stranger costs memory and a key exchange, so there is room for a bounded number of them. Silent ones must not lock
others out, from one source or from many: a newcomer is let in, and the oldest of the source with most places leaves.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator
from typing import Generic, TypeVar

IPV6_SITE_BITS = 64  # what one subscriber gets at least (RFC 6177 §2), so its addresses are one source

_T = TypeVar("_T")


def source_of(address: str) -> str:
    """What counts as one source: an IPv4 address, a /64 of IPv6, or the text itself when it is no address."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return str(ip.ipv4_mapped)
        return str(ipaddress.ip_network((ip, IPV6_SITE_BITS), strict=False))
    return str(ip)


class Arrivals(Generic[_T]):
    """Those who have connected and not logged in, by the time of their last progress."""

    def __init__(self, most: int, most_per_source: int) -> None:
        self._most, self._most_per_source = most, most_per_source
        self._source: dict[_T, str] = {}
        self._held: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._source)

    def __iter__(self) -> Iterator[_T]:
        return iter(tuple(self._source))

    def enter(self, who: _T, source: str) -> _T | None:
        """Note an arrival; returns who has to leave for it, if anybody."""
        leaving = self._leaving(source)
        if leaving is not None:
            self.leave(leaving)
        self._source[who] = source
        self._held[source] += 1
        return leaving

    def _leaving(self, source: str) -> _T | None:
        """Of a full source its oldest; of a full room the oldest of the sources with most, the newcomer counted."""
        held = self._held[source]
        if held >= self._most_per_source:
            heaviest = {source}
        elif len(self._source) < self._most:
            return None
        else:
            most = max(self._held.values())
            heaviest = {source} if held == most else {each for each, places in self._held.items() if places == most}
        return next(other for other, place in self._source.items() if place in heaviest)

    def progress(self, who: _T) -> None:
        """They have come a step nearer to a login: those who have not leave first."""
        source = self._source.pop(who, None)
        if source is not None:
            self._source[who] = source

    def leave(self, who: _T) -> None:
        """They have logged in, or are gone. Idempotent."""
        source = self._source.pop(who, None)
        if source is not None:
            self._held[source] -= 1
            if not self._held[source]:
                del self._held[source]
