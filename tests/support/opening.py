"""*Open* pressed in a browser that sees a site in one way, and the use of the Jupyter that it leads to."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from playwright.sync_api import BrowserContext, Page, Playwright, Response, expect

from tests.support import event_file, plain_application
from tests.support.chromium import ARGUMENTS, executable
from tests.support.lab_site import ROOT
from tests.support.peaks import flat

JUPYTER = ROOT / "examples" / "scm-jupyter.json"
NAME = "jupyter_16be8b71"
SERVICE = "jupyter-16be8b71--jupyter"
PLAIN = "plain-application"
RELATIVE = "relative-application"
BOARD = "board"
CLASSIC = "classic"
TIMEOUT_MS = 60_000
START_S = 120
MISSING = 404
LARGE_BYTES = 200 << 20
# Random, so that no hop can make it smaller.
# Once for all who open this job.
MAKE_LARGE = (
    f"{{ [ -s sum.txt ] || {{ head -c {LARGE_BYTES} /dev/urandom > large.bin && sha256sum large.bin > sum.txt; }}; }}"
)
PORT = "$PAI_CONTAINER_HOST_web_PORT_LIST"
# What leads to this machine's loopback for the browser of another machine: nothing.
ELSEWHERE = "MAP *.localhost 127.0.0.2"

expect.set_options(timeout=TIMEOUT_MS)


@dataclass
class Visit:
    """A browser that sees the site in one way, and what it asked for in vain."""

    context: BrowserContext
    page: Page
    root: Path
    """Where the files of the Jupyter server and of the backend are."""
    missing: list[str] = field(default_factory=list)

    def saw(self, answer: Response) -> None:
        """Called by the browser."""
        if answer.status == MISSING:
            self.missing.append(answer.url)

    def show_panel(self, address: str) -> None:
        """Load JupyterLab from an address that signs in, or of who has, and show the list of jobs."""
        self.page.goto(address)
        self.page.locator("#jupyterlab-splash").wait_for(state="detached")
        self.page.get_by_role("tab", name="PAI jobs").click()

    def press_open(self, name: str, label: str) -> None:
        """Press *Open* on a service of a job, once it answers."""
        self.page.get_by_role("region", name="PAI jobs").get_by_text(name, exact=True).first.dblclick()
        job = self.page.locator(".jp-pai-JobPage:visible")
        expect(job.get_by_role("heading", name=name)).to_be_visible()
        job.get_by_role("button", name=f"Open {label}").click()

    def open_service(self, name: str, label: str) -> Page:
        """The page that *Open* leads to."""
        with self.page.expect_popup() as popup:
            self.press_open(name, label)
        return popup.value

    def use_tensorboard(self, address: str) -> None:
        """See the curve of the job's TensorBoard, which *Open* shows at ``address``."""
        board = self.open_service(BOARD, "web")
        board.wait_for_url(f"{address}**")
        expect(board.locator("card-view").get_by_text(event_file.TAG, exact=True)).to_be_visible()
        # TensorBoard names one of its fonts from the root of the host, whatever its prefix.
        assert not [url for url in self.missing if not url.endswith(".woff2")]
        self.missing.clear()

    def refused(self, name: str, label: str) -> str:
        """What is said instead of opening a service; the tab is closed again."""
        self.press_open(name, label)
        said = self.page.get_by_role("dialog")
        expect(said).to_contain_text("It needs an address of its own")
        expect(said).to_contain_text(f"pai open {name} {label} --local")
        assert len(self.context.pages) == 1
        text = said.inner_text()
        said.get_by_role("button", name="Close").click()
        return text

    def use_jupyter(self, service: Page) -> None:
        """Run a cell and a terminal of the job's Jupyter, from the page that *Open* led to."""
        expect(service.get_by_role("tab", name="Files")).to_be_visible()
        with self.context.expect_page() as opened:
            _new(service, "Python 3")
        notebook = opened.value
        # A kernel that comes late on a busy machine, Jupyter asks for: the dialog may come at any moment.
        asked = notebook.get_by_role("dialog").get_by_role("button", name="Select Kernel")
        notebook.add_locator_handler(asked, lambda button: button.click())
        notebook.locator(".jp-Notebook-ExecutionIndicator[data-status='idle']").wait_for(state="attached")
        notebook.locator(".jp-Notebook .cm-content").first.click()
        notebook.keyboard.type("1+1")
        notebook.keyboard.press("Shift+Enter")
        expect(notebook.locator(".jp-OutputArea-output").first).to_have_text("2")
        with self.context.expect_page() as opened:
            _new(service, "Terminal")
        terminal = opened.value
        terminal.locator(".jp-Terminal .xterm-helper-textarea").wait_for(state="attached")
        terminal.locator(".jp-Terminal").click()
        done = f"done-{uuid.uuid4().hex[:8]}"  # others may have used the terminal of this job
        terminal.keyboard.type(f"({MAKE_LARGE}) && mkdir {done}\n")
        expect(service.get_by_text(done)).to_be_visible()
        assert not self.missing
        self.download(service)

    def download(self, service: Page) -> None:
        """Save the large file of the job's Jupyter to this computer: it comes whole, and no hop gathers it."""
        service.get_by_text("large.bin", exact=True).click(button="right")
        with flat(self.root):
            with service.expect_download() as begun:
                service.get_by_role("menuitem", name="Download", exact=True).click()
            saved = begun.value.path()
        with open(saved, "rb") as file:
            assert saved.stat().st_size == LARGE_BYTES
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        begun.value.delete()
        root = service.url.partition("/tree")[0]
        told = service.evaluate("async address => (await fetch(address)).text()", f"{root}/files/sum.txt")
        assert told.startswith(digest)

    def use_classic_jupyter(self, service: Page) -> None:
        """The same with Notebook 6."""
        with self.context.expect_page() as opened:
            service.locator("#new-buttons").get_by_role("button", name="New").click()
            service.locator("#new-menu").get_by_text("Python 3").click()
        notebook = opened.value
        notebook.locator("#kernel_indicator_icon.kernel_idle_icon").wait_for(state="attached")
        notebook.locator(".CodeMirror").first.click()
        notebook.keyboard.type("1+1")
        notebook.keyboard.press("Shift+Enter")
        expect(notebook.locator(".output_subarea pre").first).to_have_text("2")
        with self.context.expect_page() as opened:
            service.locator("#new-buttons").get_by_role("button", name="New").click()
            service.locator("#new-menu").get_by_text("Terminal").click()
        terminal = opened.value
        terminal.locator(".xterm-helper-textarea").wait_for(state="attached")
        terminal.locator(".terminal").first.click()
        terminal.keyboard.type("mkdir by-the-terminal\n")
        deadline = time.monotonic() + START_S
        while not service.get_by_text("by-the-terminal").is_visible():  # it looks by itself once a minute
            assert time.monotonic() < deadline, "the terminal made no directory"
            service.locator("#refresh_notebook_list").click()
            service.wait_for_timeout(200)
        assert not self.missing


