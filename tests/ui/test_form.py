"""The form of job documents beside their text, in a real browser on a real JupyterLab, backend and engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.lab_site import LabSite
from tests.ui.test_panel import ROOT, Shoot, import_file, in_state, submit

TRAIN = ROOT / "examples" / "train.yaml"
AXE = ROOT / "labextension" / "node_modules" / "axe-core" / "axe.min.js"
WIDTHS = (320, 800, 1440)


@pytest.fixture(autouse=True)
def _new_window(page: Page) -> Iterator[None]:
    yield
    page.set_viewport_size({"width": 1280, "height": 800})


def new_job(page: Page, start: str) -> Locator:
    """Open a page for a job and begin with one of what it offers."""
    page.get_by_role("region", name="PAI jobs").get_by_role("button", name="Type or paste").first.click()
    shown = page.locator(".jp-pai-Document:visible")
    shown.get_by_role("button", name=start).click()
    expect(shown.get_by_role("tab", name="Basics")).to_be_visible()
    return shown


def text_of(page: Page) -> str:
    """What the editor in front holds."""
    content = page.locator(".jp-pai-Document:visible .cm-content")
    found: str = content.evaluate("element => element.cmView.view.state.doc.toString()")
    return found


def faults_of(page: Page) -> list[dict[str, Any]]:
    """What axe finds wrong on the page of the document, contrast among it."""
    page.add_script_tag(path=AXE)
    found: list[dict[str, Any]] = page.evaluate(
        """async () => {
          const form = document.querySelector('.jp-pai-Document:not(.lm-mod-hidden)');
          const { violations } = await window.axe.run(
            { include: [form], exclude: [['.cm-editor']] },
            { runOnly: ['wcag2a', 'wcag2aa'] }
          );
          return violations.map(({ id, nodes }) => ({ id, where: nodes.map(node => node.html) }));
        }"""
    )
    return found


def test_a_job_is_built_by_the_form_alone_and_runs(page: Page, lab: LabSite, shoot: Shoot) -> None:
    shown = new_job(page, "A job in the form of SCM")
    shown.get_by_label("Name *").fill("by-the-form")
    shown.get_by_role("tab", name="Task roles").click()
    shown.get_by_label("Command").fill("echo built by a form\nexit 0")
    shown.get_by_role("button", name="Duplicate task_1").click()
    expect(shown.get_by_role("tab", name="task_2")).to_have_attribute("aria-selected", "true")
    shown.get_by_label("Command").fill("echo another role")
    shoot(page, "form-roles")
    expect(shown.get_by_role("status")).to_contain_text("Ready to submit: by-the-form (SCM)")
    document = json.loads(text_of(page))
    assert [role["command"] for role in document["taskRoles"]] == ["echo built by a form\nexit 0", "echo another role"]
    job = submit(page, "by-the-form")
    in_state(job, "SUCCEEDED")
    detail = lab.get("jobs/by-the-form")
    assert isinstance(detail, dict)
    assert [role["name"] for role in detail["taskRoles"]] == ["task_1", "task_2"]


def test_a_change_of_the_form_changes_one_line_of_the_text(page: Page, shoot: Shoot) -> None:
    before = TRAIN.read_text(encoding="utf-8")
    import_file(page, TRAIN)
    shown = page.locator(".jp-pai-Document:visible")
    shown.get_by_role("tab", name="Task roles").click()
    tasks = shown.get_by_label("Tasks", exact=True)
    expect(tasks).to_have_value("2")
    assert text_of(page) == before
    tasks.fill("3")
    shoot(page, "form-twin")
    changed = [
        (old, new) for old, new in zip(before.splitlines(), text_of(page).splitlines(), strict=True) if old != new
    ]
    assert len(changed) == 1
    assert changed[0][0].replace("2", "3") == changed[0][1]
    tasks.fill("2")
    assert text_of(page) == before


def test_what_is_typed_in_the_text_is_in_the_form_and_its_fault_at_the_field(page: Page, shoot: Shoot) -> None:
    shown = new_job(page, "A job of OpenPAI v2")
    shown.get_by_role("tab", name="Task roles").click()
    expect(shown.get_by_label("Tasks", exact=True)).to_have_value("1")
    shown.locator(".cm-line", has_text="instances").click()
    page.keyboard.press("End")
    page.keyboard.press("Backspace")
    page.keyboard.type("0")
    expect(shown.get_by_label("Tasks", exact=True)).to_have_value("0")
    alert = shown.get_by_role("tabpanel").get_by_role("alert")
    expect(alert).to_contain_text("instances must be at least 1")
    expect(shown.locator(".cm-lint-marker-error")).to_have_count(1)
    shoot(page, "form-fault")
    shown.get_by_label("Tasks", exact=True).fill("2")
    expect(alert).to_have_count(0)
    expect(shown.get_by_role("status")).to_contain_text("Ready to submit")


def test_what_never_fits_is_told_before_it_is_submitted(page: Page, lab: LabSite, shoot: Shoot) -> None:
    shown = new_job(page, "A job in the form of SCM")
    trial = shown.locator(".jp-pai-Document-trial")
    expect(trial).to_contain_text("It starts now.")
    shown.get_by_role("tab", name="Task roles").click()
    shown.get_by_label("GPUs a task").fill("64")
    expect(trial).to_contain_text("It never starts on these machines.")
    expect(shown.get_by_role("status")).not_to_contain_text("Ready to submit")
    shoot(page, "form-never")
    trial.get_by_role("button", name="Ask for 1 GPUs a task").click()
    expect(shown.get_by_label("GPUs a task")).to_have_value("1")
    expect(trial).to_contain_text("It starts now.")
    assert lab.get("jobs?state=WAITING,RUNNING") == []


def test_the_keyboard_alone_leads_through_the_pages(page: Page) -> None:
    shown = new_job(page, "A job in the form of SCM")
    shown.get_by_role("tab", name="Basics").focus()
    for name in ("Cluster and GPU", "Environment", "Task roles"):
        page.keyboard.press("ArrowRight")
        expect(shown.get_by_role("tab", name=name)).to_be_focused()
    page.keyboard.press("Tab")
    expect(shown.get_by_role("tab", name="task_1")).to_be_focused()
    page.keyboard.press("Tab")
    expect(shown.get_by_role("button", name="Add a task role")).to_be_focused()
    page.keyboard.press("Enter")
    expect(shown.get_by_role("tab", name="task_2")).to_be_visible()


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_no_screen_of_the_form_has_a_fault_of_access(page: Page, shoot: Shoot, theme: str) -> None:
    page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
    import_file(page, TRAIN)
    shown = page.locator(".jp-pai-Document:visible")
    pages = shown.get_by_role("tablist", name="Pages of the form").get_by_role("tab")
    expect(pages).to_have_count(7)
    for place in range(7):
        pages.nth(place).click()
        assert faults_of(page) == []
    page.evaluate("window.jupyterapp.commands.execute('application:toggle-left-area')")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        shoot(page, f"form-{width}-{theme.rpartition(' ')[2].lower()}")
        wide = shown.evaluate("element => element.scrollWidth - element.clientWidth")
        assert wide <= 1  # rounded
