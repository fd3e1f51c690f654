"""Whom a proxy of ours asks for: the address that limits, locks and the audit are by. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address


def source(peer: str, forwarded_for: Iterable[str], proxies: Sequence[IPv4Network | IPv6Network]) -> str:
    """The nearest address that is none of our proxies'; ``peer`` when it is no proxy, or no proxy names one.

    ``forwarded_for`` are the values of ``X-Forwarded-For``. Each proxy adds whom it heard from at the end, so what
    stands left of the first stranger is the stranger's own claim.
    """
    found = peer
    named = [name.strip() for value in forwarded_for for name in value.split(",")]
    while is_among(found, proxies) and named:
        last = _address(named.pop())
        if last is None:
            break
        found = str(last)
    return found


def is_among(text: str, proxies: Sequence[IPv4Network | IPv6Network]) -> bool:
    """Whether an address is one of these."""
    address = _address(text)
    return address is not None and any(address in network for network in proxies)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text.partition("%")[0].strip("[]"))
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
