"""*Open* from wherever the browser is: the Jupyter of the seeds' document, unmodified, at each kind of address.

Names and ports that are mapped in the browser stand for other machines. The Jupyter server of all rows has a base URL.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Playwright, expect

from tests.kubernetes.cluster.credentials import Authority
from tests.support.chromium import OwnNetwork
from tests.support.in_front import apache, forwarded, nginx
from tests.support.lab_site import LabSite, running_lab
from tests.support.opening import (
    BOARD,
    CLASSIC,
    ELSEWHERE,
    NAME,
    PLAIN,
    RELATIVE,
    SERVICE,
    START_S,
    Visit,
    submit_classic,
    submit_services,
    until_answers,
    visit,
)

BASE = "/base/"


@pytest.fixture(scope="module")
def classic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with Notebook 6, installed while the package index is reached."""
    place = tmp_path_factory.mktemp("classic") / "environment"
    uv, python = [sys.executable, "-m", "uv"], str(place / "bin" / "python")
    subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, str(place)], check=True, timeout=START_S)
    packages = ("notebook<7", "setuptools<81")  # it still imports pkg_resources
    subprocess.run([*uv, "pip", "install", "--quiet", "--python", python, *packages], check=True, timeout=START_S)
    return place


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, network: OwnNetwork, classic: Path) -> Iterator[LabSite]:
    """A Jupyter server that answers to any host name below ``/base/``, with a running job of the seeds."""
    options = [
        f"--ServerApp.{text}" for text in (f"base_url={BASE}", "allow_remote_access=True", "trust_xheaders=True")
    ]
    with ExitStack() as stack:
        with network.entered():
            found = stack.enter_context(running_lab(tmp_path_factory.mktemp("far-lab"), options=options))
            with httpx.Client(
                base_url=found.url, headers={"Authorization": f"token {found.token}"}, timeout=60
            ) as client:
                submit_classic(client, classic)
                submit_services(client)
        yield found
        with network.entered():
            stack.close()


@contextmanager
def panel(playwright: Playwright, site: LabSite, root: str, rules: str) -> Iterator[Visit]:
    """The panel in a browser for which the server is at ``root``, and other names are as ``rules`` map them."""
    with visit(playwright, rules, site.root) as found:
        found.show_panel(f"{root}lab/workspaces/test?reset&token={site.token}")
        yield found


def test_a_server_at_another_host_shows_the_jobs_jupyter_below_its_own_path(
    site: LabSite, playwright: Playwright
) -> None:
    port = urlsplit(site.url).port
    with panel(playwright, site, f"http://host:{port}{BASE}", f"MAP host 127.0.0.1,{ELSEWHERE}") as found:
        assert "Set api.service_domain" in found.refused(PLAIN, "web")
        service = found.open_service(NAME, "jupyter")
        service.wait_for_url(f"http://host:{port}{BASE}pai/s/{SERVICE}/tree")
        found.use_jupyter(service)
        found.use_tensorboard(f"http://host:{port}{BASE}pai/s/{BOARD}--web/")


def test_on_the_computer_of_jupyter_itself_every_application_opens_at_its_own_address(
    site: LabSite, playwright: Playwright
) -> None:
    with panel(playwright, site, site.url, "MAP nowhere 127.0.0.1") as found:
        plain = found.open_service(PLAIN, "web")
        plain.wait_for_url(re.compile(rf"http://{PLAIN}--web\.localhost:\d+/$"))
        expect(plain.locator("p")).to_have_text("echo of hello")
        port = urlsplit(plain.url).port
        service = found.open_service(NAME, "jupyter")
        service.wait_for_url(f"http://{SERVICE}.localhost:{port}/tree")
        found.use_jupyter(service)
        found.use_tensorboard(f"http://{BOARD}--web.localhost:{port}/")


def test_behind_a_forwarded_port_jupyter_opens_and_what_else_is_to_be_forwarded_is_said(
    site: LabSite, playwright: Playwright
) -> None:
    with forwarded(urlsplit(site.url).port or 0) as port:
        root = f"http://localhost:{port}{BASE}"
        with panel(playwright, site, root, ELSEWHERE) as found:
            remedy = re.search(r"ssh -L (\d+):localhost:\1 SERVER", found.refused(PLAIN, "web"))
            assert remedy is not None
            service = found.open_service(NAME, "jupyter")
            service.wait_for_url(f"{root}pai/s/{SERVICE}/tree")
            found.use_jupyter(service)
            found.use_tensorboard(f"{root}pai/s/{BOARD}--web/")
        # With that port forwarded, too, names below localhost lead to the backend.
        with panel(playwright, site, root, "MAP nowhere 127.0.0.1") as found:
            service = found.open_service(PLAIN, "web")
            service.wait_for_url(f"http://{PLAIN}--web.localhost:{remedy[1]}/")
            expect(service.locator("p")).to_have_text("echo of hello")


