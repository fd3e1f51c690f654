"""What may pass between a browser and a task in headers. Pure.

Hop-by-hop fields end at the proxy (RFC 9110 §7.6.1). Credentials end here too: the session cookie,
``Authorization`` and the cookies of Jupyter servers that share the host never reach a task, and a task's token
never reaches the browser. What a client says about forwarding is replaced by what is so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pai_backend.access.proxy.address import ServiceAddress, without_parameter
from pai_backend.access.proxy.fields import HeaderFields
from pai_backend.access.tickets import COOKIES
from pai_backend.model.shared_origin import OF_ORIGIN, XSRF_COOKIE, XSRF_MARK, mark_of, without_foreign_xsrf

Fields = list[tuple[bytes, bytes]]

_HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "expect"}
)
_CREDENTIALS = frozenset({"authorization", "proxy-authorization", "cookie"})
_MAY_FORWARD = frozenset("xfvp")  # the first letters of the next
_FORWARDING = re.compile(r"x-forwarded-.*|forwarded|x-real-ip|x-scheme|x-original-.*|via|pai-relay-.*", re.ASCII)
_OUR_COOKIES = frozenset({*COOKIES, XSRF_MARK})
_OURS = frozenset({"host", "http2-settings"})
_PASSING_PROTOCOL = re.compile(r"(?!h[23]|http|tls)[a-z0-9._+-]+", re.ASCII)
_FRAMING = frozenset({"content-length"})
_NO_OPTIONS: frozenset[str] = frozenset()
_NEVER_SENT = _HOP_BY_HOP | _CREDENTIALS | _OURS

_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_BLANKS = "".join(map(chr, range(0x21)))
_ADDRESS = re.compile(r"(?:(?P<scheme>[a-z][a-z0-9+.-]*):)?//(?P<host>[^/?#]+)(?P<path>.*)", re.ASCII | re.I | re.S)
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.ASCII | re.I)
_REFRESH = re.compile(
    r"""(?P<time>[\s\d.]*)[;,\s]\s*(?:url\s*=\s*)?(?P<quote>["']?)(?P<url>.+?)(?P=quote)\s*""", re.I | re.S
)

# On a path address the browser sends every cookie of the host name, whatever the port: among them the
# sign-in of the Jupyter server or hub that the user works in.
_JUPYTER_COOKIE = re.compile(r"username-.*|jupyterhub-.*|jupyter-hub-.*", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class Upstream:
    """How a request presents itself to the task."""

    address: ServiceAddress
    host: str
    scheme: str
    remote_ip: str
    port: int
    token: str | None
    """The token of a Jupyter server, presented for the user."""
    outer_prefix: str = ""
    """Where a relay in front has put our root, e.g. ``/user/ann/pai``; empty without one."""
    is_jupyter: bool = False
    is_guest: bool = False
    """It is another user's service, shared with who asks."""

    @property
    def prefix(self) -> str:
        """The path below which the browser finds the service; empty for a host-name address."""
        return self.outer_prefix + self.address.prefix if self.address.prefix else ""


def connection_options(headers: HeaderFields) -> frozenset[str]:
    """The lower-case words of ``Connection``."""
    if "Connection" not in headers:
        return _NO_OPTIONS
    return frozenset(
        word.strip().lower() for value in headers.get_list("Connection") for word in value.split(",") if word.strip()
    )


def wants_upgrade(headers: HeaderFields) -> bool:
    """Whether this request asks for one other protocol that passes through here, such as WebSocket.

    No kind of HTTP does, nor a list that may offer one (``h2c, websocket``): it would carry requests past these rules.
    """
    wanted = headers.get("Upgrade", "").lower()
    return wanted != "" and "upgrade" in connection_options(headers) and _PASSING_PROTOCOL.fullmatch(wanted) is not None


def request_fields(headers: HeaderFields, to: Upstream, *, drop_token: bool = False) -> Fields:
    """The header fields for the task; ``drop_token`` also from the address of the page that asks."""
    dropped = _NEVER_SENT | connection_options(headers)
    if to.is_jupyter or to.token is not None:
        # Pages of a Jupyter are searched for its token and its addresses, which a compressed page would hide.
        dropped |= {"accept-encoding", "origin"}
    if "Transfer-Encoding" in headers:
        dropped |= _FRAMING
    cookies, hidden = passing_cookies(headers.get_list("Cookie"), shared_host=bool(to.address.prefix))
    fields: list[tuple[str, str]] = []
    for low, name, value in headers.triples:
        if low == "x-xsrftoken" and value in hidden:
            continue  # a page has copied it from a cookie
        if low in dropped or (low[0] in _MAY_FORWARD and _FORWARDING.fullmatch(low)):
            continue
        if low == "referer" and drop_token:
            value = without_parameter(value, "token")
        fields.append((name, value))
    if cookies:
        fields.append(("Cookie", cookies))
    fields += _hop_fields(headers)
    fields += _identity_fields(headers, to)
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]


def _hop_fields(headers: HeaderFields) -> list[tuple[str, str]]:
    fields = [("Transfer-Encoding", "chunked")] if "Transfer-Encoding" in headers else []
    if wants_upgrade(headers):
        fields += [("Connection", "Upgrade"), ("Upgrade", headers["Upgrade"])]
    return fields


def _identity_fields(headers: HeaderFields, to: Upstream) -> list[tuple[str, str]]:
    fields = [
        ("X-Forwarded-For", to.remote_ip),
        ("X-Real-IP", to.remote_ip),
        ("X-Forwarded-Host", to.host),
        ("X-Forwarded-Proto", to.scheme),
    ]
    if to.address.prefix:
        fields.append(("X-Forwarded-Prefix", to.prefix))
    if not to.is_jupyter and to.token is None:
        return [("Host", to.host), *fields]
    # A Jupyter bound to loopback answers local host names only, and it compares Origin with Host. The origin has
    # been checked here, and these two agree with each other.
    local = f"localhost:{to.port}"
    fields += [("Host", local), ("Accept-Encoding", "identity")]
    if to.token is not None:
        fields.append(("Authorization", f"token {to.token}"))
    if "Origin" in headers:
        fields.append(("Origin", f"http://{local}"))
    return fields


def passing_cookies(values: Iterable[str], *, shared_host: bool) -> tuple[str, frozenset[str]]:
    """The ``Cookie`` value for the task: all that the browser sent but ours. And values that it must not learn."""
    pairs = [pair for value in values for part in value.split(";") if (pair := part.strip())]
    hidden: frozenset[str] = frozenset()
    if shared_host:
        pairs, hidden = without_foreign_xsrf(pairs)
    kept = []
    for pair in pairs:
        name = pair.partition("=")[0].strip()
        if name in _OUR_COOKIES or (shared_host and _JUPYTER_COOKIE.fullmatch(name)):
            continue
        kept.append(pair)
    return "; ".join(kept), hidden


def request_target(address: ServiceAddress, *, drop_token: bool) -> bytes:
    """What to ask the task for. Bytes outside ASCII are percent-encoded, as a URL has them (RFC 3986 §2.1)."""
    target = without_parameter(address.target, "token") if drop_token else address.target
    raw = target.encode("latin-1")
    return b"".join(bytes([byte]) if 0x21 <= byte <= 0x7E else b"%%%02X" % byte for byte in raw)


def response_headers(fields: HeaderFields, to: Upstream, *, upgraded: bool = False) -> HeaderFields:
    """The header fields for the browser."""
    dropped = _HOP_BY_HOP | connection_options(fields)
    if "Transfer-Encoding" in fields:
        dropped |= _FRAMING  # a length beside it is not the body's (RFC 9112 §6.3)
    if upgraded:
        dropped -= {"connection", "upgrade"}
    if to.address.prefix:
        dropped |= OF_ORIGIN
    headers = HeaderFields()
    for low, name, value in fields.triples:
        if low in dropped:
            continue
        if low == "set-cookie":
            if (cookie := browser_cookie(value, to)) is not None:
                headers.add(name, cookie)
                if to.address.prefix and cookie.startswith(f"{XSRF_COOKIE}="):
                    headers.add(name, mark_of(cookie))
        elif low == "location":
            headers.add(name, browser_location(value, to))
        elif low == "refresh":
            headers.add(name, _browser_refresh(value, to))
        else:
            headers.add(name, value)
    return headers


def browser_location(location: str, to: Upstream) -> str:
    """A redirect as the browser must see it: on this service's address, without a token.

    What leads to other hosts is left as it is. Source of how browsers read it: URL (WHATWG), §4.4.
    """
    if to.token is not None:
        location = without_parameter(location, "token")
    reference = _as_read(location)
    if (found := _ADDRESS.fullmatch(reference)) is not None:
        scheme, host, path = found["scheme"], found["host"].rpartition("@")[2].lower(), found["path"]
        if scheme and scheme.lower() not in _DEFAULT_PORTS:
            return location
        port = _DEFAULT_PORTS.get((scheme or to.scheme).lower(), "")
        ours = {to.host.lower(), to.host.lower().removesuffix(port), f"localhost:{to.port}"}
        if not ours & {host, host.removesuffix(port)}:
            return location
        reference = path if path.startswith("/") else "/" + path
    elif (scheme := _SCHEME.match(reference)) is not None:
        if scheme[1].lower() != to.scheme:
            return location
        reference = reference[scheme.end() :]  # ``http:/x`` and ``http:x`` are relative where the page has that scheme
    elif not to.address.prefix and not reference.startswith("//"):
        return location
    if reference.startswith("/"):
        return to.address.relative(reference) if to.address.prefix or reference.startswith("//") else reference
    if to.address.prefix and _climbs(reference):
        folder = to.address.path.rpartition("/")[0]
        return to.address.relative(f"{folder}/{reference}")
    return reference


def _as_read(location: str) -> str:
    """An address as browsers read it: without blanks around it, tabs and ends of lines, and with slashes one way."""
    text = "".join(letter for letter in location.strip(_BLANKS) if letter not in "\t\r\n")
    end = min((at for mark in "?#" if (at := text.find(mark)) >= 0), default=len(text))
    return text[:end].replace("\\", "/") + text[end:]


def _climbs(reference: str) -> bool:
    path = re.split("[?#]", reference, maxsplit=1)[0]
    return any(segment.lower().replace("%2e", ".") == ".." for segment in path.split("/"))


def _browser_refresh(refresh: str, to: Upstream) -> str:
    """A ``Refresh`` as the browser must see it; it redirects as ``Location`` does (HTML, §4.2.5.3)."""
    found = _REFRESH.fullmatch(refresh)
    return f"{found['time']}; url={browser_location(found['url'], to)}" if found else refresh


def browser_cookie(cookie: str, to: Upstream) -> str | None:
    """A task's ``Set-Cookie`` for its own address only; None when it would replace ours."""
    pair, *attributes = (part.strip() for part in cookie.split(";"))
    name = pair.partition("=")[0].strip()
    if name in _OUR_COOKIES or (not name and "=" in pair[1:]):
        return None  # of a cookie without a name browsers send the value alone, which may read as one of ours
    if to.is_guest and _JUPYTER_COOKIE.fullmatch(name):
        return None  # it would sign in at the task's own port, also when the share has ended
    kept = [pair]
    for attribute in attributes:
        name, _, value = (text.strip() for text in attribute.partition("="))
        if name.lower() == "domain":
            continue  # a wider cookie would reach the services of others
        if name.lower() == "path" and to.address.prefix:
            attribute = f"Path={to.prefix}{value if value.startswith('/') else '/'}"
        kept.append(attribute)
    return "; ".join(kept)
