"""What the panel says of a backend that hangs: connections stay open, and nothing comes."""

from __future__ import annotations

import json
import os
import signal

from playwright.sync_api import Page, expect

from tests.support.lab_site import LabSite
from tests.ui.test_panel import document, in_state, log_of, paste, submit


def test_nothing_says_live_that_is_not_and_all_goes_on_by_itself(page: Page, lab: LabSite) -> None:
    paste(page, document("long-silence", "echo ready; sleep 600"))
    job = submit(page, "long-silence")
    in_state(job, "RUNNING")
    log_of(job)
    bar = page.locator(".jp-pai-Detail-logbar")
    listed = page.locator(".jp-pai-JobList-live")
    for place in (bar, listed):
        expect(place).to_contain_text("Live")
    backend = json.loads((lab.root / "backend" / "runtime" / "api.json").read_text())["pid"]
    os.kill(backend, signal.SIGSTOP)
    try:
        for place in (bar, listed):
            expect(place).to_contain_text("Reconnecting…")
    finally:
        os.kill(backend, signal.SIGCONT)
    for place in (bar, listed):
        expect(place).to_contain_text("Live")
