"""The cluster's page in a real browser: what is used and who waits, live; moved jobs start in their new order."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.axe import faults
from tests.support.lab_site import LabSite
from tests.ui.test_panel import in_state, paste, submit
from tests.ui.test_why_it_waits import gpu_document

Shoot = Callable[[Page, str], None]

THEME = "window.jupyterapp.commands.execute('apputils:change-theme', {{theme: 'JupyterLab {}'}})"


def cluster(page: Page) -> Locator:
    """Open the page of the cluster from the sidebar."""
    page.get_by_role("region", name="PAI jobs").get_by_role("button", name="Show who uses the cluster").click()
    shown = page.locator(".jp-pai-Cluster:visible")
    expect(shown.get_by_role("heading", name="Cluster")).to_be_visible()
    return shown


def numbers(shown: Locator) -> Locator:
    """Owned, guaranteed, opportunistic, reserved, broken, free."""
    return shown.get_by_role("table", name="Cells of default").locator("tbody td")


def submit_gpus(page: Page, name: str, tasks: int) -> Locator:
    paste(page, gpu_document(name, tasks))
    return submit(page, name)


def test_use_changes_when_a_job_starts_and_a_moved_job_starts_first(page: Page, lab: LabSite, shoot: Shoot) -> None:
    shown = cluster(page)
    expect(numbers(shown)).to_have_text(["2", "0", "0", "0", "0", "2"])
    expect(shown).to_contain_text("Nothing runs here.")
    expect(shown.get_by_role("table", name="Nodes").locator("tbody tr")).to_have_count(2)

    in_state(submit_gpus(page, "holder", 2), "RUNNING")
    for name in ("second", "third", "fourth"):
        in_state(submit_gpus(page, name, 2), "WAITING")
    shown = cluster(page)
    expect(numbers(shown)).to_have_text(["2", "2", "0", "0", "0", "0"])
    expect(shown.get_by_role("list", name="Running in default")).to_contain_text("2 tasks · 2 GPUs")
    rows = shown.get_by_role("table", name="Waiting in default").locator("tbody tr")
    expect(rows.locator("th button")).to_have_text(["second", "third", "fourth"])
    expect(shown.get_by_role("button", name="Move second up")).to_have_attribute("aria-disabled", "true")
    shoot(page, "cluster")

    up = shown.get_by_role("button", name="Move fourth up")
    up.focus()
    page.keyboard.press("Enter")
    expect(rows.locator("th button")).to_have_text(["second", "fourth", "third"])
    expect(page.get_by_text("fourth is number 2 of 3 now.")).to_be_visible()
    expect(up).to_be_focused()
    shown.get_by_role("button", name="Move fourth to the front").click()
    expect(rows.locator("th button")).to_have_text(["fourth", "second", "third"])

    lab.stop("holder")
    expect(shown.get_by_role("list", name="Running in default")).to_contain_text("fourth")
    expect(rows.locator("th button")).to_have_text(["second", "third"])
    states = {row["name"]: row["state"] for row in _rows(lab)}
    assert (states["fourth"], states["second"], states["third"]) == ("RUNNING", "WAITING", "WAITING")

    shown.get_by_role("list", name="Running in default").get_by_role("button", name="fourth").click()
    expect(page.locator(".jp-pai-JobPage:visible").get_by_role("heading", name="fourth")).to_be_visible()


def test_the_note_of_a_waiting_job_leads_to_its_queue(page: Page, shoot: Shoot) -> None:
    in_state(submit_gpus(page, "in-use", 2), "RUNNING")
    job = submit_gpus(page, "in-line", 1)
    in_state(job, "WAITING")
    job.get_by_role("button", name="Why?").click()
    job.get_by_role("button", name="Show the queue").click()
    shown = page.locator(".jp-pai-Cluster:visible")
    row = shown.get_by_role("table", name="Waiting in default").locator("tbody tr")
    expect(row).to_contain_text("1 of 1")
    page.evaluate(THEME.format("Dark"))
    page.locator("body[data-jp-theme-light=false]").wait_for(state="attached")
    shoot(page, "cluster-dark")
    page.evaluate(THEME.format("Light"))
    page.locator("body[data-jp-theme-light=true]").wait_for(state="attached")


def test_in_a_narrow_window_rows_become_lists_of_facts(page: Page, shoot: Shoot) -> None:
    in_state(submit_gpus(page, "wide", 2), "RUNNING")
    in_state(submit_gpus(page, "slim", 1), "WAITING")
    shown = cluster(page)
    queue = shown.get_by_role("table", name="Waiting in default")
    expect(queue.get_by_role("columnheader", name="Place")).to_be_visible()
    page.set_viewport_size({"width": 620, "height": 800})
    expect(queue.get_by_role("columnheader", name="Place")).to_be_hidden()
    expect(queue.get_by_role("row").filter(has_text="slim").get_by_role("cell").first).to_be_visible()
    shoot(page, "cluster-narrow")
    for part in (shown, *shown.locator("section").all()):
        assert part.evaluate("part => part.scrollWidth <= part.clientWidth")
    expect(shown.get_by_role("button", name="Move slim down")).to_be_visible()


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_gpus_are_reserved_and_given_back_in_dialogs(page: Page, shoot: Shoot, theme: str) -> None:
    page.evaluate(THEME.format(theme))
    shown = cluster(page)
    shown.get_by_role("button", name="Reserve GPUs of default").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("GPUs", exact=True).fill("3")
    dialog.get_by_label("Reserved for").fill("course")
    dialog.get_by_role("button", name="Reserve", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("2")
    assert faults(page, ".jp-Dialog") == []
    shoot(page, f"cluster-reserve-{theme}")
    dialog.get_by_label("GPUs", exact=True).fill("2")
    dialog.get_by_role("button", name="Reserve", exact=True).click()
    row = shown.get_by_role("table", name="Reservations of default").locator("tbody tr")
    expect(row).to_contain_text("course")
    page.set_viewport_size({"width": 620, "height": 800})
    assert faults(page, ".jp-pai-Cluster") == []
    shoot(page, f"cluster-reserved-{theme}")
    assert shown.evaluate("part => part.scrollWidth <= part.clientWidth")
    shown.get_by_role("button", name="Remove the reservation course").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove", exact=True).click()
    expect(shown.get_by_text("Nothing is reserved.")).to_be_visible()
    page.evaluate(THEME.format("Light"))
    page.locator("body[data-jp-theme-light=true]").wait_for(state="attached")


def _rows(lab: LabSite) -> list[dict[str, str]]:
    rows = lab.get("jobs")
    assert isinstance(rows, list)
    return rows
