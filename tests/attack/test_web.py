"""The web side, attacked by strangers who send what no client sends, and by pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.attack.site import ADMIN, LIMIT_S, OTHER, OWNER, Site, document, ok, token_of
from tests.support.raw_requests import exchange

DEEP = b"[" * 200_000
DIGITS = b"9" * 5_000
ODD = [
    (b"GET /api/v2/jobs/%ff", b""),
    (b"GET /api/v2/jobs?limit=\xc2\xb2", b""),
    (b"GET /api/v2/jobs?limit=%C2%B2", b""),
    (b"GET /api/v2/jobs?limit=" + DIGITS, b""),
    (b"CONNECT example.org:443", b""),
    (b"POST /api/v2/jobs", DEEP),
    (b"POST /api/v2/validate", b'{"jobName": ' + DIGITS + b"}"),
    (b"POST /api/v2/validate", DEEP),
    (b"POST /api/v2/token", DEEP),
    (b"POST /api/v2/authn/basic/login", b'{"username": "x", "password": "hun\xff'),
    (b"POST /api/v2/keys", b'{"publicKey": {"a": ' * 5_000),
    (b"PUT /api/v2/users/me", DEEP),
    (b"POST /api/v2/jobs/x/move", DEEP),
    (b"POST /api/v2/cluster/config?dryRun=true", DEEP),
    (b"GET /api/v2/fs/%00", b""),
    (b"GET /s/%ff/", b""),
    (b"TRACE /", b""),
    (b"GET *", b""),
]


def raw(site: Site, data: bytes) -> bytes:
    """What the API answers to these bytes."""
    return exchange(site.address, data, LIMIT_S)


@pytest.fixture
def quiet(site: Site) -> Iterator[None]:
    """The log does not grow by much, and holds no traceback and no password."""
    before = site.backend.errors.stat().st_size
    yield
    said = site.backend.errors.read_bytes()[before:]
    assert b"Traceback" not in said, said.decode(errors="replace")[-3000:]
    assert b"hun" not in said
    assert len(said) < 20_000


@pytest.mark.attack(22, "a request that no client sends is answered by 500, or fills the log")
@pytest.mark.parametrize("token", [None, OWNER])
@pytest.mark.parametrize("request_", ODD, ids=[line.decode(errors="replace")[:40] for line, _ in ODD])
def test_hostile_requests_are_never_our_mistake(
    site: Site, quiet: None, request_: tuple[bytes, bytes], token: str | None
) -> None:
    line, body = request_
    head = line + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n" % len(body)
    head += f"Authorization: Bearer {token_of(token)}\r\n".encode() if token else b""
    said = raw(site, head + b"Connection: close\r\n\r\n" + body)
    assert not said or said.startswith((b"HTTP/1.1 2", b"HTTP/1.1 4")), said[:200]


@pytest.mark.attack(20, "a submitted document is shown as a page of the API's origin")
def test_documents_are_never_pages(site: Site) -> None:
    text = document("page", "true").replace(b"example/any:1", b"<script>alert(1)</script>")
    with site.http(OWNER) as client:
        answer = client.post("/api/v2/jobs", content=text, headers={"Content-Type": "text/html"})
        name = "page" if answer.status_code == 202 else "none"
        shown = client.get(f"/api/v2/jobs/{name}/config")
    assert "html" not in shown.headers["content-type"]
    assert shown.headers["x-content-type-options"] == "nosniff"


@pytest.mark.attack(28, "an upgrade to another HTTP passes the filter of the proxy")
@pytest.mark.parametrize("upgrade", ["h2c, websocket", "h2c", "websocket, h2c", "TLS/1.0", "H2C"])
def test_no_other_protocol_passes(site: Site, echo: str, upgrade: str) -> None:
    head = f"GET /s/{echo}/ HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token_of(OWNER)}\r\n"
    head += f"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: {upgrade}\r\nHTTP2-Settings: AAMAAABk\r\n\r\n"
    raw(site, head.encode())
    seen = site.seen.read_text().lower()
    assert "host:" in seen  # by the fixture's own request, at least
    assert not [word for word in ("h2c", "http2-settings", "tls/1.0") if word in seen]


@pytest.mark.attack(19, "an address below a service's path leaves it by a redirect, or shows it in a frame")
def test_path_addresses_stay_below_their_prefix(site: Site, echo: str) -> None:
    with site.http(OWNER) as client:
        for path in (f"/s/{echo}", f"/s/{echo}/..//evil.example", f"/s/{echo}/%2e%2e//evil.example"):
            answer = client.get(path)
            where = answer.headers.get("location", "")
            assert "//" not in where.removeprefix(site.backend.url), where
        page = client.get("/s/no-such-job/", headers={"Accept": "text/html"})
        assert "frame-ancestors" in page.headers["content-security-policy"]


OPERATIONS: list[tuple[str, str, object]] = [
    *(
        ("GET", path, None)
        for path in (
            "",
            "/config",
            "/events",
            "/logs?role=worker&index=0",
            "/logs/search?pattern=a",
            "/ssh",
            "/why",
            "/key",
        )
    ),
    *(("GET", path, None) for path in ("/shares", "/attempts/0", "/job-attempts")),
    ("PUT", "/executionType", {"value": "STOP"}),
    ("PUT", "/tag", {"value": "mine"}),
    ("POST", "/shares", {"user": OTHER}),
    ("POST", "/move", {"to": "first"}),
    ("POST", "/release", None),
    ("POST", "/services/web/ticket?role=worker&index=0", None),
]


@pytest.mark.attack(8, "a user reads, stops or enters what is another's, by any operation")
@pytest.mark.parametrize(("method", "below", "body"), OPERATIONS)
def test_others_jobs_are_nobodys(site: Site, echo: str, method: str, below: str, body: object) -> None:
    names = (f"{OWNER}~echo", f"{OWNER}~no-such-job")
    with site.http(OTHER) as other:
        said = [other.request(method, f"/api/v2/jobs/{name}{below}", json=body) for name in names]
    assert {answer.status_code for answer in said} == {404}, [answer.text for answer in said]
    with site.http(OWNER) as owner:
        assert ok(owner.get("/api/v2/jobs/echo")).json()["state"] == "RUNNING"


@pytest.mark.attack(18, "a service on an origin that it shares registers a service worker, or opens as another user")
def test_a_service_owns_no_shared_origin(site: Site, echo: str) -> None:
    with site.http(OWNER) as owner, site.http(ADMIN) as admin, site.http(OTHER) as other:
        assert owner.get(f"/s/{echo}/worker.js").status_code == 200
        assert owner.get(f"/s/{echo}/worker.js", headers={"Service-Worker": "script"}).status_code == 403
        assert {client.get(f"/s/{echo}/").status_code for client in (admin, other)} <= {401, 403, 404}
