"""The page of a job for which there is no room, in a real browser."""

from __future__ import annotations

import json

from playwright.sync_api import Page, expect

from tests.ui.test_panel import HELLO, in_state, paste, submit


def gpu_document(name: str, tasks: int) -> str:
    """A job of sleeping tasks with one GPU each."""
    value = json.loads(HELLO.read_text(encoding="utf-8"))
    value["jobName"] = name
    value["taskRoles"] = [{**value["taskRoles"][0], "taskNumber": tasks, "gpuNumber": 1, "command": "sleep 600"}]
    value.pop("gpuType", None)
    return json.dumps(value, indent=2, ensure_ascii=False)


def test_a_job_that_waits_says_why_and_what_would_help_until_it_starts(page: Page) -> None:
    paste(page, gpu_document("has-one", 1))
    job = submit(page, "has-one")
    in_state(job, "RUNNING")
    paste(page, gpu_document("waiter", 2))
    submit(page, "waiter")
    job.get_by_role("tab", name="Why").click()
    note = job.locator(".jp-pai-Note[data-kind=why]")
    expect(note).to_contain_text("With 1 task instead of 2 it would start now.")
    expect(note).to_contain_text("Number 1 of 1 in the queue of default.")
    note.get_by_text("Jobs that hold what it needs").click()
    expect(note.get_by_role("listitem")).to_contain_text("~has-one: 1 GPU, priority 10")

    page.locator("[role=tab][data-id$='~has-one']").click()
    expect(job.get_by_role("heading", name="has-one")).to_be_visible()
    job.get_by_role("button", name="Stop").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    page.locator("[role=tab][data-id$='~waiter']").click()
    expect(job.get_by_role("heading", name="waiter")).to_be_visible()
    in_state(job, "RUNNING")
    expect(note).to_have_count(0)
