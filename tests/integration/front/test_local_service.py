"""The origin of its own that ``pai open --local`` gives a service: who may come in, and what passes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import httpx
import pytest
import pytest_asyncio
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

from jupyter_pai.backend_link import BackendLink
from jupyter_pai.local_handlers import MOST, LocalServices
from jupyter_pai.local_service import COOKIE, LocalService
from tests.support.running_fake import RunningFake

FORBIDDEN, FOUND, OK, CREATED = 403, 302, 200, 201
SERVICE = "x--web"


class Local:
    """A local service before a fake backend, and a browser that was sent there."""

    def __init__(self, service: LocalService) -> None:
        self.service = service
        self.address = service.listen(0)
        self.port = urlsplit(self.address).port
        self.session = {"Cookie": f"{COOKIE}={service.session}"}

    async def ask(self, target: str, method: str = "GET", **headers: str) -> httpx.Response:
        """One request; ``Host`` is the right one unless another is given. Underscores of names stand for dashes."""
        given = {"Host": self.service.host} | {name.replace("_", "-"): value for name, value in headers.items()}
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            return await client.request(method, f"http://127.0.0.1:{self.port}{target}", headers=given)


@pytest_asyncio.fixture
async def local() -> AsyncIterator[Local]:
    with RunningFake() as fake:
        service = LocalService(lambda: fake.endpoint, f"/s/{SERVICE}")
        yield Local(service)
        await service.close()


@pytest.mark.asyncio
async def test_only_the_browser_that_has_the_key_comes_in(local: Local) -> None:
    assert (await local.ask("/")).status_code == FORBIDDEN
    assert (await local.ask("/", Cookie=f"{COOKIE}=guessed")).status_code == FORBIDDEN
    assert (await local.ask("/.pai/local?key=guessed")).status_code == FORBIDDEN
    way = urlsplit(local.address)
    signed_in = await local.ask(f"{way.path}?{way.query}")
    assert (signed_in.status_code, signed_in.headers["Location"]) == (FOUND, "/")
    cookie = signed_in.headers["Set-Cookie"]
    assert cookie.startswith(local.session["Cookie"])
    assert {"HttpOnly", "SameSite=Lax"} <= set(cookie.split("; "))
    assert (await local.ask("/a", **local.session)).status_code == OK


@pytest.mark.asyncio
async def test_any_page_may_see_that_its_browser_reaches_it_and_learns_no_more(local: Local) -> None:
    shown = await local.ask("/.pai/reached", Origin="http://jupyter.example")
    assert (shown.text, shown.headers["Access-Control-Allow-Origin"]) == (local.service.proof, "*")
    for secret in (local.service.key, local.service.session):
        assert secret not in (local.service.proof, *shown.headers.values())
    assert (await local.ask("/.pai/local?key=" + shown.text)).status_code == FORBIDDEN
    assert (await local.ask("/", Cookie=f"{COOKIE}={shown.text}")).status_code == FORBIDDEN


@pytest.mark.asyncio
async def test_ports_are_few_one_for_each_service_and_end_with_the_server() -> None:
    with RunningFake() as fake:
        services = LocalServices(BackendLink(lambda: fake.endpoint))
        first = await services.lead("a0--web")
        assert await services.lead("a0--web") == first
        for number in range(1, MOST):
            await services.lead(f"a{number}--web")
        assert port_answers(first)
        last = await services.lead("one-more--web")
        assert (port_answers(first), port_answers(last)) == (False, True)
        await services.give_back("one-more--web")
        await services.give_back("one-more--web")
        assert not port_answers(last)
        again = await services.lead("a1--web")
        await services.close()
        assert not port_answers(again)


@pytest.mark.asyncio
async def test_a_port_that_one_browser_uses_stays_when_another_does_not_reach_it() -> None:
    with RunningFake() as fake:
        services = LocalServices(BackendLink(lambda: fake.endpoint))
        led = await services.lead(SERVICE)
        way = urlsplit(led["url"])
        async with httpx.AsyncClient(trust_env=False, timeout=60) as browser:
            entered = f"http://127.0.0.1:{way.port}{way.path}?{way.query}"
            assert (await browser.get(entered, headers={"Host": way.netloc})).status_code == FOUND
        assert await services.lead(SERVICE) == led
        await services.give_back(SERVICE)
        assert port_answers(led)
        await services.close()
        assert not port_answers(led)


@pytest.mark.asyncio
async def test_two_that_ask_for_a_port_when_all_are_taken_get_the_same() -> None:
    with RunningFake() as fake:
        services = LocalServices(BackendLink(lambda: fake.endpoint))
        taken = [await services.lead(f"a{number}--web") for number in range(MOST)]
        one, other = await asyncio.gather(services.lead(SERVICE), services.lead(SERVICE))
        assert one == other
        assert [port_answers(each) for each in taken] == [False] + [True] * (MOST - 1)
        await services.close()
        assert not port_answers(one)


def port_answers(led: dict[str, str]) -> bool:
    """Whether something listens at the port."""
    with socket.socket() as found:
        return found.connect_ex(("127.0.0.1", urlsplit(led["url"]).port or 0)) == 0


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "host", ["localhost:{port}", "127.0.0.1:{port}", "evil.example:{port}", "y--web.localhost:{port}"]
)
async def test_another_name_of_this_machine_leads_nowhere(local: Local, host: str) -> None:
    assert (await local.ask("/", Host=host.format(port=local.port), **local.session)).status_code == FORBIDDEN


@pytest.mark.asyncio
async def test_a_page_of_another_origin_can_neither_send_nor_open_a_websocket(local: Local) -> None:
    for foreign in ({"Origin": "http://evil.example"}, {"Sec_Fetch_Site": "same-site"}):
        assert (await local.ask("/", "POST", **local.session, **foreign)).status_code == FORBIDDEN
    own = {"Origin": f"http://{local.service.host}"}
    assert (await local.ask("/", "POST", **local.session, **own)).status_code == CREATED
    address = f"ws://127.0.0.1:{local.port}/echo"
    host = {"Host": local.service.host, **local.session}
    with pytest.raises(HTTPClientError) as refused:
        await websocket_connect(HTTPRequest(address, headers={**host, "Origin": "http://evil.example"}))
    assert refused.value.code == FORBIDDEN
    socket = await websocket_connect(HTTPRequest(address, headers={**host, **own}))
    await socket.write_message("hello")
    assert await socket.read_message() is not None
    socket.close()


@pytest.mark.asyncio
async def test_the_service_is_asked_below_its_path_with_the_users_token_and_without_ours(local: Local) -> None:
    cookie = f"{COOKIE}={local.service.session}; theme=dark"
    for target in ("/a%20b?q=1", f"/s/{SERVICE}/a%20b?q=1"):
        answer = await local.ask(target, Cookie=cookie, X_Forwarded_Prefix="/elsewhere")
        seen = answer.json()
        assert (seen["path"], seen["query"]) == (f"/s/{SERVICE}/a%20b", "q=1")
        assert seen["headers"]["Cookie"] == "theme=dark"
        assert seen["headers"]["Authorization"].startswith("Bearer ")
        assert local.service.session not in answer.text
        assert seen["headers"].get("Pai-Relay-Prefix", "") == ""
        assert "_xsrf=inner; Path=/" in answer.headers.get_list("Set-Cookie")
