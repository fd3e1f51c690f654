"""*Open* from wherever the browser is: the Jupyter of the seeds' document, unmodified, at each kind of address.

Names and ports that are mapped in the browser stand for other machines. The Jupyter server of all rows has a base URL.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import BrowserContext, Page, Playwright, Response, expect, sync_playwright

from tests.support import plain_application
from tests.support.chromium import ARGUMENTS, OwnNetwork, executable
from tests.support.in_front import forwarded, nginx
from tests.support.lab_site import ROOT, LabSite, running_lab

JUPYTER = ROOT / "examples" / "scm-jupyter.json"
NAME = "jupyter_16be8b71"
SERVICE = "jupyter-16be8b71--jupyter"
BASE = "/base/"
TIMEOUT_MS = 60_000
START_S = 120
MISSING = 404
PLAIN = "plain-application"
# What leads to this machine's loopback for the browser of another machine: nothing.
ELSEWHERE = "MAP *.localhost 127.0.0.2"

expect.set_options(timeout=TIMEOUT_MS)


@dataclass
class Visit:
    """A browser that sees the site in one way, and what it asked for in vain."""

    context: BrowserContext
    page: Page
    missing: list[str] = field(default_factory=list)

    def saw(self, answer: Response) -> None:
        """Called by the browser."""
        if answer.status == MISSING:
            self.missing.append(answer.url)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, network: OwnNetwork) -> Iterator[LabSite]:
    """A Jupyter server that answers to any host name below ``/base/``, with a running job of the seeds."""
    options = [f"--ServerApp.base_url={BASE}", "--ServerApp.allow_remote_access=True"]
    with ExitStack() as stack:
        with network.entered():
            found = stack.enter_context(running_lab(tmp_path_factory.mktemp("far-lab"), options=options))
            submit(found)
        yield found
        with network.entered():
            stack.close()


@pytest.fixture(scope="module")
def playwright(network: OwnNetwork) -> Iterator[Playwright]:
    with network.entered(), sync_playwright() as found:
        yield found


def submit(site: LabSite) -> None:
    """The seeds' job, and one of an application that uses addresses from the root of its host."""
    plain = json.loads((ROOT / "examples" / "scm-helloworld.json").read_text(encoding="utf-8"))
    plain["jobName"] = PLAIN
    role = plain["taskRoles"][0]
    role["command"] = f"exec {sys.executable} {plain_application.__file__} $PAI_CONTAINER_HOST_web_PORT_LIST"
    role["portList"] = [{"label": "web", "beginAt": 0, "portNumber": 1}]
    headers = {"Authorization": f"token {site.token}", "Content-Type": "application/json"}
    for body in (JUPYTER.read_bytes(), json.dumps(plain).encode()):
        answer = httpx.post(f"{site.url}pai/api/v2/jobs", content=body, headers=headers, timeout=60)
        answer.raise_for_status()
    for service in (SERVICE, f"{PLAIN}--web"):
        deadline = time.monotonic() + START_S
        while not httpx.get(
            f"{site.url}pai/s/{service}/", headers=headers, follow_redirects=True, timeout=60
        ).is_success:
            assert time.monotonic() < deadline, f"{service} does not answer"
            time.sleep(0.1)


@contextmanager
def visit(playwright: Playwright, site: LabSite, root: str, rules: str) -> Iterator[Visit]:
    """The panel in a browser for which the server is at ``root``, and other names are as ``rules`` map them."""
    browser = playwright.chromium.launch(
        executable_path=executable(), args=[*ARGUMENTS, f"--host-resolver-rules={rules}"]
    )
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(TIMEOUT_MS)
    found = Visit(context, context.new_page())
    context.on("response", found.saw)
    found.page.goto(f"{root}lab/workspaces/test?reset&token={site.token}")
    found.page.locator("#jupyterlab-splash").wait_for(state="detached")
    found.page.get_by_role("tab", name="PAI jobs").click()
    yield found
    browser.close()


