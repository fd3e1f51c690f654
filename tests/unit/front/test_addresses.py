"""Which address `pai open` takes, and what it says where there is none."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from jupyter_pai.addresses import address_of
from jupyter_pai.endpoint import Endpoint
from jupyter_pai.errors import BackendAway
from jupyter_pai.wire_types import Ticket

BACKEND = "https://127.0.0.1:1"
ENDPOINT = Endpoint(BACKEND, "t")
PAGES = {
    "root": '<script src="/app.js"></script>',
    "relative": '<a HREF="app"></a><script src="//cdn.example/x.js"></script>',
    "below": '<link href="/s/below--web/style.css">',
    "there": '<img src="/logo.png">',
}
REDIRECTS = {"moved": "/s/moved--web/there", "away": "/api/v2/there"}


class Reached(BaseHTTPRequestHandler):
    """A backend at an own address, and what the host names that it was asked by answer; services below its path."""

    def do_GET(self) -> None:
        if self.path.startswith("/s/"):
            self._service()
            return
        host = (self.headers["Host"] or "").partition(":")[0]
        self.send_response(200 if self.path == "/.pai/reached" else 404)
        self.end_headers()
        self.wfile.write({"a--web.localhost": b"proof"}.get(host, b"of another backend"))

    def _service(self) -> None:
        assert self.headers["Authorization"] == "Bearer t"
        name, _, rest = self.path.removeprefix("/s/").partition("--web/")
        if name in REDIRECTS and not rest:
            self.send_response(302)
            self.send_header("Location", REDIRECTS[name])
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(PAGES[rest or name].encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    with HTTPServer(("127.0.0.1", 0), Reached) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def ticket(host: str, name: str = "a") -> Ticket:
    return {
        "url": f"http://{host}/.pai/signin?ticket=t",
        "pathUrl": f"/s/{name}--web/.pai/signin?ticket=t",
        "expiresAt": "",
        "proof": "proof",
        "isJupyter": False,
    }


def test_the_own_address_is_taken_where_it_leads_to_this_backend(port: int) -> None:
    own = ticket(f"a--web.localhost:{port}")
    assert address_of(own, ENDPOINT) == own["url"]


def test_the_path_is_taken_where_another_or_nothing_answers(port: int) -> None:
    below = f"{BACKEND}/s/a--web/.pai/signin?ticket=t"
    assert address_of(ticket(f"b--web.localhost:{port}"), ENDPOINT) == below
    assert address_of(ticket("a--web.localhost:1"), ENDPOINT) == below


@pytest.mark.parametrize("name", ["relative", "below", "away"])
def test_an_application_that_stays_below_its_path_is_opened_there(port: int, name: str) -> None:
    endpoint = Endpoint(f"http://127.0.0.1:{port}", "t")
    found = address_of(ticket(f"{name}--web.localhost:1", name), endpoint)
    assert found == f"http://127.0.0.1:{port}/s/{name}--web/.pai/signin?ticket=t"


@pytest.mark.parametrize(
    ("own", "remedy"),
    [
        ("root--web.localhost:1", "ssh -L 1:localhost:1 SERVER"),
        ("root--web.pai.invalid", "*.pai.invalid, that leads to the backend"),
    ],
)
@pytest.mark.parametrize("name", ["root", "moved"])
def test_an_application_that_needs_an_own_address_says_what_is_missing(
    port: int, own: str, remedy: str, name: str
) -> None:
    with pytest.raises(BackendAway) as missing:
        address_of(ticket(own, name), Endpoint(f"http://127.0.0.1:{port}", "t"))
    assert "It needs an address of its own" in missing.value.message
    assert "--local" in (missing.value.hint or "")
    assert remedy in (missing.value.hint or "")


def test_a_jupyter_is_opened_below_the_path_whatever_its_page_names(port: int) -> None:
    jupyter: Ticket = {**ticket("root--web.localhost:1", "root"), "isJupyter": True}
    found = address_of(jupyter, Endpoint(f"http://127.0.0.1:{port}/base", "t"))
    assert found == f"http://127.0.0.1:{port}/base/s/root--web/.pai/signin?ticket=t"
