"""Services of other users: by a share with an account, or by a link; and what neither opens."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from ipaddress import ip_network
from typing import TYPE_CHECKING

import httpx
import pytest
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

from pai_backend.access.proxy.shared import digest_of
from pai_backend.model.alias import Target
from pai_backend.model.errors import Forbidden
from pai_backend.model.ids import JobUid
from pai_backend.model.rights import EVERYTHING, limits_of
from pai_backend.store.grants import Share
from tests.support.proxy_fakes import HOST, SERVICE, ProxyUnderTest, running_proxy, service_job
from tests.support.proxy_upstreams import web_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TOKEN = "a-token-of-a-link"
HOUR = timedelta(hours=1)
PROXIES = (ip_network("127.0.0.1/32"),)


def shared(under_test: ProxyUnderTest, *, only: str = "port:web", link: bool = False, service: str = SERVICE) -> Share:
    """A share of the job with bob, or a link."""
    job, now = under_test.store.jobs["lab"], under_test.clock()
    limits = limits_of([only]) if only else EVERYTHING
    name, digest = ("link:1", digest_of(TOKEN)) if link else ("bob", "")
    share = Share(job.uid, name, limits, now, "alice", now + HOUR, "", digest, service if link else "")
    under_test.store.shares.append(share)
    return share


@asynccontextmanager
async def shared_service(*, link: bool = False) -> AsyncIterator[ProxyUnderTest]:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        shared(under_test, link=link)
        yield under_test


async def session(under_test: ProxyUnderTest, user: str = "bob") -> dict[str, str]:
    """The headers of a signed-in browser, as the panel signs one in."""
    ticket = await under_test.ticket(user)
    answer = await under_test.client().get("/.pai/signin", params={"ticket": ticket})
    assert answer.status_code == 303, answer.text
    return {"Cookie": answer.headers["set-cookie"].split(";")[0]}


async def exchanged(under_test: ProxyUnderTest, token: str = TOKEN, **headers: str) -> httpx.Response:
    """The answer to the page of a link that asks for a session."""
    return await under_test.client().post("/.pai/link", headers={"X-Pai-Link": token, **headers})


async def by_link(under_test: ProxyUnderTest) -> dict[str, str]:
    answer = await exchanged(under_test)
    assert answer.status_code == 200, answer.text
    return {"Cookie": answer.headers["set-cookie"].split(";")[0]}


@pytest.mark.asyncio
@pytest.mark.parametrize("only", ["port:web", ""])
async def test_a_share_opens_the_service_at_its_own_address_alone(only: str) -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        shared(under_test, only=only)
        token = {"Authorization": "Bearer bob-token"}
        grant = await under_test.proxy.grant(
            under_test.store.jobs["lab"], Target("worker", 0, "web"), under_test.user("bob"), "http://x"
        )
        assert grant.path_url == "", "a path address has the api's origin, or that of bob's Jupyter"
        cookie, own = await session(under_test), under_test.client()
        below = under_test.client(host="127.0.0.1")
        for headers in (cookie, token):
            assert (await own.post("/show", headers=headers)).json()["method"] == "POST"
            assert (await below.get(f"/s/{SERVICE}/show", headers=headers)).status_code == 403
        ticket = await under_test.ticket("bob")
        assert (await below.get(f"/s/{SERVICE}/.pai/signin", params={"ticket": ticket})).status_code == 403
        assert (await own.get("/show", headers={"Authorization": "Bearer root-token"})).status_code == 403


@pytest.mark.asyncio
async def test_a_share_of_files_or_of_another_port_opens_no_service() -> None:
    for only in ("sftp", "port:other"):
        async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
            shared(under_test, only=only)
            answer = await under_test.client().get("/show", headers={"Authorization": "Bearer bob-token"})
            assert answer.status_code == 403
            with pytest.raises(Forbidden):
                await under_test.ticket("bob")


@pytest.mark.asyncio
async def test_what_is_open_by_a_share_ends_with_it() -> None:
    async with shared_service() as under_test:
        headers, own = await session(under_test), under_test.client()
        request = HTTPRequest(
            f"ws://127.0.0.1:{under_test.port}/deep/ws", headers={"Host": under_test.authority, **headers}
        )
        request.headers["Origin"] = under_test.origin
        socket = await websocket_connect(request)
        await socket.write_message("in")
        assert await socket.read_message() == "in"
        async with own.stream("GET", "/events", headers=headers) as stream:
            assert stream.status_code == 200
            under_test.store.shares.clear()
            async with asyncio.timeout(60):
                assert await socket.read_message() is None
                with pytest.raises(httpx.RemoteProtocolError):
                    async for _ in stream.aiter_bytes():
                        pass
        socket.close()
        assert (await own.get("/show", headers=headers)).status_code == 403


@pytest.mark.asyncio
async def test_a_link_leads_to_a_page_that_asks_for_a_session_of_that_service() -> None:
    async with shared_service(link=True) as under_test:
        url = under_test.proxy.link_to(SERVICE, f"http://127.0.0.1:{under_test.port}", TOKEN)
        assert url == f"{under_test.origin}/.pai/link#{TOKEN}", "a browser sends no fragment to anybody"
        page = await under_test.client().get("/.pai/link")
        assert (page.status_code, page.headers["referrer-policy"]) == (200, "no-referrer")
        assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
        answer = await exchanged(under_test)
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("pai-link=")
        assert {"HttpOnly", "Path=/", "SameSite=Lax", "Max-Age=3600"} <= set(cookie.split("; ")), cookie
        assert TOKEN not in cookie + answer.text
        headers = {"Cookie": f"{cookie.split(';')[0]}; mine=1"}
        for method in ("GET", "HEAD"):
            assert (await under_test.client().request(method, "/status/200", headers=headers)).status_code == 200
        shown = (await under_test.client().get("/show", headers=headers)).text
        assert "mine=1" in shown
        assert "pai-link" not in shown


CHANGES = [
    *((method, {}, b"") for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND")),
    *(("GET", {name: "DELETE"}, b"") for name in ("X-HTTP-Method-Override", "X-Method-Override", "X-HTTP-Method")),
    ("GET", {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": "x" * 22 + "=="}, b""),
    ("GET", {"Upgrade": "websocket"}, b""),
    ("GET", {}, b"a body"),
]


@pytest.mark.asyncio
async def test_by_a_link_nothing_is_changed() -> None:
    async with shared_service(link=True) as under_test:
        headers, client = await by_link(under_test), under_test.client()
        under_test.engine.dialled.clear()
        for method, more, body in CHANGES:
            answer = await client.request(
                method, "/show", headers={**headers, **more, "Origin": under_test.origin}, content=body or None
            )
            assert answer.status_code == 403, (method, more)
        assert (await client.get("/show?a=1&%5fmethod=DELETE", headers=headers)).status_code == 403
        with pytest.raises(HTTPClientError):
            await websocket_connect(
                HTTPRequest(
                    f"ws://127.0.0.1:{under_test.port}/deep/ws", headers={"Host": under_test.authority, **headers}
                )
            )
        assert under_test.engine.dialled == [], "the task hears of none of them"
        assert (await client.get("/show", headers=headers)).status_code == 200


@pytest.mark.asyncio
async def test_a_link_is_good_for_one_service_of_one_job_and_at_no_path() -> None:
    async with shared_service(link=True) as under_test:
        headers, job = await by_link(under_test), under_test.store.jobs["lab"]
        other = job.model_copy(update={"uid": "j0000000000000000", "alias": "other"})
        under_test.store.put(other)
        elsewhere = under_test.client(host="other--web.localhost")
        assert (await elsewhere.get("/show", headers=headers)).status_code == 401
        assert (await elsewhere.post("/.pai/link", headers={"X-Pai-Link": TOKEN})).status_code == 403
        below = under_test.client(host="127.0.0.1")
        for path in (f"/s/{SERVICE}/show", f"/s/{SERVICE}/.pai/link", f"/s/{SERVICE}/../{SERVICE}/show"):
            assert (await below.get(path, headers=headers)).status_code == 401
        posted = await below.post(f"/s/{SERVICE}/.pai/link", headers={"X-Pai-Link": TOKEN})
        assert posted.status_code == 401
        assert under_test.engine.dialled == []
        own = under_test.client()
        under_test.store.put(job.model_copy(update={"uid": JobUid("j2222222222222222")}))  # it has the name now
        async with asyncio.timeout(60):
            while (await own.get("/show", headers=headers)).status_code == 200:
                pass
        assert (await own.get("/show", headers=headers)).status_code == 403
        assert (await exchanged(under_test)).status_code == 403


@pytest.mark.asyncio
async def test_a_link_of_another_service_of_the_job_opens_nothing() -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        shared(under_test, link=True, service="lab--other")
        assert (await exchanged(under_test)).status_code == 403


@pytest.mark.asyncio
async def test_no_page_of_another_site_and_no_guess_gets_a_session() -> None:
    async with shared_service(link=True) as under_test:
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}):
            assert (await exchanged(under_test, **headers)).status_code == 403
        client = under_test.client()
        asked = {"Origin": "https://evil.example", "Access-Control-Request-Headers": "x-pai-link"}
        preflight = await client.options("/.pai/link", headers={**asked, "Access-Control-Request-Method": "POST"})
        assert (preflight.status_code, "access-control-allow-origin" in preflight.headers) == (400, False)
        for token in ("", digest_of(TOKEN), TOKEN + "x"):
            answer = await exchanged(under_test, token)
            assert answer.status_code in (400, 403)
            assert "set-cookie" not in answer.headers
        unknown = under_test.client(host=f"no-such{HOST}")
        known, missing = (
            await exchanged(under_test, "guess"),
            await unknown.post("/.pai/link", headers={"X-Pai-Link": "guess"}),
        )
        assert known.json()["message"] == missing.json()["message"], "it does not tell which services there are"


@pytest.mark.asyncio
async def test_a_link_ends_at_its_time_or_when_it_is_revoked() -> None:
    for end in ("time", "revoked"):
        async with shared_service(link=True) as under_test:
            headers, client = await by_link(under_test), under_test.client()
            async with client.stream("GET", "/events", headers=headers) as stream:
                assert stream.status_code == 200
                if end == "revoked":
                    under_test.store.shares.clear()
                else:
                    under_test.clock.time += HOUR
                async with asyncio.timeout(60):
                    with pytest.raises(httpx.RemoteProtocolError):
                        async for _ in stream.aiter_bytes():
                            pass
            answer = await client.get("/show", headers=headers)
            assert answer.status_code == (403 if end == "revoked" else 401)
            assert (await exchanged(under_test)).status_code == 403


@pytest.mark.asyncio
@pytest.mark.parametrize("link", [False, True])
async def test_a_reverse_proxy_is_never_told_the_way_for_a_guest(link: bool) -> None:
    async with web_server() as (port, _), running_proxy(service_job(port), proxies=PROXIES) as under_test:
        shared(under_test, link=link)
        headers = await by_link(under_test) if link else await session(under_test)
        about = {"X-Forwarded-Uri": "/show", "X-Forwarded-Method": "GET"}
        answer = await under_test.client().get("/.pai/authorize", headers={**headers, **about})
        assert (answer.status_code, answer.headers.get("x-pai-upstream", "")) == (403, "")


@pytest.mark.asyncio
async def test_a_link_takes_nothing_from_the_owners_own_session() -> None:
    async with shared_service(link=True) as under_test:
        linked, own = await by_link(under_test), await session(under_test, "alice")
        both = {"Cookie": f"{linked['Cookie']}; {own['Cookie']}"}
        assert (await under_test.client().post("/show", headers=both)).status_code == 200


@pytest.mark.asyncio
async def test_what_is_shared_opens_at_once_also_when_the_shares_were_just_looked_at() -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        assert (await exchanged(under_test)).status_code == 403
        shared(under_test, link=True)
        assert (await exchanged(under_test)).status_code == 200