@contextmanager
def opened_locally(site: LabSite, job: str) -> Iterator[str]:
    """The address that ``pai open --local`` shows on a laptop whose ``pai`` knows the Jupyter server alone."""
    own = {"PAI_URL": f"{site.url}pai", "PAI_TOKEN": site.token, "HOME": str(site.root / "laptop")}
    command = [sys.executable, "-m", "jupyter_pai.cli", "open", job, "--local", "--print"]
    process = subprocess.Popen(command, env={**os.environ, **own}, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
        process.stdout.close()


def test_without_any_panel_a_local_port_leads_through_the_jupyter_server(site: LabSite, playwright: Playwright) -> None:
    with visit(playwright, "MAP nowhere 127.0.0.1", site.root) as found:
        with opened_locally(site, PLAIN) as address:
            found.page.goto(address)
            found.page.wait_for_url(f"http://{urlsplit(address).netloc}/")
            expect(found.page.locator("p")).to_have_text("echo of hello")
            assert PLAIN in address
        with opened_locally(site, NAME) as address:
            found.page.goto(address)
            found.page.wait_for_url(f"http://{urlsplit(address).netloc}/**/tree")
            found.use_jupyter(found.page)


def check_prefix(playwright: Playwright, site: LabSite, root: str, *, whole: bool = True) -> None:
    """What *Open* does behind a reverse proxy at ``root``, and that cookies are as safe as the way there.

    Not ``whole``: without what another row does behind the same proxy.
    """
    scheme = urlsplit(root).scheme
    with panel(playwright, site, root, f"MAP portal.example 127.0.0.1,{ELSEWHERE}") as found:
        relative = found.open_service(RELATIVE, "web")
        relative.wait_for_url(f"{root}pai/s/{RELATIVE}--web/")
        expect(relative.locator("p")).to_have_text("echo of hello")
        relative.goto(f"{root}pai/s/{RELATIVE}--web/headers")
        told = json.loads(relative.locator("body").inner_text())
        assert told["X-Forwarded-Proto"] == scheme
        assert told["X-Forwarded-Prefix"] == f"{BASE}pai/s/{RELATIVE}--web"
        ours = [each for each in found.context.cookies() if each.get("name", "").startswith(("username-", "pai-"))]
        assert ours
        assert all(each.get("secure") is (scheme == "https") for each in ours)
        service = found.open_service(NAME, "jupyter")
        service.wait_for_url(f"{root}pai/s/{SERVICE}/tree")
        if whole:
            found.use_jupyter(service)
            found.use_tensorboard(f"{root}pai/s/{BOARD}--web/")


def test_behind_nginx_jupyter_opens_below_its_prefix(site: LabSite, playwright: Playwright, tmp_path: Path) -> None:
    with nginx(tmp_path / "nginx", urlsplit(site.url).port or 0) as port:
        check_prefix(playwright, site, f"http://portal.example:{port}{BASE}", whole=False)


def test_behind_nginx_that_ends_tls_jupyter_opens_by_wss_and_with_secure_cookies(
    site: LabSite, playwright: Playwright, tmp_path: Path
) -> None:
    authority = Authority(tmp_path / "authority")
    authority.create()
    pair = authority.issue("portal.example", hosts=["portal.example"])
    with nginx(tmp_path / "nginx", urlsplit(site.url).port or 0, (pair.certificate, pair.key)) as port:
        check_prefix(playwright, site, f"https://portal.example:{port}{BASE}")


def test_behind_apache_jupyter_opens_below_its_prefix(site: LabSite, playwright: Playwright, tmp_path: Path) -> None:
    with apache(tmp_path / "apache", urlsplit(site.url).port or 0) as port:
        check_prefix(playwright, site, f"http://portal.example:{port}{BASE}")


def test_the_notebook_of_the_years_of_the_documents_opens_below_a_path(site: LabSite, playwright: Playwright) -> None:
    """Notebook 6, whose pages have addresses in their scripts, too."""
    with httpx.Client(base_url=site.url, headers={"Authorization": f"token {site.token}"}, timeout=60) as client:
        until_answers(client, f"{CLASSIC}--jupyter")
    port = urlsplit(site.url).port
    with panel(playwright, site, f"http://host:{port}{BASE}", f"MAP host 127.0.0.1,{ELSEWHERE}") as found:
        page = found.open_service(CLASSIC, "jupyter")
        page.wait_for_url(f"http://host:{port}{BASE}pai/s/{CLASSIC}--jupyter/tree")
        found.use_classic_jupyter(page)
