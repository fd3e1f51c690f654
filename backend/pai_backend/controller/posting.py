"""HTTP requests to addresses that people gave: signed where they gave a secret, and never to the backend's own network
unless an administrator allows it.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import socket
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any

from tornado.httpclient import AsyncHTTPClient, HTTPError, HTTPRequest
from tornado.netutil import Resolver

Network = IPv4Network | IPv6Network

ANSWER_S = 10.0
THREADS = 8
MOST_BYTES = 65_536
"""Of an answer."""
_NAT64 = IPv6Network("64:ff9b::/96")
"""RFC 6052 §2.1: the last 32 bits are the IPv4 address that is meant."""


class PostFailed(Exception):
    """There is no answer; the message says why, without anything secret."""


@dataclass(frozen=True)
class PostAnswer:
    """``code``: the status, of which nothing is followed."""

    code: int
    body: bytes


def is_allowed(address: str, networks: Collection[Network]) -> bool:
    """Whether the backend may connect there for a user: public addresses, and those of ``networks``."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    meant = _meant(ip)
    within = any(meant in network for network in networks if network.version == meant.version)
    return within or (meant.is_global and not meant.is_multicast)


def _meant(ip: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address that an IPv6 address stands for, where it does."""
    if isinstance(ip, IPv4Address):
        return ip
    if ip in _NAT64:
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else ip)


class _AllowedAlone(Resolver):
    """Finds addresses that are allowed, and these are what is connected to: a name cannot mean another one later.

    Names of users may be slow to find; threads of its own keep others from waiting for them.
    """

    def initialize(self, networks: Collection[Network]) -> None:
        """Called by tornado's constructor."""
        self._networks = networks
        self._threads = ThreadPoolExecutor(THREADS, "names-of-users")

    async def resolve(self, host: str, port: int, family: Any = 0) -> list[tuple[int, Any]]:
        """Raises OSError where there is none."""
        asked = partial(socket.getaddrinfo, host, port, family, socket.SOCK_STREAM)
        answer = await asyncio.get_running_loop().run_in_executor(self._threads, asked)
        allowed: list[tuple[int, Any]] = [
            (each[0], each[4]) for each in answer if is_allowed(str(each[4][0]), self._networks)
        ]
        if not allowed:
            raise OSError(f"{host} is not a public address, and notifications.networks does not have it")
        return allowed


class Poster:
    """Posts bodies, and follows no redirect: what is signed for an address goes to that alone."""

    def __init__(self, networks: Collection[Network] | None = None) -> None:
        """``networks``: those that are not public and may be connected to all the same; None: any address may."""
        given: dict[str, Any] = {} if networks is None else {"resolver": _AllowedAlone(networks=networks)}
        self._client = AsyncHTTPClient(force_instance=True, max_body_size=MOST_BYTES, **given)

    async def post(
        self, url: str, body: bytes, content_type: str, *, secret: str = "", headers: dict[str, str] | None = None
    ) -> PostAnswer:
        """One request. With a secret it is signed (docs/audit.md). Raises PostFailed."""
        stamp = datetime.now(UTC).isoformat(timespec="seconds")
        sent = {**(headers or {}), "Content-Type": content_type, "X-Pai-Timestamp": stamp}
        if secret:
            signed = hmac.new(secret.encode(), f"{stamp}\n".encode() + body, hashlib.sha256)
            sent["X-Pai-Signature"] = signed.hexdigest()
        request = HTTPRequest(
            url, "POST", sent, body, connect_timeout=ANSWER_S, request_timeout=ANSWER_S, follow_redirects=False
        )
        try:
            answer = await self._client.fetch(request, raise_error=False)
        except ValueError:  # its words may hold the whole address
            raise PostFailed("its address cannot be asked") from None
        except (OSError, HTTPError) as error:
            raise PostFailed(str(error)) from None
        if answer.code == 599:  # tornado's: there was no answer
            raise PostFailed(str(answer.error or "no answer"))
        return PostAnswer(answer.code, answer.body)
