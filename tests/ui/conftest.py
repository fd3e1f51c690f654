"""A real JupyterLab for most of these tests, a browser for those of a module; each test gets a page without a past.

The Lab is shared because starting it is most of the cost; tests use job names of their own, and their jobs are
stopped after each, so that the next finds both GPUs free. Their window has the cache of a user who was here before: to
fetch and compile JupyterLab again takes as long as most of these tests.

`PAI_SCREENSHOTS=DIR` keeps pictures of the screens, as the documentation shows them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, ViewportSize, sync_playwright

from tests.support.chromium import ARGUMENTS, OwnNetwork, executable
from tests.support.lab_site import PANEL, LabSite, running_lab

HERE = f"{Path(__file__).parent}{os.sep}"
# The first answer may have to wait for the private backend to start on a busy machine.
TIMEOUT_MS = 60_000
SCREEN: ViewportSize = {"width": 1280, "height": 800}
PAST = "cookies,local_storage,indexeddb,cache_storage,service_workers"
"""What a window must not know of earlier tests, in the words of Chromium's Storage domain."""


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep those that share the Lab in one worker and the others in another, and give them time for a browser."""
    for item in items:
        if str(item.path).startswith(HERE):
            assert isinstance(item, pytest.Function)
            item.add_marker(pytest.mark.ui)
            item.add_marker(pytest.mark.xdist_group("ui" if "lab" in item.fixturenames else "ui-further-labs"))
            item.add_marker(pytest.mark.timeout(300))


@pytest.fixture(scope="session")
def network() -> OwnNetwork:
    """Where JupyterLab and the browser are. Other tests of the worker are not in it: each of these enters it."""
    return OwnNetwork()


@pytest.fixture(autouse=True)
def _within(network: OwnNetwork) -> Iterator[None]:
    with network.entered():
        yield


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory, network: OwnNetwork) -> Iterator[LabSite]:
    """JupyterLab with the panel of this checkout and two simulated nodes of one GPU."""
    if not (PANEL / "package.json").is_file():
        pytest.fail(f"{PANEL} is not built; run `make install`, or `jlpm build` in labextension/")
    with ExitStack() as stack:
        with network.entered():
            site = stack.enter_context(running_lab(tmp_path_factory.mktemp("lab")))
        yield site
        with network.entered():
            stack.close()


@pytest.fixture(scope="module")
def playwright(network: OwnNetwork) -> Iterator[Playwright]:
    """No wider: while playwright's sync face is open, no test of asyncio can run here."""
    with ExitStack() as stack:
        with network.entered():
            opened = stack.enter_context(sync_playwright())
        yield opened


@pytest.fixture(scope="module")
def browser(playwright: Playwright, network: OwnNetwork) -> Iterator[Browser]:
    """The system's Chromium, for windows of users who were never here."""
    with network.entered():
        opened = playwright.chromium.launch(executable_path=executable(), args=ARGUMENTS)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Chromium keeps what it has fetched and compiled."""
    return tmp_path_factory.mktemp("profile")


@pytest.fixture(scope="module")
def window(playwright: Playwright, network: OwnNetwork, profile: Path) -> Iterator[BrowserContext]:
    """Chromium with its cache."""
    with network.entered():
        opened = playwright.chromium.launch_persistent_context(
            profile,
            executable_path=executable(),
            args=ARGUMENTS,
            viewport=SCREEN,
            permissions=["clipboard-read", "clipboard-write"],
        )
    opened.set_default_timeout(TIMEOUT_MS)
    yield opened
    opened.close()


@pytest.fixture
def page(window: BrowserContext, lab: LabSite) -> Iterator[Page]:
    """JupyterLab with the list of jobs open. Of earlier tests the window knows the programs, and nothing else."""
    page = window.new_page()
    open_panel(page, lab)
    yield page
    blank, *opened = window.pages
    for each in opened:
        each.close()
    kept = {"origin": lab.url.rstrip("/"), "storageTypes": PAST}
    window.new_cdp_session(blank).send("Storage.clearDataForOrigin", kept)
    lab.end_jobs()


@pytest.fixture
def shoot() -> Callable[[Page, str], None]:
    """Keep a picture of the page when a place for pictures is given."""
    place = os.environ.get("PAI_SCREENSHOTS")

    def keep(page: Page, name: str) -> None:
        if place:
            page.screenshot(path=Path(place) / f"{name}.png", animations="disabled")

    return keep


def open_panel(page: Page, lab: LabSite, title: str = "PAI jobs") -> None:
    """Load JupyterLab, wait until it is there, show the panel."""
    page.goto(lab.page)
    page.locator("#jupyterlab-splash").wait_for(state="detached")
    page.get_by_role("tab", name=title).click()
    page.get_by_role("region", name=title).wait_for()