def press_open(visit: Visit, name: str, label: str) -> None:
    """Press *Open* on a service of a job, once it answers."""
    visit.page.get_by_role("region", name="PAI jobs").get_by_text(name, exact=True).first.dblclick()
    job = visit.page.locator(".jp-pai-JobPage:visible")
    expect(job.get_by_role("heading", name=name)).to_be_visible()
    job.get_by_role("button", name=f"Open {label}").click()


def open_service(visit: Visit, name: str, label: str) -> Page:
    """The page that *Open* leads to."""
    with visit.page.expect_popup() as popup:
        press_open(visit, name, label)
    return popup.value


def refused(visit: Visit, name: str, label: str) -> str:
    """What is said instead of opening a service; the tab is closed again."""
    press_open(visit, name, label)
    said = visit.page.get_by_role("dialog")
    expect(said).to_contain_text("It needs an address of its own")
    assert len(visit.context.pages) == 1
    text = said.inner_text()
    said.get_by_role("button", name="Close").click()
    return text


def use_jupyter(visit: Visit, service: Page) -> None:
    """Run a cell and a terminal of the job's Jupyter, from the page that *Open* led to."""
    expect(service.get_by_role("tab", name="Files")).to_be_visible()
    with visit.context.expect_page() as opened:
        _new(service, "Python 3")
    notebook = opened.value
    notebook.locator(".jp-Notebook .cm-content").first.click()
    notebook.keyboard.type("1+1")
    notebook.keyboard.press("Shift+Enter")
    expect(notebook.locator(".jp-OutputArea-output").first).to_have_text("2")
    with visit.context.expect_page() as opened:
        _new(service, "Terminal")
    terminal = opened.value
    terminal.locator(".jp-Terminal .xterm-helper-textarea").wait_for(state="attached")
    terminal.locator(".jp-Terminal").click()
    terminal.keyboard.type("mkdir by-the-terminal\n")
    expect(service.get_by_text("by-the-terminal")).to_be_visible()
    assert not visit.missing


def _new(service: Page, what: str) -> None:
    service.get_by_text("New", exact=True).click()
    service.get_by_role("menuitem", name=re.compile(what)).click()


def test_a_server_at_another_host_shows_the_jobs_jupyter_below_its_own_path(
    site: LabSite, playwright: Playwright
) -> None:
    port = urlsplit(site.url).port
    with visit(playwright, site, f"http://host:{port}{BASE}", f"MAP host 127.0.0.1,{ELSEWHERE}") as found:
        assert "Set api.service_domain" in refused(found, PLAIN, "web")
        service = open_service(found, NAME, "jupyter")
        service.wait_for_url(f"http://host:{port}{BASE}pai/s/{SERVICE}/tree")
        use_jupyter(found, service)


def test_behind_a_forwarded_port_jupyter_opens_and_what_else_is_to_be_forwarded_is_said(
    site: LabSite, playwright: Playwright
) -> None:
    with forwarded(urlsplit(site.url).port or 0) as port:
        root = f"http://localhost:{port}{BASE}"
        with visit(playwright, site, root, ELSEWHERE) as found:
            remedy = re.search(r"ssh -L (\d+):localhost:\1 SERVER", refused(found, PLAIN, "web"))
            assert remedy is not None
            service = open_service(found, NAME, "jupyter")
            service.wait_for_url(f"{root}pai/s/{SERVICE}/tree")
            use_jupyter(found, service)
        # With that port forwarded, too, names below localhost lead to the backend.
        with visit(playwright, site, root, "MAP nowhere 127.0.0.1") as found:
            service = open_service(found, PLAIN, "web")
            service.wait_for_url(f"http://{PLAIN}--web.localhost:{remedy[1]}/")
            expect(service.locator("p")).to_have_text("echo of hello")


def test_behind_a_reverse_proxy_jupyter_opens_below_its_prefix(
    site: LabSite, playwright: Playwright, tmp_path: Path
) -> None:
    with nginx(tmp_path / "nginx", urlsplit(site.url).port or 0) as port:
        root = f"http://portal.example:{port}{BASE}"
        with visit(playwright, site, root, f"MAP portal.example 127.0.0.1,{ELSEWHERE}") as found:
            service = open_service(found, NAME, "jupyter")
            service.wait_for_url(f"{root}pai/s/{SERVICE}/tree")
            use_jupyter(found, service)
