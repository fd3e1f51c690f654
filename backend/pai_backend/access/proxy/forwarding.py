"""Answers to reverse proxies that pass requests for services on by themselves, and ask us first (ADR 0037).

Such a proxy asks ``/.pai/authorize`` with the credentials of a request, and is told where the task is and with which
headers to go there. What it cannot do as we do is not told it: another protocol than HTTP and streams of events, which
last and are cut within 2 s here, pages of a Jupyter, which hold its token, and requests with a token of ours in their
address. Every other answer means that the request itself belongs here, where it is decided upon again. Pure.
"""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus

from pai_backend.access.proxy.address import query_values
from pai_backend.access.proxy.fields import HeaderFields
from pai_backend.access.proxy.headers import Upstream, request_fields
from pai_backend.access.proxy.pages import Reply, plain_headers
from pai_backend.access.proxy.refusal import Refusal, Refused
from pai_backend.access.proxy.visitor import Incoming, same_host

AUTHORIZE = "/.pai/authorize"
URI, METHOD = "X-Forwarded-Uri", "X-Forwarded-Method"
UPSTREAM, KEEP = "X-Pai-Upstream", "X-Pai-Keep"
_TOLD = {
    "host": "X-Pai-Host",
    "cookie": "X-Pai-Cookie",
    "authorization": "X-Pai-Authorization",
    "origin": "X-Pai-Origin",
    "accept-encoding": "X-Pai-Accept-Encoding",
}
"""What a task gets in place of what the client has sent; empty where it gets none. Caddy must hear of each."""
_OF_SOCKETS = ("Upgrade", "Sec-WebSocket-Key")


def as_asked(asking: Incoming) -> Incoming:
    """The request that a proxy asks about. Raises Refused for one that another site makes a browser send.

    Whether it changes the protocol is not always told, so a foreign ``Origin`` is refused whatever the method.
    """
    headers = asking.headers
    origin = headers.get("Origin")
    if origin is not None and "Authorization" not in headers and not same_host(origin, asking.host):
        raise Refused(Refusal.FOREIGN)
    address = replace(asking.address, target=headers.get(URI, ""))
    return replace(asking, address=address, method=headers.get(METHOD, ""), has_body=False)


def must_pass_here(incoming: Incoming, to: Upstream) -> bool:
    """Whether a request that is allowed cannot go past us."""
    headers = incoming.headers
    accepted = headers.get("Accept", "").lower()
    if any(name in headers for name in _OF_SOCKETS) or "text/event-stream" in accepted:
        return True
    if (to.is_jupyter or to.token is not None) and ("text/html" in accepted or not accepted):
        return True
    page = headers.get("Referer", "").partition("#")[0].partition("?")[2]
    return bool(query_values(to.address.query, "token") or query_values(page, "token"))


def hears_only_success(asking: Incoming) -> bool:
    """Whether the proxy asks to be answered 200, without ``X-Pai-Upstream``, also for what must pass here.

    Envoy gives every other answer to its client instead of passing the request on.
    """
    return "200" in query_values(asking.address.query, "otherwise")


def go_here(asking: Incoming) -> Reply:
    """The request itself belongs here."""
    headers = plain_headers()
    headers.add("X-Pai-Through", "backend")
    return Reply(HTTPStatus.OK if hears_only_success(asking) else HTTPStatus.FORBIDDEN, headers)


def go_there(peer: tuple[str, int], incoming: Incoming, to: Upstream, *, is_owner: bool) -> Reply:
    """Where a request goes, and with what; an owner's connections to the task may carry the owner's next request."""
    host, port = peer
    headers = plain_headers()
    headers.add(UPSTREAM, f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    if is_owner:
        headers.add(KEEP, "yes")
    fields = request_fields(incoming.headers, to)
    told = HeaderFields((name.decode("latin-1"), value.decode("latin-1")) for name, value in fields)
    for name, ours in _TOLD.items():
        headers.add(ours, told.get(name, ""))
    return Reply(HTTPStatus.OK, headers)
