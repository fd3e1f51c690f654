"""What passes through the Jupyter server and what does not."""

from __future__ import annotations

import pytest
from tornado.httputil import HTTPHeaders

from jupyter_pai import relay
from pai_backend.model.shared_origin import mark_of

MARK = mark_of("_xsrf=inner").partition(";")[0]


def browser_headers() -> HTTPHeaders:
    headers = HTTPHeaders(
        {
            "Host": "hub.example.org",
            "Origin": "https://hub.example.org",
            "Authorization": "token jupyters-own",
            "Cookie": "username-hub=secret",
            "X-XSRFToken": "x",
            "Connection": "keep-alive, X-Hop",
            "X-Hop": "1",
            "Upgrade": "websocket",
            "Sec-WebSocket-Key": "k",
            "Accept-Encoding": "gzip",
        }
    )
    headers.add("X-Many", "1")
    headers.add("X-Many", "2")
    return headers


def test_jupyters_credentials_never_pass_and_ours_is_put_in() -> None:
    for keep_browser in (True, False):
        passed = relay.request_headers(browser_headers(), "backend-token", keep_browser=keep_browser)
        assert passed["Authorization"] == "Bearer backend-token"
        assert "Cookie" not in passed
        assert "jupyters-own" not in str(dict(passed))


def test_headers_of_one_hop_end_there() -> None:
    passed = relay.request_headers(browser_headers(), "t", keep_browser=True)
    assert not {"Connection", "X-Hop", "Upgrade", "Sec-Websocket-Key"} & set(passed)
    assert passed.get_list("X-Many") == ["1", "2"]
    assert passed["Accept-Encoding"] == "gzip"


def test_a_service_sees_the_page_that_asks_and_the_api_does_not() -> None:
    service = relay.request_headers(browser_headers(), "t", keep_browser=True)
    assert service["Origin"] == "https://hub.example.org"
    assert "Host" not in service, "the backend is found by its own name"
    api = relay.request_headers(browser_headers(), "t", keep_browser=False)
    assert not {"Host", "Origin", "X-Xsrftoken"} & set(api)


@pytest.mark.parametrize(
    ("sent", "passed"),
    [
        (f"_xsrf=inner; a=b; own=s; username-localhost-8889=s; {MARK}; _xsrf=hubs", f"_xsrf=inner; a=b; {MARK}"),
        (f"_xsrf=jupyters; own=s; {MARK}", MARK),
        ("jupyterhub-user-x=s; _xsrf=jupyters; _xsrf=hubs", None),
    ],
)
def test_of_cookies_only_the_services_own_pass(sent: str, passed: str | None) -> None:
    headers = HTTPHeaders()
    relay.keep_service_cookies(headers, sent, {"own"})
    assert headers.get("Cookie") == passed


def test_a_pages_header_with_jupyters_xsrf_does_not_pass() -> None:
    for value, passes in (("jupyters", False), ("inner", True), ("masked", True)):
        headers = HTTPHeaders({"X-XSRFToken": value})
        relay.keep_service_cookies(headers, f"_xsrf=inner; {MARK}; _xsrf=jupyters", ())
        assert (headers.get("X-XSRFToken") == value) is passes


def test_jupyters_token_is_taken_out_of_the_query() -> None:
    assert relay.without_token("a=1&token=secret&b=%20x") == "a=1&b=+x"
    assert relay.without_token("a=%2F&b") == "a=%2F&b"


@pytest.mark.parametrize(
    ("headers", "own"),
    [
        ({}, True),
        ({"Origin": "https://Hub.example.org"}, True),
        ({"Origin": "https://evil.example"}, False),
        ({"Origin": "https://hub.example.org:8443"}, False),
        ({"Origin": "null"}, False),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "https://behind.a.proxy"}, True),
        ({"Sec-Fetch-Site": "same-site", "Origin": "https://hub.example.org"}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
    ],
)
def test_requests_of_other_sites_pages_are_told_apart(headers: dict[str, str], own: bool) -> None:
    assert relay.is_of_own_page(HTTPHeaders({"Host": "hub.example.org", **headers})) is own


def test_what_a_client_says_of_forwarding_ends_here() -> None:
    headers = browser_headers()
    headers["Pai-Relay-Prefix"] = headers["X-Forwarded-Prefix"] = "/elsewhere"
    passed = relay.request_headers(headers, "t", keep_browser=True)
    assert not {"X-Forwarded-Prefix", "Pai-Relay-Prefix"} & set(passed)


def test_answers_lose_the_headers_of_their_hop() -> None:
    headers = HTTPHeaders({"Connection": "close, X-Hop", "X-Hop": "1", "Transfer-Encoding": "chunked", "ETag": "e"})
    assert list(relay.response_headers(headers)) == [("Etag", "e")]
