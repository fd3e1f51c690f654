"""Shares of services and read-only links, attacked by those who have them and by pages of others."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.attack.conftest import ECHO
from tests.attack.site import ADMIN, LIMIT_S, OTHER, OWNER, VICTIM, Site, ok
from tests.support.backend_process import until


def at_own_address(site: Site, service: str, user: str | None = None) -> httpx.Client:
    """A client for a service's own address."""
    client = site.http(user)
    client.headers["Host"] = f"{service}.localhost:{site.address[1]}"
    return client


def link(site: Site, job: str, user: str = OWNER) -> tuple[str, str]:
    """The token of a new link, and its name."""
    with site.http(user) as client:
        made = ok(client.post(f"/api/v2/jobs/{job}/links", json={"label": "web", "lifetimeS": 600})).json()
    return made["url"].partition("#")[2], made["user"]


def entered(site: Site, service: str, token: str) -> httpx.Client:
    """A browser that has followed a link."""
    with at_own_address(site, service) as client:
        answer = ok(client.post("/.pai/link", headers={"X-Pai-Link": token}))
    browser = at_own_address(site, service)
    browser.headers["Cookie"] = answer.headers["set-cookie"].split(";")[0]
    return browser


@pytest.fixture(scope="module")
def victims(site: Site) -> Iterator[str]:
    """The service alias of a job of another user, which does what ``echo`` does."""
    (site.path / "vics.py").write_text(ECHO)
    ports = [{"label": "web", "beginAt": 0, "portNumber": 1}]
    command = f"SEEN={site.path}/vics-seen exec python3 {site.path}/vics.py"
    (service,) = site.job("vics", command, VICTIM, role={"portList": ports})["services"]
    with site.http(VICTIM) as client:
        until(lambda: client.get(f"/s/{service['alias']}/").status_code == 200, LIMIT_S)
    yield service["alias"]
    site.stop("vics", VICTIM)


@pytest.mark.attack(
    45, "a shared service is opened on the origin of the API or of one's own Jupyter, or by an administrator"
)
def test_a_shared_service_opens_apart(site: Site, echo: str) -> None:
    with site.http(OWNER) as owner, site.http(OTHER) as other:
        ok(owner.post("/api/v2/jobs/echo/shares", json={"user": OTHER, "only": ["port:web"], "lifetimeS": 600}))
        with at_own_address(site, echo, OTHER) as own, at_own_address(site, echo, ADMIN) as admin:
            until(lambda: own.get("/").status_code == 200, LIMIT_S)
            assert admin.get("/").status_code == 403
            ticket = ok(other.post(f"/api/v2/jobs/{OWNER}~echo/services/web/ticket")).json()
            assert ticket["pathUrl"] == ""
            signed = ticket["url"].partition("localhost")[2].partition("/")[2]
            assert other.get(f"/s/{echo}/{signed}").status_code == 403, "the ticket is no way to a path either"
            assert other.get(f"/s/{echo}/").status_code == 403
            for below in ("/logs?role=worker&index=0", "/config", "/shares", "/executionType"):
                assert other.get(f"/api/v2/jobs/{OWNER}~echo{below}").status_code in (404, 405)
            ok(owner.delete(f"/api/v2/jobs/echo/shares/{OTHER}"))
            until(lambda: own.get("/").status_code == 403, LIMIT_S)


@pytest.mark.attack(46, "a link changes something, opens another job, or is found in a log, the database or the task")
def test_a_link_reads_one_service_and_leaves_no_token(site: Site, echo: str, victims: str) -> None:
    token, name = link(site, "echo")
    with entered(site, echo, token) as visitor, at_own_address(site, victims) as elsewhere:
        assert ok(visitor.get("/a%2f..%2f..%2fb")).status_code == 200
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
            assert visitor.request(method, "/").status_code == 403
        assert visitor.get("/", headers={"X-HTTP-Method-Override": "POST"}).status_code == 403
        assert elsewhere.post("/.pai/link", headers={"X-Pai-Link": token}).status_code == 403
        assert elsewhere.get("/", headers={"Cookie": visitor.headers["Cookie"]}).status_code == 401
        with site.http(None) as stranger:
            for path in (f"/s/{echo}/", f"/s/{echo}/.pai/link", "/api/v2/jobs", f"/api/v2/jobs/{OWNER}~echo"):
                answer = stranger.get(path, headers={"Cookie": visitor.headers["Cookie"], "X-Pai-Link": token})
                assert answer.status_code == 401, path
            bearer = {"Authorization": f"Bearer {token}"}
            assert stranger.get("/api/v2/jobs", headers=bearer).status_code == 401
        with site.http(OWNER) as owner:
            ok(owner.delete(f"/api/v2/jobs/echo/shares/{name}"))
        until(lambda: visitor.get("/").status_code == 403, LIMIT_S)
    session = visitor.headers["Cookie"].partition("=")[2].encode()
    for file in (each for each in site.path.rglob("*") if each.is_file()):
        kept = file.read_bytes()
        assert token.encode() not in kept, file
        assert session not in kept, file


@pytest.mark.attack(46, "a link opens a service after its owner was locked out, or after its job has ended")
def test_a_link_is_worth_what_its_owner_and_job_are(site: Site, victims: str) -> None:
    token, _ = link(site, "vics", VICTIM)
    with entered(site, victims, token) as visitor, site.http(ADMIN) as admin:
        assert visitor.get("/").status_code == 200
        try:
            ok(admin.put(f"/api/v2/lockouts/{VICTIM}"))
            until(lambda: visitor.get("/").status_code == 403, LIMIT_S)
            assert visitor.post("/.pai/link", headers={"X-Pai-Link": token}).status_code == 403
        finally:
            ok(admin.delete(f"/api/v2/lockouts/{VICTIM}"))
        until(lambda: visitor.get("/").status_code == 200, LIMIT_S)
        site.stop("vics", VICTIM)
        with site.http(VICTIM) as owner:
            ok(owner.put("/api/v2/jobs/vics/executionType", json={"value": "START"}))
            until(lambda: owner.get(f"/s/{victims}/").status_code == 200, LIMIT_S)
        until(lambda: visitor.get("/").status_code == 403, LIMIT_S)  # the next run of the job is not shared
