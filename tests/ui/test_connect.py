"""From a running job to every program that can reach it, in a real browser with a real task."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.ui.test_panel import document, in_state, paste, submit


def test_a_running_job_says_how_to_connect_and_which_programs_will_work(
    page: Page, shoot: Callable[[Page, str], None]
) -> None:
    paste(page, document("reached", "sleep 600"))
    job = submit(page, "reached")
    in_state(job, "RUNNING")
    job.get_by_role("button", name="Connect…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("region", name="SSH")).to_contain_text("ssh reached")
    expect(dialog.get_by_role("link", name="VS Code", exact=True)).to_have_attribute(
        "href", re.compile(r"^vscode://vscode-remote/ssh-remote\+reached/.+/work\?windowId=_blank$")
    )
    expect(dialog.get_by_role("link", name="JetBrains Gateway")).to_be_visible()
    dialog.get_by_text("PyCharm", exact=True).click()
    expect(dialog.get_by_text("OpenSSH config and authentication agent")).to_be_visible()
    shoot(page, "connect")
    dialog.get_by_role("button", name="Try which programs will work").click()
    verdicts = dialog.get_by_role("list", name="Which programs will work")
    expect(verdicts.locator("[data-client=ssh][data-works=true]")).to_contain_text("will work")
    expect(verdicts.locator("[data-client]")).to_have_count(8)
    shoot(page, "connect-doctor")
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()
