"""What reverse proxies that pass requests for services on by themselves are told when they ask."""

from __future__ import annotations

import asyncio
from ipaddress import ip_network

import pytest

from tests.support.proxy_fakes import ProxyUnderTest, running_proxy, service_job
from tests.support.proxy_upstreams import web_server

pytestmark = pytest.mark.asyncio
BEARER = {"Authorization": "Bearer alice-token"}
PROXIES = (ip_network("127.0.0.1/32"),)
TOLD = ("x-pai-upstream", "x-pai-host", "x-pai-cookie", "x-pai-authorization", "x-pai-origin")
JUPYTER = "jupyter notebook --port=$PAI_PORT_web --NotebookApp.token=abcdefghij"


async def asked(
    under_test: ProxyUnderTest, uri: str = "/", method: str = "GET", **headers: str
) -> tuple[int, dict[str, str]]:
    """What the proxy in front is told."""
    about = {"X-Forwarded-Uri": uri, "X-Forwarded-Method": method}
    answer = await under_test.client(**about, **headers).get("/.pai/authorize")
    return answer.status_code, {name: answer.headers[name] for name in TOLD if answer.headers.get(name)}


@pytest.mark.parametrize("known_by", ["token", "cookie"])
async def test_it_is_told_where_a_request_goes_and_with_what(known_by: str) -> None:
    async with web_server() as (port, _), running_proxy(service_job(port), proxies=PROXIES) as under_test:
        session = await under_test.cookie()
        headers = BEARER if known_by == "token" else {"Cookie": f"{session}; mine=1"}
        status, told = await asked(under_test, "/show?x=1", "POST", **headers)
        assert (status, told["x-pai-upstream"]) == (200, f"127.0.0.1:{port}")
        assert told["x-pai-host"] == under_test.authority
        assert told.get("x-pai-cookie") == (None if known_by == "token" else "mine=1")
        assert "x-pai-authorization" not in told


async def test_nobody_else_is_told_anything() -> None:
    async with web_server() as (port, _), running_proxy(service_job(port)) as under_test:
        assert await asked(under_test, **BEARER) == (404, {})


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer bob-token"}, 403),
        ({"Authorization": "Bearer root-token"}, 403),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Cookie": "pai-session=forged"}, 401),
    ],
)
async def test_who_may_not_enter_is_told_nothing(headers: dict[str, str], status: int) -> None:
    async with web_server() as (port, _), running_proxy(service_job(port), proxies=PROXIES) as under_test:
        assert await asked(under_test, **headers) == (status, {})


@pytest.mark.parametrize(
    ("uri", "headers"),
    [
        ("/ws", {"Sec-WebSocket-Key": "x"}),
        ("/events", {"Accept": "text/event-stream"}),
        ("/?token=alice-token", {}),
        ("/?%74oken=alice-token", {}),
        ("/", {"Referer": "http://lab--web.localhost/?token=alice-token"}),
        ("/.pai/signin?ticket=x", {}),
        ("/.pai/authorize", {}),
    ],
)
async def test_what_only_the_backend_can_pass_on_is_not_told(uri: str, headers: dict[str, str]) -> None:
    async with web_server() as (port, _), running_proxy(service_job(port), proxies=PROXIES) as under_test:
        assert await asked(under_test, uri, **BEARER, **headers) == (403, {})


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {"Origin": "http://evil.example"}, 403),
        ("POST", {"Origin": "http://evil.example"}, 403),
        ("POST", {"Origin": "null"}, 403),
        ("POST", {"Sec-Fetch-Site": "same-site"}, 403),
        ("GET", {"Sec-Fetch-Site": "cross-site"}, 200),
    ],
)
async def test_other_sites_act_for_nobody(method: str, headers: dict[str, str], status: int) -> None:
    async with web_server() as (port, _), running_proxy(service_job(port), proxies=PROXIES) as under_test:
        session = {"Cookie": await under_test.cookie()}
        assert (await asked(under_test, "/", method, **session, **headers))[0] == status
        assert (await asked(under_test, "/", method, **session, Origin=under_test.origin))[0] == 200


@pytest.mark.parametrize("uri", ["", "show", "http://other/", "*", "/x#y"])
async def test_an_address_that_is_none_is_refused(uri: str) -> None:
    async with web_server() as (port, _), running_proxy(service_job(port), proxies=PROXIES) as under_test:
        assert await asked(under_test, uri, **BEARER) == (400, {})


async def test_pages_of_a_jupyter_stay_and_the_rest_goes_with_its_token() -> None:
    async with web_server() as (port, _):
        job = service_job(port, command=JUPYTER)
        async with running_proxy(job, proxies=PROXIES) as under_test:
            assert await asked(under_test, **BEARER, Accept="text/html,*/*") == (403, {})
            status, told = await asked(under_test, **BEARER, Accept="*/*", Origin=under_test.origin)
            assert (status, told["x-pai-authorization"]) == (200, "token abcdefghij")
            assert (told["x-pai-host"], told["x-pai-origin"]) == (f"localhost:{port}", f"http://localhost:{port}")


async def test_only_what_listens_and_runs_is_told_of() -> None:
    async with web_server() as (port, _), running_proxy(service_job(port), proxies=PROXIES) as under_test:
        assert (await asked(under_test, **BEARER))[0] == 200
        for job in (service_job(None), service_job(1)):  # waits; nothing listens at port 1
            under_test.store.put(job)
            async with asyncio.timeout(60):
                while (await asked(under_test, **BEARER)) != (503, {}):
                    pass
