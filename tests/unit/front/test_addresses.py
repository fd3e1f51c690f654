"""Which address `pai open` takes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from jupyter_pai.addresses import address_of
from jupyter_pai.wire_types import Ticket

BACKEND = "https://pai.example:8443"


class Reached(BaseHTTPRequestHandler):
    """A backend at an own address, and what the host names that it was asked by answer."""

    def do_GET(self) -> None:
        host = (self.headers["Host"] or "").partition(":")[0]
        self.send_response(200 if self.path == "/.pai/reached" else 404)
        self.end_headers()
        self.wfile.write({"a--web.localhost": b"proof"}.get(host, b"of another backend"))

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


def ticket(host: str) -> Ticket:
    return {
        "url": f"http://{host}/.pai/signin?ticket=t",
        "pathUrl": "/s/a--web/.pai/signin?ticket=t",
        "expiresAt": "",
        "proof": "proof",
        "isJupyter": False,
    }


def test_the_own_address_is_taken_where_it_leads_to_this_backend(port: int) -> None:
    own = ticket(f"a--web.localhost:{port}")
    assert address_of(own, BACKEND) == own["url"]


def test_the_path_is_taken_where_another_or_nothing_answers(port: int) -> None:
    below = f"{BACKEND}/s/a--web/.pai/signin?ticket=t"
    assert address_of(ticket(f"b--web.localhost:{port}"), BACKEND) == below
    assert address_of(ticket("a--web.localhost:1"), BACKEND) == below
