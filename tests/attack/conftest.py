"""One backend for all attacks of a worker: what one of them did to it, the next would meet."""

from __future__ import annotations

import resource
from collections.abc import Iterator

import pytest

from tests.attack.site import LIMIT_S, OWNER, Site, running_site
from tests.attack.table import mark_rows
from tests.support.backend_process import until


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """They share a backend, so one worker has them all."""
    mark_rows(items)
    for item in items:
        if item.get_closest_marker("attack"):
            item.add_marker(pytest.mark.xdist_group("attack"))
            item.add_marker(pytest.mark.timeout(180))


ECHO = r"""
import http.server, os
class Show(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
        with open(os.environ["SEEN"], "a") as seen: seen.write(str(self.headers))
        self.wfile.write(f"{self.requestline}\n{self.headers}".encode())
http.server.HTTPServer(("127.0.0.1", int(os.environ["PAI_PORT_LIST_worker_0_web"])), Show).serve_forever()
"""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A backend that knows four users."""
    with running_site(tmp_path_factory.mktemp("attack")) as made:
        yield made


@pytest.fixture
def many_files() -> Iterator[None]:
    """This process may open as many files as strangers open connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 16_384)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(scope="session")
def echo(site: Site) -> Iterator[str]:
    """The service alias of a task that answers with the request it got."""
    (site.path / "echo.py").write_text(ECHO)
    ports = [{"label": "web", "beginAt": 0, "portNumber": 1}]
    detail = site.job("echo", f"SEEN={site.seen} exec python3 {site.path}/echo.py", role={"portList": ports})
    (service,) = detail["services"]
    with site.http(OWNER) as client:
        until(lambda: client.get(f"/s/{service['alias']}/").status_code == 200, LIMIT_S)
    yield service["alias"]
    site.stop("echo")


@pytest.fixture(scope="session")
def sleeper(site: Site) -> Iterator[str]:
    """The alias of a running job of the owner."""
    yield str(site.job("sleeper", "sleep 3600")["alias"])
    site.stop("sleeper")
