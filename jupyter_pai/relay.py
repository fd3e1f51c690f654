"""Rules of passing HTTP and WebSocket messages on: which headers and cookies go along. Pure.

Source of the hop-by-hop rule: RFC 9110 §7.6.1. What the browser holds for Jupyter (its login cookie,
its XSRF cookie, ``Authorization``, a ``token`` in the query) is Jupyter's and goes no further.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import parse_qsl, urlencode, urlsplit

from tornado.httputil import HTTPHeaders

from pai_backend.model import relayed_by
from pai_backend.model.shared_origin import without_foreign_xsrf

HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_JUPYTERS = frozenset({"authorization", "cookie"})
_REMADE = frozenset({"content-length", "expect", "host"})  # the next hop's client writes these itself
_OF_BROWSER = frozenset({"origin", "referer", "x-xsrftoken"})
_WEBSOCKET = "sec-websocket-"
_OWN = frozenset({"same-origin", "none"})
XSRF_HEADER = "X-XSRFToken"
_LOGIN_COOKIES = ("username-", "jupyterhub-")


def request_headers(headers: HTTPHeaders, token: str, *, keep_browser: bool) -> HTTPHeaders:
    """Headers for the backend: the client's without those of this hop and of Jupyter, and our token.

    ``keep_browser`` keeps what says which page asks (Origin, …): a service judges them itself, while for the backend's
    own API the one who asks is this server. ``Host`` stays the backend's, by which a reverse proxy before it finds it.
    """
    named = {name.strip().lower() for name in headers.get("Connection", "").split(",")}
    dropped = HOP_BY_HOP | _JUPYTERS | _REMADE | named | (frozenset() if keep_browser else _OF_BROWSER)
    passed = HTTPHeaders()
    for name, value in headers.get_all():
        if name.lower() not in dropped and not name.lower().startswith((_WEBSOCKET, "x-forwarded-", relayed_by.NAMES)):
            passed.add(name, value)
    passed["Authorization"] = f"Bearer {token}"
    return passed


def response_headers(headers: HTTPHeaders) -> Iterator[tuple[str, str]]:
    """Headers of an answer without those of the hop it came by."""
    named = {name.strip().lower() for name in headers.get("Connection", "").split(",")}
    for name, value in headers.get_all():
        if name.lower() not in HOP_BY_HOP and name.lower() not in named:
            yield name, value


def is_of_own_page(headers: HTTPHeaders) -> bool:
    """Whether a request comes from a page of this server, or from no page at all.

    Jupyter's own check lets every origin through for a request with a token and for ``allow_origin='*'``, and a
    service behind this server sees only this server's token. Browsers that send ``Sec-Fetch-Site`` say it best, also
    behind a proxy that replaces ``Host``.
    """
    site = headers.get("Sec-Fetch-Site")
    if site is not None:
        return site in _OWN
    origin = headers.get("Origin")
    return origin is None or urlsplit(origin.lower()).netloc == headers.get("Host", "").lower()


def keep_service_cookies(headers: HTTPHeaders, cookie: str, ours: Iterable[str]) -> None:
    """Put the cookies of a browser into ``headers`` for a service, without those of Jupyter servers and hubs.

    Names in ``ours`` go, and those of other servers on this host, whose cookies a browser sends to all its
    ports. An ``_xsrf`` that is not the service's own goes, also where a page has copied it into its header.
    """
    names = set(ours)
    pairs, foreign = without_foreign_xsrf(pair.strip() for pair in cookie.split(";") if pair.strip())
    kept = [pair for pair in pairs if pair.partition("=")[0] not in names and not pair.startswith(_LOGIN_COOKIES)]
    if kept:
        headers["Cookie"] = "; ".join(kept)
    if headers.get(XSRF_HEADER) in foreign:
        del headers[XSRF_HEADER]


def without_token(query: str) -> str:
    """A query string without Jupyter's ``token`` argument; untouched when it has none."""
    pairs = parse_qsl(query, keep_blank_values=True)
    if all(name != "token" for name, _ in pairs):
        return query
    return urlencode([(name, value) for name, value in pairs if name != "token"])