def _new(service: Page, what: str) -> None:
    service.get_by_text("New", exact=True).click()
    service.get_by_role("menuitem", name=re.compile(what)).click()


@contextmanager
def visit(playwright: Playwright, rules: str, root: Path) -> Iterator[Visit]:
    """A browser for which host names are as ``rules`` map them; it takes certificates of any issuer.

    The site has its files below ``root``.
    """
    browser = playwright.chromium.launch(
        executable_path=executable(), args=[*ARGUMENTS, f"--host-resolver-rules={rules}"]
    )
    context = browser.new_context(viewport={"width": 1280, "height": 800}, ignore_https_errors=True)
    context.set_default_timeout(TIMEOUT_MS)
    found = Visit(context, context.new_page(), root)
    context.on("response", found.saw)
    yield found
    browser.close()


def submit_services(client: httpx.Client) -> None:
    """The seeds' job, applications that use addresses from the root of their host and that do not, and a TensorBoard.

    ``client`` asks a Jupyter server, at its base URL. Returns when all answer.
    """
    headers = {"Content-Type": "application/json"}
    plain = f"exec {sys.executable} {plain_application.__file__} {PORT}"
    board = f"exec {sys.executable} -m tensorboard.main --logdir runs --host 127.0.0.1 --port {PORT}"
    commands = {
        PLAIN: plain,
        RELATIVE: f"{plain} relative",
        BOARD: f"{sys.executable} {event_file.__file__} runs && {board}",
    }
    for body in (JUPYTER.read_bytes(), *(_application(*each) for each in commands.items())):
        client.post("pai/api/v2/jobs", content=body, headers=headers).raise_for_status()
    for service in (SERVICE, *(f"{name}--web" for name in commands)):
        until_answers(client, service)


def submit_classic(client: httpx.Client, place: Path) -> None:
    """The seeds' job with the Notebook 6 of an environment."""
    document = json.loads(JUPYTER.read_bytes())
    role = document["taskRoles"][0]
    document["jobName"], role["gpuNumber"] = CLASSIC, 0
    role["command"] = f"export PATH={place}/bin:$PATH; {role['command']}"
    body, headers = json.dumps(document).encode(), {"Content-Type": "application/json"}
    client.post("pai/api/v2/jobs", content=body, headers=headers).raise_for_status()


def until_answers(client: httpx.Client, service: str) -> None:
    """Wait for a service of a job, as a Jupyter server shows it."""
    deadline = time.monotonic() + START_S
    while not client.get(f"pai/s/{service}/", follow_redirects=True).is_success:
        assert time.monotonic() < deadline, f"{service} does not answer"
        time.sleep(0.1)


def _application(name: str, command: str) -> bytes:
    document = json.loads((ROOT / "examples" / "scm-helloworld.json").read_text(encoding="utf-8"))
    document["jobName"] = name
    role = document["taskRoles"][0]
    role["command"] = command
    role["gpuNumber"] = 0
    role["portList"] = [{"label": "web", "beginAt": 0, "portNumber": 1}]
    return json.dumps(document).encode()
