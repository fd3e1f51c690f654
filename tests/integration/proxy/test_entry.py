"""Who gets in: signing in, other users, other sites, and what a stranger may learn."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

from pai_backend.access.tickets import SESSION_LIFE, TICKET_LIFE, TicketOffice
from pai_backend.model.alias import Target
from pai_backend.model.errors import Forbidden, NoSuchService
from pai_backend.model.job import Phase, State
from pai_backend.testing.builders import make_placement
from tests.support.proxy_fakes import SERVICE, Clock, FakeStore, FakeUser, running_proxy, service_job
from tests.support.proxy_upstreams import web_server
from tests.support.wordings import ERROR_KEYS

PAGE = {"Accept": "text/html"}


@pytest.mark.asyncio
async def test_a_ticket_turns_into_a_cookie_of_this_host_alone() -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        job = under_test.store.jobs["lab"]
        grant = await under_test.proxy.grant(
            job, Target("worker", 0, "web"), under_test.user("alice"), f"http://x:{under_test.port}"
        )
        url = urlsplit(grant.url)
        assert (url.scheme, url.netloc, url.path) == ("http", under_test.authority, "/.pai/signin")
        assert grant.expires_at == under_test.clock() + TICKET_LIFE
        client = under_test.client()
        answer = await client.get(f"{url.path}?{url.query}")
        assert (answer.status_code, answer.headers["location"]) == (303, "../")
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("pai-session=")
        assert "Path=/;" in cookie
        assert "HttpOnly" in cookie
        assert "domain" not in cookie.lower()
        assert (await client.get("/show", headers={"Cookie": cookie.split(";")[0]})).status_code == 200


@pytest.mark.asyncio
async def test_pages_of_any_origin_may_see_which_backend_is_at_an_own_address() -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        job = under_test.store.jobs["lab"]
        grant = await under_test.proxy.grant(job, Target("worker", 0, "web"), under_test.user("alice"), "http://x")
        assert not grant.is_jupyter
        answer = await under_test.client().get("/.pai/reached", headers={"Origin": "https://hub.example"})
        assert (answer.status_code, answer.text) == (200, grant.proof)
        assert answer.headers["access-control-allow-origin"] == "*"
        below = await under_test.client(host="127.0.0.1").get(f"/s/{SERVICE}/.pai/reached")
        assert below.status_code == 401  # the API's own origin is not given away


@pytest.mark.asyncio
async def test_a_ticket_signs_in_to_the_path_address_too() -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        job = under_test.store.jobs["lab"]
        grant = await under_test.proxy.grant(
            job, Target("worker", 0, "web"), under_test.user("alice"), f"http://x:{under_test.port}"
        )
        client = under_test.client(host="127.0.0.1")
        answer = await client.get(grant.path_url)
        assert answer.headers["location"] == "../"
        assert f"Path=/s/{SERVICE}/;" in answer.headers["set-cookie"]
        cookie = answer.headers["set-cookie"].split(";")[0]
        assert (await client.get(f"/s/{SERVICE}/show", headers={"Cookie": cookie})).status_code == 200


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("public_url", "host", "scheme"),
    [
        ("https://pai.example.com", f"{SERVICE}.localhost", "https"),
        ("https://pai.example.com", f"{SERVICE}.localhost:443", "https"),
        ("https://pai.example.com:8443", f"{SERVICE}.localhost:8443", "https"),
        ("https://pai.example.com", f"{SERVICE}.localhost:8080", "http"),
        ("http://pai.example.com", f"{SERVICE}.localhost", "http"),
        ("", f"{SERVICE}.localhost:443", "http"),
        ("https://pai.example.com", "pai.example.com", "https"),
        ("https://pai.example.com", "127.0.0.1:8080", "http"),
    ],
)
async def test_a_proxy_in_front_that_ends_tls_is_known_by_the_address_that_users_are_told(
    public_url: str, host: str, scheme: str
) -> None:
    """Whatever the request says of forwarding: the cookie is for TLS alone, and the task is told of it."""
    prefix = "" if host.startswith(SERVICE) else f"/s/{SERVICE}"
    async with (
        web_server() as (port, _),
        running_proxy(service_job(port), public_url=public_url) as under_test,
    ):
        client = under_test.client(Host=host, **{"Pai-Relay-Scheme": "gopher"})
        signed_in = await client.get(f"{prefix}/.pai/signin", params={"ticket": await under_test.ticket()})
        cookie = signed_in.headers["set-cookie"]
        assert ("Secure" in cookie) == (scheme == "https")
        shown = await client.get(f"{prefix}/show", headers={"Cookie": cookie.split(";")[0]})
        assert [value for name, value in shown.json()["headers"] if name == "X-Forwarded-Proto"] == [scheme]


@pytest.mark.asyncio
async def test_behind_a_relay_the_cookie_has_the_relays_path_and_is_as_secure_as_its_address() -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        client = under_test.client(host="127.0.0.1")
        for token, prefix, secure in [("alice-token", "/user/ann/pai", True), ("wrong", "", False)]:
            answer = await client.get(
                f"/s/{SERVICE}/.pai/signin",
                params={"ticket": await under_test.ticket()},
                headers={
                    "Authorization": f"Bearer {token}",
                    "Pai-Relay-Prefix": "/user/ann/pai/",
                    "Pai-Relay-Scheme": "https",
                },
            )
            assert ("Secure" in answer.headers["set-cookie"].split("; ")) is secure
            assert f"Path={prefix}/s/{SERVICE}/;" in answer.headers["set-cookie"]


@pytest.mark.asyncio
async def test_a_ticket_works_once_and_for_a_minute_and_for_its_service() -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        client, other = under_test.client(), under_test.client(host="lab--worker-0--web.localhost")
        ticket = await under_test.ticket()
        assert (await other.get("/.pai/signin", params={"ticket": ticket})).status_code == 401
        assert (await client.get("/.pai/signin", params={"ticket": ticket})).status_code == 303
        replayed = await client.get("/.pai/signin", params={"ticket": ticket})
        assert replayed.status_code == 401
        assert "used before" in replayed.json()["message"]
        assert "set-cookie" not in replayed.headers
        late = await under_test.ticket()
        under_test.clock.time += TICKET_LIFE
        assert (await client.get("/.pai/signin", params={"ticket": late})).status_code == 401
        forged = TicketOffice(FakeStore(), "other key", Clock()).issue(
            "alice", SERVICE, service_job(1).uid, token="alice-token"
        )[0]
        assert (await client.get("/.pai/signin", params={"ticket": forged})).status_code == 401
        assert (await client.get("/.pai/signin")).status_code == 401


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("going", "location"),
    [
        ("/lab/tree?x=1", "../lab/tree?x=1"),
        ("//evil.example/", "../"),
        ("https://evil.example/", "../"),
        ("/\\evil.example/", "../"),
        ("/\t/evil.example/", "../"),
        ("/x\r\nSet-Cookie: a=b", "../"),
        ("javascript:alert(1)", "../"),
        ("", "../"),
    ],
)
async def test_signing_in_leads_to_a_page_of_the_service_only(going: str, location: str) -> None:
    async with running_proxy(service_job(None)) as under_test:
        ticket = await under_test.ticket()
        answer = await under_test.client().get("/.pai/signin", params={"ticket": ticket, "next": going})
        assert answer.headers["location"] == location
        assert len(answer.headers.get_list("set-cookie")) == 1


@pytest.mark.asyncio
async def test_a_session_ends_after_twelve_hours() -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        client = under_test.client(Cookie=await under_test.cookie())
        under_test.clock.time += SESSION_LIFE - timedelta(seconds=1)
        assert (await client.get("/show")).status_code == 200
        under_test.clock.time += timedelta(seconds=1)
        assert (await client.get("/show")).status_code == 401


@pytest.mark.asyncio
async def test_a_stranger_learns_nothing_but_how_to_sign_in() -> None:
    async with running_proxy(service_job(None)) as under_test:
        for host in (under_test.host, "nobody--web.localhost"):
            client = under_test.client(host=host)
            page = await client.get("/", headers=PAGE)
            assert page.status_code == 401
            assert "%pai open" in page.text
            assert "alice" not in page.text
            body = (await client.get("/")).json()
            assert (body["code"], set(body)) == ("UnauthorizedUserError", ERROR_KEYS)
        assert under_test.store.lookups == 0


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        ("Bearer alice-token", 200),
        ("bearer alice-token", 200),
        ("Bearer root-token", 403),
        ("Bearer bob-token", 403),
        ("Bearer wrong", 401),
        ("Basic alice-token", 401),
        ("alice-token", 401),
        ("", 401),
    ],
)
async def test_the_owner_gets_in_and_nobody_else_not_even_an_administrator(authorization: str, status: int) -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        answer = await under_test.client(Authorization=authorization).get("/show")
        assert answer.status_code == status
        assert len(under_test.engine.dialled) == (status == 200)


@pytest.mark.asyncio
async def test_a_session_opens_neither_another_service_nor_another_job() -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        cookie = await under_test.cookie()
        other = under_test.client(host="lab--worker-0--web.localhost", Cookie=cookie)
        assert (await other.get("/show")).status_code == 401
        successor = service_job(port).model_copy(update={"uid": "j2000000000000000"})
        under_test.store.put(successor)
        again = under_test.client(Cookie=cookie)
        under_test.proxy._directory.forget(SERVICE)
        assert (await again.get("/show")).status_code == 403


@pytest.mark.parametrize(
    ("owner", "address", "status"), [("alice", "lab", 200), ("bob", "lab", 403), ("alice", "", 403)]
)
@pytest.mark.asyncio
async def test_a_session_at_a_workspace_name_goes_on_with_its_owners_next_job(
    owner: str, address: str, status: int
) -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        cookie = await under_test.cookie()
        job = service_job(port)
        spec = job.spec.model_copy(update={"address": address})
        under_test.store.put(job.model_copy(update={"uid": "j2000000000000000", "user": owner, "spec": spec}))
        under_test.proxy._directory.forget(SERVICE)
        assert (await under_test.client(Cookie=cookie).get("/show")).status_code == status


@pytest.mark.asyncio
async def test_nobody_is_granted_the_service_of_another() -> None:
    async with running_proxy(service_job(None)) as under_test:
        job, proxy = under_test.store.jobs["lab"], under_test.proxy
        web, root = Target("worker", 0, "web"), under_test.user("root")
        for who, as_admin in ((under_test.user("bob"), False), (under_test.user("bob"), True), (root, False)):
            with pytest.raises(Forbidden):
                await proxy.grant(job, web, who, "http://x", as_admin=as_admin)
        assert (await proxy.grant(job, web, root, "https://pai.example:8443", as_admin=True)).url
        for target in (Target("worker", 0), Target("worker", 7, "web")):
            with pytest.raises(NoSuchService):
                await proxy.grant(job, target, under_test.user("alice"), "http://x")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {"Origin": "http://evil.example"}, 200),
        ("POST", {}, 200),
        ("POST", {"Origin": "{own}"}, 200),
        ("POST", {"Origin": "http://evil.example"}, 403),
        ("POST", {"Origin": "http://other--web.localhost:{port}"}, 403),
        ("POST", {"Origin": "{own}.evil.example"}, 403),
        ("POST", {"Origin": "null"}, 403),
        ("POST", {"Origin": "http://[bad"}, 403),
        ("POST", {"Sec-Fetch-Site": "same-site"}, 403),
        ("POST", {"Sec-Fetch-Site": "same-origin"}, 200),
        ("DELETE", {"Origin": "http://evil.example"}, 403),
        ("OPTIONS", {"Origin": "http://evil.example"}, 403),
    ],
)
async def test_another_site_cannot_act_with_the_users_cookie(method: str, headers: dict[str, str], status: int) -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        client = under_test.client(Cookie=await under_test.cookie())
        filled = {name: value.format(own=under_test.origin, port=under_test.port) for name, value in headers.items()}
        assert (await client.request(method, "/show", headers=filled)).status_code == status
        token = under_test.client(Authorization="Bearer alice-token")
        assert (await token.request(method, "/show", headers=filled)).status_code == 200


@pytest.mark.asyncio
async def test_another_site_cannot_open_a_websocket() -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        cookie = await under_test.cookie()
        for origin in ("http://evil.example", f"http://bobs--web.localhost:{under_test.port}"):
            request = HTTPRequest(
                f"ws://127.0.0.1:{under_test.port}/deep/ws",
                headers={"Host": under_test.authority, "Cookie": cookie, "Origin": origin},
            )
            with pytest.raises(HTTPClientError) as caught:
                await websocket_connect(request)
            assert caught.value.code == 403


@pytest.mark.asyncio
async def test_no_credential_of_ours_reaches_the_task() -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        client = under_test.client(Cookie=f"a=1; {await under_test.cookie()}; b=2", Authorization="Basic x")
        seen = (await client.get("/show?token=alice-token&keep=1&token=bob-token")).json()
        assert seen["uri"] == "/show?keep=1"
        headers = dict(seen["headers"])
        assert headers["Cookie"] == "a=1; b=2"
        assert "Authorization" not in headers
        assert (await client.get("/show?token=the-applications-own")).json()["uri"] == (
            "/show?token=the-applications-own"
        )


@pytest.mark.asyncio
async def test_a_task_cannot_replace_the_session_or_reach_other_hosts_with_cookies() -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        client = under_test.client(Cookie=await under_test.cookie())
        answer = await client.get(
            "/cookies", params={"set": ["pai-session=x; Path=/", "a=1; Domain=localhost; Path=/"]}
        )
        assert answer.headers.get_list("set-cookie") == ["a=1; Path=/"]


@pytest.mark.asyncio
async def test_a_waiting_job_shows_why_and_goes_on_at_the_same_address() -> None:
    waiting = service_job(None).model_copy(update={"why": "needs 4 TITANX, <2> are free"})
    async with web_server() as (port, _), running_proxy(waiting) as under_test:
        client = under_test.client(Cookie=await under_test.cookie())
        page = await client.get("/show?x=1", headers=PAGE)
        assert (page.status_code, page.headers["refresh"]) == (503, "5")
        assert "needs 4 TITANX, &lt;2&gt; are free" in page.text
        head = await client.head("/show?x=1", headers=PAGE)
        assert head.headers["x-pai-page"] == page.headers["x-pai-page"]
        assert "refresh" not in (await client.post("/show", headers=PAGE)).headers
        body = (await client.get("/show")).json()
        assert body["code"] == "UnavailableError"
        assert "needs 4 TITANX" in body["message"]
        under_test.store.put(service_job(port))
        under_test.proxy._directory.forget(SERVICE)
        assert (await client.get("/show?x=1", headers=PAGE)).json()["uri"] == "/show?x=1"


@pytest.mark.asyncio
async def test_a_running_task_that_does_not_answer_yet_is_starting() -> None:
    async with web_server() as (port, _):
        pass
    async with running_proxy(service_job(port)) as under_test:
        page = await under_test.client(Authorization="Bearer alice-token", **PAGE).get("/")
        assert (page.status_code, page.headers["refresh"]) == (503, "5")
        assert f"Nothing answers on port {port} of task worker-0 yet." in page.text
        assert "0.0.0.0" not in page.text


@pytest.mark.asyncio
async def test_a_pod_that_does_not_answer_may_listen_on_the_wrong_address() -> None:
    async with web_server() as (port, _):
        pass
    job = service_job(port)
    placement = make_placement(ports={"web": (port,)}).model_copy(update={"address": "10.1.2.3"})
    in_a_pod = job.tasks[0].model_copy(update={"placement": placement})
    async with running_proxy(job.model_copy(update={"tasks": (in_a_pod,)})) as under_test:
        page = await under_test.client(Authorization="Bearer alice-token", **PAGE).get("/")
        assert "let it listen on 0.0.0.0" in page.text


@pytest.mark.asyncio
async def test_a_finished_job_says_so_and_is_not_asked_again() -> None:
    done = service_job(None).model_copy(update={"state": State.SUCCEEDED, "phase": Phase.ENDED})
    async with running_proxy(done) as under_test:
        page = await under_test.client(Authorization="Bearer alice-token", **PAGE).get("/")
        assert page.status_code == 503
        assert "This job has ended" in page.text
        assert "refresh" not in page.headers
        assert "<script>" not in page.text


@pytest.mark.asyncio
async def test_a_service_that_does_not_exist_is_not_found() -> None:
    async with running_proxy(service_job(None)) as under_test:
        client = under_test.client(host="lab--other.localhost", Authorization="Bearer alice-token")
        assert (await client.get("/")).status_code == 404


@pytest.mark.asyncio
async def test_a_refused_large_body_is_not_read() -> None:
    async with running_proxy(service_job(None)) as under_test:
        client = under_test.client(Authorization="Bearer bob-token", Expect="100-continue")
        answer = await client.post("/", content=b"x" * 10)
        assert answer.status_code == 403
        assert answer.headers["connection"] == "close"
        small = await under_test.client(Authorization="Bearer bob-token").post("/", content=b"x" * 10)
        assert small.status_code == 403
        assert "connection" not in small.headers


@pytest.mark.asyncio
@pytest.mark.parametrize("path", [False, True])
async def test_a_session_ends_with_the_token_it_was_issued_to(path: bool) -> None:
    """Logout, removal and lock-out look alike from here: the token stands for nobody any more."""
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        cookie = await under_test.cookie(path=path)
        client = under_test.client(host="127.0.0.1" if path else None, Cookie=cookie)
        where = f"/s/{SERVICE}/show" if path else "/show"
        assert (await client.get(where)).status_code == 200
        late = await under_test.ticket()
        del under_test.entrants.users["alice-token"]
        assert (await client.get(where)).status_code == 401
        signing_in = await under_test.client().get("/.pai/signin", params={"ticket": late})
        assert (signing_in.status_code, "set-cookie" in signing_in.headers) == (401, False)


@pytest.mark.asyncio
async def test_an_administrators_session_ends_when_they_administer_no_more() -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        client = under_test.client()
        answer = await client.get("/.pai/signin", params={"ticket": await under_test.ticket("root", admin=True)})
        cookie = {"Cookie": answer.headers["set-cookie"].split(";")[0]}
        assert (await client.get("/show", headers=cookie)).status_code == 200
        under_test.entrants.users["root-token"] = FakeUser("root", False, "root-token")
        assert (await client.get("/show", headers=cookie)).status_code == 401


@pytest.mark.asyncio
@pytest.mark.parametrize("header", [{"Service-Worker": "script"}, {"Sec-Fetch-Dest": "serviceworker"}])
async def test_no_service_worker_is_registered_where_services_share_an_origin(header: dict[str, str]) -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        token = {"Authorization": "Bearer alice-token", **header}
        shared = await under_test.client(host="127.0.0.1").get(f"/s/{SERVICE}/show", headers=token)
        own = await under_test.client().get("/show", headers=token)
    assert (shared.status_code, own.status_code) == (403, 200)
