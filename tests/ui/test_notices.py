"""The page of notifications: a user adds a webhook, has messages sent to it, sees what became of them, removes it."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect

from tests.support.axe import faults
from tests.support.backend_process import backend
from tests.support.lab_site import running_lab
from tests.ui.conftest import TIMEOUT_MS, open_panel

SECRET = "s3cret-of-the-hook"
PATH = "/hook?token=s3cret-of-the-url"
PAGE = ".jp-pai-Notifications"
NARROW: ViewportSize = {"width": 320, "height": 800}
WIDE: ViewportSize = {"width": 1280, "height": 800}


@dataclass
class Hook:
    """A program that takes messages: what came, and with which status it answers."""

    url: str = ""
    status: int = 204
    came: list[tuple[str, bytes]] = field(default_factory=list)

    def is_signed(self) -> bool:
        """Whether the last message has the signature of its body."""
        signature, signed = self.came[-1]
        return hmac.compare_digest(signature, hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest())


@pytest.fixture
def hook() -> Iterator[Hook]:
    found = Hook()

    class Taker(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            signed = f"{self.headers['X-Pai-Timestamp']}\n".encode() + body
            found.came.append((self.headers["X-Pai-Signature"], signed))
            assert self.path == PATH
            self.send_response(found.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Taker)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_port}{PATH}"
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_user_adds_tests_and_removes_a_webhook(
    tmp_path: Path, browser: Browser, hook: Hook, shoot: Callable[[Page, str], None]
) -> None:
    (tmp_path / "lab").mkdir()
    config = tmp_path / "backend.yaml"
    config.write_text(json.dumps({"notifications": {"networks": ["127.0.0.1/32"]}}))
    with backend(tmp_path / "backend", ["--config", str(config)]) as shared:
        told = {"PAI_URL": shared.url, "PAI_TOKEN": shared.token}
        with running_lab(tmp_path / "lab", told) as lab:
            page = browser.new_context(viewport=WIDE).new_page()
            page.set_default_timeout(TIMEOUT_MS)
            expect.set_options(timeout=TIMEOUT_MS)
            open_panel(page, lab)
            page.get_by_role("menuitem", name="PAI").click()
            page.get_by_role("menuitem", name="Show PAI Notifications").click()
            notices = page.locator(f"{PAGE}:visible")
            expect(notices).to_contain_text("No messages are sent yet.")

            refused_by_mail(page, notices, shoot)
            add_webhook(page, notices, hook)
            row = notices.get_by_role("row", name="127.0.0.1")
            expect(row).to_contain_text("none yet")
            assert "s3cret" not in page.content()

            row.get_by_role("button", name="Test").click()
            expect(page.get_by_text("The test message has arrived at 127.0.0.1 (Webhook).")).to_be_visible()
            expect(row).to_contain_text("– arrived")
            assert hook.is_signed()
            hook.status = 410
            row.get_by_role("button", name="Test").click()
            expect(page.get_by_text("The test message did not arrive at 127.0.0.1 (Webhook)")).to_be_visible()
            expect(row).to_contain_text("did not arrive")
            expect(row.get_by_role("cell").nth(4)).to_have_text("1")
            assert len(hook.came) == 2
            page.get_by_role("button", name=re.compile("Dismiss|Hide notification")).first.click()

            has_no_fault_of_access(page, shoot)
            fits_into_a_narrow_window(page, notices)
            row.get_by_role("button", name="Remove").click()
            page.get_by_role("dialog").get_by_role("button", name="Remove").click()
            expect(notices).to_contain_text("No messages are sent yet.")
            assert "s3cret" not in shared.errors.read_text()


def refused_by_mail(page: Page, notices: Locator, shoot: Callable[[Page, str], None]) -> None:
    """The backend has no server for mail: the dialog says so, and stays."""
    notices.get_by_role("button", name="Add…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Address (empty: that of your account)").fill("ann@example.org")
    dialog.get_by_role("button", name="Add").click()
    expect(dialog.get_by_role("alert")).to_contain_text("This backend sends no mail.")
    assert faults(page, ".jp-Dialog") == []
    shoot(page, "notification-refused")


def add_webhook(page: Page, notices: Locator, hook: Hook) -> None:
    """In the dialog that is open."""
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Messages come by").select_option("webhook")
    dialog.get_by_label("URL", exact=True).fill("http://ann@127.0.0.1/")
    secret = dialog.get_by_label("Secret that signs the messages (may be empty)")
    assert secret.get_attribute("type") == "password"
    secret.fill(SECRET)
    dialog.get_by_label("Has started after a long wait").check()
    dialog.get_by_label("A long wait, in minutes").fill("120")
    dialog.get_by_role("button", name="Add").click()
    expect(dialog.get_by_role("alert")).to_contain_text("without a user")
    expect(dialog.get_by_label("URL", exact=True)).to_be_focused()
    dialog.get_by_label("URL", exact=True).fill(hook.url)
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(notices.get_by_role("row", name="127.0.0.1")).to_contain_text("Has started after a wait of 2 h")


def has_no_fault_of_access(page: Page, shoot: Callable[[Page, str], None]) -> None:
    """In both themes, and where there is no room for columns."""
    page.evaluate("window.jupyterapp.commands.execute('application:toggle-left-area')")
    for theme in ("Dark", "Light"):
        page.evaluate(
            "theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", f"JupyterLab {theme}"
        )
        page.locator(f"body[data-jp-theme-light={str(theme == 'Light').lower()}]").wait_for(state="attached")
        for size in (NARROW, WIDE):
            page.set_viewport_size(size)
            assert faults(page, PAGE) == [], (theme, size)
            shoot(page, f"notifications-{size['width']}-{theme.lower()}")


def fits_into_a_narrow_window(page: Page, notices: Locator) -> None:
    """The dialog, with its longest fields."""
    page.set_viewport_size(NARROW)
    notices.get_by_role("button", name="Add…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Messages come by").select_option("webhook")
    box = dialog.locator(".jp-Dialog-content").bounding_box()
    assert box is not None
    assert (box["x"] >= 0, box["x"] + box["width"] <= NARROW["width"]) == (True, True)
    body = dialog.locator(".jp-Dialog-body")
    assert body.evaluate("element => element.scrollWidth - element.clientWidth") <= 1  # rounded
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.set_viewport_size(WIDE)
