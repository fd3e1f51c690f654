"""Terminals in tasks, in a real browser: typed into, resized, reloaded, ended."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, WebSocket, expect

from tests.support.lab_site import LabSite
from tests.ui.test_panel import TIMEOUT_MS, document, in_state, paste, submit

Shoot = Callable[[Page, str], None]
BEFORE_THE_PAGE_SAYS = (24, 80)


def written(lab: LabSite, name: str) -> str:
    """What the shell has written into a file of its working directory, once it is there."""
    deadline = time.monotonic() + TIMEOUT_MS / 1000
    while True:
        for path in (lab.root / "backend" / "engine" / "tasks").glob(f"*/work/{name}"):
            if (text := path.read_text()).endswith("\n"):
                return text.strip()
        assert time.monotonic() < deadline, f"{name} was not written"
        time.sleep(0.05)


def size_other_than(page: Page, lab: LabSite, known: tuple[int, int]) -> tuple[int, int]:
    """The rows and columns of the terminal, once they are not those."""
    name = f"size-beside-{known[0]}-{known[1]}"
    type_line(page, f"until test \"$(stty size)\" != '{known[0]} {known[1]}'; do sleep 0.1; done; stty size >{name}")
    rows, columns = map(int, written(lab, name).split())
    return rows, columns


def type_line(page: Page, line: str) -> None:
    """Type into the terminal in front."""
    page.locator(".jp-pai-Terminal:visible .xterm-screen").click()
    page.keyboard.type(line)
    page.keyboard.press("Enter")


class Heard:
    """What the WebSockets of terminals have brought."""

    def __init__(self, page: Page) -> None:
        self.messages: list[list[object]] = []
        page.on("websocket", self._listen)

    def _listen(self, socket: WebSocket) -> None:
        if "/pai/terminals/" in socket.url:
            socket.on("framereceived", lambda frame: self.messages.append(json.loads(frame)))

    @property
    def text(self) -> str:
        """The output."""
        return "".join(str(message[1]) for message in self.messages if message[0] == "stdout")

    def until(self, page: Page, text: str) -> None:
        """Return when the output has the text."""
        deadline = time.monotonic() + TIMEOUT_MS / 1000
        while text not in self.text:
            assert time.monotonic() < deadline, f"{text!r} is not in {self.text[-500:]!r}"
            page.wait_for_timeout(50)


def test_a_terminal_is_typed_into_resized_reloaded_and_ended(page: Page, lab: LabSite, shoot: Shoot) -> None:
    heard = Heard(page)
    paste(page, document("terminals", "echo started; sleep 600"))
    job = submit(page, "with-terminals")
    in_state(job, "RUNNING")
    job.get_by_role("button", name="Open a terminal in").first.click()
    heard.until(page, "work")
    type_line(page, "export KEPT=here; echo $$ >pid; seq 3 | sed s/^/line-/")
    pid = written(lab, "pid")
    heard.until(page, "line-3")
    shoot(page, "terminal-1280")
    wide = size_other_than(page, lab, BEFORE_THE_PAGE_SAYS)

    page.set_viewport_size({"width": 900, "height": 600})
    assert size_other_than(page, lab, wide) < wide

    heard.messages.clear()
    page.goto(page.url.replace("?reset", "?"))
    page.locator("#jupyterlab-splash").wait_for(state="detached")
    heard.until(page, "line-3")
    assert "\x1bc" in heard.text
    type_line(page, "echo $KEPT-$$ >again")
    assert written(lab, "again") == f"here-{pid}"
    for width in (320, 800, 1440):
        page.set_viewport_size({"width": width, "height": 700})
        page.wait_for_timeout(500)
        shoot(page, f"terminal-{width}")
    page.evaluate("window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Dark'})")
    page.wait_for_timeout(1000)
    shoot(page, "terminal-dark")
    page.evaluate("window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Light'})")

    type_line(page, "exit 4")
    heard.until(page, "exit")
    expect_ended(page, heard, 4)
    shoot(page, "terminal-ended")


def expect_ended(page: Page, heard: Heard, code: int) -> None:
    """The server has said how the shell ended."""
    deadline = time.monotonic() + TIMEOUT_MS / 1000
    while ["disconnect", 1] not in heard.messages:
        assert time.monotonic() < deadline, heard.messages[-3:]
        page.wait_for_timeout(50)
    (told,) = [message[2] for message in heard.messages if message[:2] == ["pai", "ended"]]
    assert isinstance(told, dict)
    assert told["code"] == code


def test_a_second_terminal_is_another_shell_and_the_stop_button_ends_it(page: Page, lab: LabSite) -> None:
    heard = Heard(page)
    paste(page, document("two", "echo started; sleep 600"))
    job = submit(page, "with-two-terminals")
    in_state(job, "RUNNING")
    job.get_by_role("button", name="Open a terminal in").first.click()
    heard.until(page, "work")
    type_line(page, "echo $$ >first")
    first = written(lab, "first")
    page.get_by_title("New terminal in the same task").click()
    expect(page.locator(".jp-pai-Terminal-label:visible")).to_contain_text(" 2")
    page.locator(".jp-pai-Terminal:visible .xterm-screen").wait_for()
    type_line(page, "echo $$ >second")
    assert written(lab, "second") != first
    heard.messages.clear()
    page.locator(".jp-Toolbar:visible").get_by_title("End the shell and what runs in it").click()
    deadline = time.monotonic() + TIMEOUT_MS / 1000
    while ["disconnect", 1] not in heard.messages:
        assert time.monotonic() < deadline, heard.messages[-3:]
        page.wait_for_timeout(50)
    assert not Path(f"/proc/{written(lab, 'second')}").exists()
    assert Path(f"/proc/{first}").exists()
