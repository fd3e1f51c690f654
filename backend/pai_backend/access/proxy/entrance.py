"""Where requests for services branch off from those for the api."""

from __future__ import annotations

from typing import Any

from tornado.http1connection import HTTP1Connection
from tornado.httputil import HTTPMessageDelegate, HTTPServerRequest
from tornado.routing import Matcher, Router, Rule

from pai_backend.access.proxy.address import read_address
from pai_backend.access.proxy.exchange import Exchange
from pai_backend.access.proxy.service import ServiceProxy


def proxy_rules(proxy: ServiceProxy) -> list[Rule]:
    """The routing rules to put in front of the api's: requests whose host or path is a service's."""
    return [Rule(_ServiceMatches(proxy.domain), _Entrance(proxy))]


class _ServiceMatches(Matcher):
    """Matches requests with the address of a service."""

    def __init__(self, domain: str) -> None:
        self._domain = domain

    def match(self, request: HTTPServerRequest) -> dict[str, Any] | None:
        return {} if read_address(request.host, request.uri or "", self._domain) is not None else None


class _Entrance(Router):
    """Hands each request to an exchange of its own."""

    def __init__(self, proxy: ServiceProxy) -> None:
        self._proxy = proxy

    def find_handler(self, request: HTTPServerRequest, **_: Any) -> HTTPMessageDelegate:
        connection = request.connection
        assert isinstance(connection, HTTP1Connection)  # the one kind that tornado's server has
        return Exchange(self._proxy, connection, request)
