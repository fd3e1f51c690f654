"""What passes between browser and task in headers."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urljoin, urlsplit

import pytest

from pai_backend.access.proxy.address import ServiceAddress
from pai_backend.access.proxy.fields import HeaderFields
from pai_backend.access.proxy.headers import (
    Upstream,
    browser_cookie,
    browser_location,
    passing_cookies,
    request_fields,
    request_target,
    response_headers,
    wants_upgrade,
)
from pai_backend.model.shared_origin import mark_of

MARK = mark_of("_xsrf=y").partition(";")[0]
BY_HOST = Upstream(
    address=ServiceAddress("lab--web", "", "/a/b"),
    host="lab--web.localhost:8000",
    scheme="http",
    remote_ip="192.0.2.7",
    port=15000,
    token=None,
)
BY_PATH = replace(BY_HOST, address=ServiceAddress("lab--web", "/s/lab--web", "/a/b"), host="127.0.0.1:8000")
JUPYTER = replace(BY_HOST, token="t" * 20)


def sent(headers: dict[str, str], to: Upstream = BY_HOST) -> dict[str, str]:
    fields = [(name.decode().lower(), value.decode()) for name, value in request_fields(HeaderFields(headers), to)]
    assert len({name for name, _ in fields}) == len(fields), "a field is there twice"
    return dict(fields)


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "Proxy-Authorization",
        "Keep-Alive",
        "Proxy-Connection",
        "TE",
        "Trailer",
        "Expect",
        "HTTP2-Settings",
        "Forwarded",
        "X-Forwarded-User",
        "X-Original-URL",
        "Via",
    ],
)
def test_fields_that_end_at_the_proxy_do_not_reach_the_task(name: str) -> None:
    assert name.lower() not in sent({name: "x", "Accept": "*/*"})


def test_fields_named_by_connection_end_at_the_proxy() -> None:
    fields = sent({"Connection": "close, X-Hop", "X-Hop": "1", "X-End": "2"})
    assert "x-hop" not in fields
    assert fields["x-end"] == "2"
    assert "connection" not in fields, "the connection to the task is ours"


def test_what_a_client_says_of_its_origin_is_replaced_by_what_is_so() -> None:
    fields = sent({"X-Forwarded-For": "1.1.1.1", "X-Real-IP": "1.1.1.1", "X-Forwarded-Proto": "https"})
    assert fields["x-forwarded-for"] == fields["x-real-ip"] == "192.0.2.7"
    assert fields["x-forwarded-proto"] == "http"
    assert fields["x-forwarded-host"] == fields["host"] == "lab--web.localhost:8000"


def test_a_guest_gets_no_login_of_a_jupyter() -> None:
    for cookie in ("username-localhost-15000=secret; Path=/", "jupyterhub-user-ann=secret", "Username-x=1"):
        assert browser_cookie(cookie, replace(JUPYTER, is_guest=True)) is None
        assert browser_cookie(cookie, JUPYTER) is not None
    assert browser_cookie("theme=dark", replace(JUPYTER, is_guest=True)) == "theme=dark"


def test_a_path_address_tells_the_task_its_prefix() -> None:
    evil = {"X-Forwarded-Prefix": "/evil", "Pai-Relay-Prefix": "/evil"}
    assert not {"x-forwarded-prefix", "pai-relay-prefix"} & set(sent(evil))
    assert sent({}, BY_PATH)["x-forwarded-prefix"] == "/s/lab--web"
    assert sent({}, replace(BY_PATH, outer_prefix="/user/ann/pai"))["x-forwarded-prefix"] == "/user/ann/pai/s/lab--web"


def test_a_jupyter_is_asked_as_a_local_client_with_its_token() -> None:
    fields = sent({"Origin": "http://lab--web.localhost:8000", "Accept-Encoding": "br", "Authorization": "x"}, JUPYTER)
    assert fields["authorization"] == f"token {JUPYTER.token}"
    assert (fields["host"], fields["origin"]) == ("localhost:15000", "http://localhost:15000")
    assert fields["accept-encoding"] == "identity"
    assert "origin" not in sent({}, JUPYTER)


def test_an_upgrade_passes_but_not_to_another_http() -> None:
    websocket = {"Connection": "keep-alive, Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Protocol": "a, b"}
    fields = sent(websocket)
    assert (fields["connection"], fields["upgrade"], fields["sec-websocket-protocol"]) == (
        "Upgrade",
        "websocket",
        "a, b",
    )
    h2c = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "x"}
    assert not wants_upgrade(HeaderFields(h2c))
    assert "connection" not in sent(h2c)
    assert not wants_upgrade(HeaderFields({"Upgrade": "websocket"}))


@pytest.mark.parametrize(
    "upgrade",
    ["h2c, websocket", "websocket, h2c", "websocket,", "H2C", "h2", "HTTP/2.0", "TLS/1.0", "h3", "web socket"],
)
def test_no_upgrade_that_may_be_http_passes(upgrade: str) -> None:
    """A task that takes it would get requests that no rule of the proxy has seen."""
    asked = {"Connection": "Upgrade", "Upgrade": upgrade}
    assert not wants_upgrade(HeaderFields(asked))
    assert "connection" not in sent(asked)
    assert "upgrade" not in sent(asked)


def test_a_length_beside_chunks_is_not_passed_on() -> None:
    both = [("Content-Length", "3"), ("Transfer-Encoding", "chunked"), ("X-End", "1")]
    assert list(response_headers(HeaderFields(both), BY_HOST).get_all()) == [("X-End", "1")]
    assert "Content-Length" in response_headers(HeaderFields(both[:1]), BY_HOST)


def test_our_token_leaves_the_address_of_the_page_too() -> None:
    headers = HeaderFields({"Referer": "http://lab--web.localhost:8000/?token=ours&a=1"})
    fields = {name.lower(): value for name, value in request_fields(headers, BY_HOST, drop_token=True)}
    assert fields[b"referer"] == b"http://lab--web.localhost:8000/?a=1"


def test_chunked_bodies_stay_chunked() -> None:
    fields = sent({"Transfer-Encoding": "chunked", "Content-Length": "5"})
    assert fields["transfer-encoding"] == "chunked"
    assert "content-length" not in fields
    assert sent({"Content-Length": "5"})["content-length"] == "5"


@pytest.mark.parametrize(
    ("values", "shared", "passed"),
    [
        (["a=1; pai-session=x; b=2"], False, "a=1; b=2"),
        (["pai-session=x"], False, ""),
        (["__Host-pai-session=x; a=1"], False, "a=1"),
        (["a=1", "b=2; pai-session=y"], False, "a=1; b=2"),
        (["pai-session2=x; xpai-session=y"], False, "pai-session2=x; xpai-session=y"),
        (['pai-session="a b"; c="d e"'], False, 'c="d e"'),
        (["username-127-0-0-1-8888=u; jupyterhub-user=h; _xsrf=z; _xsrf=y"], True, ""),
        ([f"_xsrf=y; {MARK}; _xsrf=z"], True, "_xsrf=y"),
        (["_xsrf=z"], False, "_xsrf=z"),
        (["username-lab--web-localhost-8000=u"], False, "username-lab--web-localhost-8000=u"),
    ],
)
def test_all_cookies_pass_but_ours(values: list[str], shared: bool, passed: str) -> None:
    assert passing_cookies(values, shared_host=shared)[0] == passed


@pytest.mark.parametrize(
    ("cookie", "by_host", "by_path"),
    [
        ("a=1", "a=1", "a=1"),
        ("a=1; Path=/", "a=1; Path=/", "a=1; Path=/s/lab--web/"),
        ("a=1; path=/x; HttpOnly", "a=1; path=/x; HttpOnly", "a=1; Path=/s/lab--web/x; HttpOnly"),
        ("a=1; Domain=localhost; Secure", "a=1; Secure", "a=1; Secure"),
        ("pai-session=forged; Path=/", None, None),
        (" pai-session =forged", None, None),
        ("__Host-pai-session=forged; Path=/; Secure", None, None),
        ("=pai-session=forged; Path=/", None, None),
        ("=__Host-pai-session=forged", None, None),
        ("=plain", "=plain", "=plain"),
    ],
)
def test_a_tasks_cookies_stay_on_its_own_address(cookie: str, by_host: str | None, by_path: str | None) -> None:
    assert browser_cookie(cookie, BY_HOST) == by_host
    assert browser_cookie(cookie, BY_PATH) == by_path


def test_a_tasks_own_xsrf_comes_back_to_it_on_a_path_address_and_no_other_does() -> None:
    given = response_headers(HeaderFields({"Set-Cookie": "_xsrf=y; Path=/; Max-Age=60"}), BY_PATH).get_list(
        "Set-Cookie"
    )
    digest = MARK.partition("=")[2]
    assert given == [
        "_xsrf=y; Path=/s/lab--web/; Max-Age=60",
        f"pai-xsrf={digest}; Path=/s/lab--web/; Max-Age=60; HttpOnly",
    ]
    back = "; ".join(cookie.partition(";")[0] for cookie in given)
    fields = sent({"Cookie": f"{back}; _xsrf=jupyters", "X-XSRFToken": "y"}, BY_PATH)
    assert (fields["cookie"], fields["x-xsrftoken"]) == ("_xsrf=y", "y")
    fields = sent({"Cookie": "_xsrf=jupyters; _xsrf=hubs", "X-XSRFToken": "hubs"}, BY_PATH)
    assert not {"cookie", "x-xsrftoken"} & set(fields)
    assert response_headers(HeaderFields({"Set-Cookie": "_xsrf=y"}), BY_HOST).get_list("Set-Cookie") == ["_xsrf=y"]
    assert browser_cookie(MARK, BY_PATH) is None


def test_cookie_paths_hold_behind_a_relay() -> None:
    assert browser_cookie("a=1; Path=/", replace(BY_PATH, outer_prefix="/u/pai")) == "a=1; Path=/u/pai/s/lab--web/"


@pytest.mark.parametrize(
    ("location", "by_host", "by_path"),
    [
        ("/tree?x=1", "/tree?x=1", "../tree?x=1"),
        ("tree", "tree", "tree"),
        ("http://lab--web.localhost:8000/x", "/x", "http://lab--web.localhost:8000/x"),
        ("http://127.0.0.1:8000/x", "http://127.0.0.1:8000/x", "../x"),
        ("https://example.com/x?token=1", "https://example.com/x?token=1", "https://example.com/x?token=1"),
        ("http://[bad", "http://[bad", "http://[bad"),
    ],
)
def test_redirects_lead_to_the_services_address(location: str, by_host: str, by_path: str) -> None:
    assert browser_location(location, BY_HOST) == by_host
    assert browser_location(location, BY_PATH) == by_path


OWN = "http://127.0.0.1:8000/s/lab--web"


@pytest.mark.parametrize(
    "location",
    [
        "..",
        "../../jobs",
        "../../../../api/v2/jobs",
        "..//evil",
        "x/../../../../s/other/",
        "%2e%2E/../../x",
        "..\\..\\..\\s\\other",
        "x\\..\\..\\..\\..\\s\\other",
        "/..//x",
        "http:/api/v2/jobs",
        "http:../../../api",
        "HTTP:\\/127.0.0.1:8000\\api",
        "http://user:word@127.0.0.1:8000/api/v2/jobs",
        "//127.0.0.1:8000/../s/other",
        "\t/\n../api",
        " ../../../api",
        "../../../api?a=/../b",
    ],
)
def test_no_redirect_to_this_host_leaves_a_path_address(location: str) -> None:
    for value in (browser_location(location, BY_PATH), _refreshed(location)):
        found = urlsplit(urljoin(f"{OWN}{BY_PATH.address.target}", value))
        assert f"{found.scheme}://{found.netloc}{found.path}".startswith(f"{OWN}/"), value


def _refreshed(location: str) -> str:
    headers = response_headers(HeaderFields({"Refresh": f"0;URL='{location}'"}), BY_PATH)
    return headers["Refresh"].partition("url=")[2]


@pytest.mark.parametrize(
    "location", ["https://example.com/a/../b", "//example.com/x", "\\\\example.com", "mailto:a@b", "?x=..", "#../x", ""]
)
def test_other_redirects_are_left_as_they_are(location: str) -> None:
    assert browser_location(location, BY_PATH) == location
    assert browser_location(location, BY_HOST) == location


def test_a_refresh_without_an_address_is_left_as_it_is() -> None:
    assert response_headers(HeaderFields({"Refresh": "5"}), BY_PATH)["Refresh"] == "5"
    assert response_headers(HeaderFields({"Refresh": "5; url=/x"}), BY_PATH)["Refresh"] == "5; url=../x"


def test_a_redirect_never_shows_a_jupyters_token() -> None:
    assert browser_location(f"/tree?token={JUPYTER.token}&x=1", JUPYTER) == "/tree?x=1"
    assert browser_location("http://localhost:15000/lab", JUPYTER) == "/lab"


def test_response_fields_of_the_hop_end_here_and_repeated_ones_stay() -> None:
    headers = response_headers(
        HeaderFields(
            [
                ("connection", "x-hop"),
                ("x-hop", "1"),
                ("transfer-encoding", "chunked"),
                ("set-cookie", "a=1"),
                ("set-cookie", "b=2"),
                ("content-type", "text/plain"),
            ]
        ),
        BY_HOST,
    )
    assert headers.get_list("Set-Cookie") == ["a=1", "b=2"]
    assert {name for name, _ in headers.get_all()} == {"set-cookie", "content-type"}


def test_targets_stay_byte_for_byte_and_bytes_outside_ascii_are_encoded() -> None:
    address = ServiceAddress("lab--web", "", "/a%2Fb/\xe4\xb8\xad?q=%zz&token=x")
    assert request_target(address, drop_token=False) == b"/a%2Fb/%E4%B8%AD?q=%zz&token=x"
    assert request_target(address, drop_token=True) == b"/a%2Fb/%E4%B8%AD?q=%zz"


def test_a_jupyter_whose_token_is_not_known_is_asked_for_plain_pages_by_its_local_name() -> None:
    fields = sent({"Accept-Encoding": "br", "Origin": "http://x"}, replace(BY_PATH, is_jupyter=True))
    assert (fields["accept-encoding"], fields["host"]) == ("identity", "localhost:15000")
    assert fields["origin"] == "http://localhost:15000"
    assert "authorization" not in fields
