"""The page of a job in a real browser: its tabs, every run with its log, its document."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Page, expect

from tests.support.axe import faults
from tests.ui.test_panel import HELLO, Shoot, document, in_state, log_of, paste, submit

PAGE = ".jp-pai-JobPage:not(.lm-mod-hidden)"


LINES = """awk 'BEGIN { for (i = 1; i <= 30000; i++) printf "line %06d 输出 \\033[32mgreen\\033[0m\\n", i }'; exit 3"""


def failing(name: str, command: str = "echo it fails; exit 3") -> str:
    """A job that fails and is retried once."""
    value = json.loads(HELLO.read_text(encoding="utf-8"))
    role = {**value["taskRoles"][0], "gpuNumber": 0, "command": command}
    role["minFailedTaskCount"] = 1
    value |= {"jobName": name, "retryCount": 1, "taskRoles": [role]}
    value.pop("gpuType", None)
    return json.dumps(value, indent=2, ensure_ascii=False)


def test_a_job_that_was_retried_shows_every_run_with_its_log_and_its_document(page: Page, shoot: Shoot) -> None:
    paste(page, failing("retried-once"))
    job = submit(page, "retried-once")
    in_state(job, "FAILED")
    overview, metrics, history, logs, document, why = (
        job.get_by_role("tab", name=name) for name in ("Overview", "Metrics", "History", "Logs", "Document", "Why")
    )
    for name in ("Stop", "Connect…"):
        expect(job.get_by_role("button", name=name)).to_have_count(0)
    shoot(page, "job-overview")
    assert faults(page, PAGE) == []

    overview.focus()
    page.keyboard.press("ArrowRight")
    expect(metrics).to_be_focused()
    expect(job.get_by_role("tabpanel")).to_contain_text("Nothing was measured in this time.")
    expect(job.get_by_label("Time that is shown")).to_have_value("3600")
    assert faults(page, PAGE) == []
    page.keyboard.press("ArrowRight")
    expect(history).to_be_focused()
    runs = job.get_by_role("table", name="Runs")
    expect(runs.get_by_role("button")).to_have_count(2)
    expect(runs).to_contain_text("3")
    expect(job.get_by_role("list", name="Timeline")).to_contain_text("Attempt 2 begins")
    shoot(page, "job-history")
    assert faults(page, PAGE) == []
    runs.get_by_role("button", name="Show the log of run 1").click()
    expect(job.get_by_role("log")).to_contain_text("it fails")
    expect(job.get_by_label("Run whose log is shown")).to_have_value("0")
    expect(job.get_by_role("status")).to_contain_text("Complete")
    expect(logs).to_have_attribute("aria-selected", "true")
    shoot(page, "job-logs")
    assert faults(page, PAGE) == []

    document.click()
    expect(job.get_by_role("region", name="Document")).to_contain_text('"jobName": "retried-once"')
    with page.expect_download() as download:
        job.get_by_role("button", name="Download").click()
    assert json.loads(download.value.path().read_text(encoding="utf-8"))["retryCount"] == 1
    job.get_by_role("button", name="As understood").click()
    expect(job.get_by_role("region", name="Document")).to_contain_text('"instances": 1')
    shoot(page, "job-document")
    why.click()
    expect(job.get_by_role("tabpanel")).to_contain_text("Why it ended")
    assert faults(page, PAGE) == []


def test_a_long_log_is_searched_read_backwards_and_saved(page: Page, shoot: Shoot) -> None:
    paste(page, failing("long-output", LINES))
    job = submit(page, "long-output")
    in_state(job, "FAILED")
    log = log_of(job)
    expect(log).to_contain_text("line 030000 输出 green")
    expect(log).not_to_contain_text("line 020000")
    job.get_by_role("searchbox").fill("line 0(10|29)000 输出 green$")
    page.keyboard.press("Enter")
    found = job.get_by_role("list", name="Lines found").get_by_role("button")
    expect(found).to_have_count(2)
    found.first.click()
    expect(log).to_contain_text("line 010000 输出 green")
    expect(log).not_to_contain_text("line 030000")
    expect(job.get_by_text("Not followed")).to_be_visible()
    page.wait_for_function("() => window.getSelection().toString().startsWith('line 010000')")
    shoot(page, "job-log-search")
    assert faults(page, PAGE) == []
    job.get_by_role("button", name="Earlier output").click()
    expect(log).to_contain_text("line 004000")
    job.get_by_role("button", name="Go to the end").click()
    expect(log).to_contain_text("line 030000")
    expect(job.get_by_text("Complete")).to_be_visible()
    expect(log.get_by_text("green").last).to_be_in_viewport()
    job.get_by_label("Times").check()
    expect(log).to_contain_text(re.compile(r"\n\d\d-\d\d \d\d:\d\d:\d\d line 030000 输出 green"))
    expect(log.get_by_text("green").last).to_be_in_viewport()
    shoot(page, "job-log-times")
    assert faults(page, PAGE) == []
    job.get_by_label("Times").uncheck()
    expect(log).not_to_contain_text(re.compile(r"\d\d:\d\d:\d\d line 030000"))
    job.get_by_role("searchbox").fill("(")
    page.keyboard.press("Enter")
    expect(job.get_by_role("alert")).to_contain_text("The regular expression is invalid")
    with page.expect_download() as download:
        job.get_by_role("link", name="Download").click()
    assert download.value.path().read_bytes().count(b"\n") == 30_000


def test_the_table_of_all_jobs_orders_filters_and_deletes_what_is_marked(page: Page, shoot: Shoot) -> None:
    paste(page, failing("in-table-one"))
    in_state(submit(page, "in-table-one"), "FAILED")
    paste(page, document("in-table-two", "true"))  # on a GPU
    in_state(submit(page, "in-table-two"), "SUCCEEDED")
    page.get_by_role("button", name="0 running · 0 waiting").click()
    shown = page.locator(".jp-pai-JobTable:visible")
    shown.get_by_label("Filter jobs by name").fill("in-table")
    table = shown.get_by_role("table", name="Jobs")
    expect(table.locator("tbody tr")).to_have_count(2)
    table.get_by_role("button", name="Name").click()
    expect(table.get_by_role("columnheader", name="Name")).to_have_attribute("aria-sort", "ascending")
    expect(table.locator("tbody tr").first).to_contain_text("in-table-one")
    expect(table.locator("tbody tr").last).to_contain_text("TITANX")
    shown.get_by_label("GPU type").select_option("TITANX")
    expect(table.locator("tbody tr")).to_have_count(1)
    expect(table.locator("tbody tr")).to_contain_text("in-table-two")
    shoot(page, "job-table")
    assert faults(page, ".jp-pai-JobTable") == []
    page.set_viewport_size({"width": 700, "height": 800})
    expect(table.get_by_role("columnheader", name="GPU type")).to_be_hidden()
    expect(table.get_by_role("columnheader", name="Tasks")).to_be_attached()
    page.set_viewport_size({"width": 1280, "height": 800})
    shown.get_by_label("GPU type").select_option("")
    expect(table.locator("tbody tr")).to_have_count(2)
    shown.get_by_label("Mark all rows in sight").check()
    expect(shown.get_by_role("status")).to_contain_text("2 marked")
    shown.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(shown.get_by_text("No job matches.")).to_be_visible()
    expect(page.get_by_role("option").filter(has_text="in-table")).to_have_count(0)
