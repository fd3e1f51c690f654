"""The form of job documents beside their text, in a real browser on a real JupyterLab, backend and engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.axe import faults
from tests.support.backend_process import until
from tests.support.lab_site import LabSite
from tests.ui.test_panel import ROOT, Shoot, import_file, in_state, submit

TRAIN = ROOT / "examples" / "train.yaml"
SECRET = "not-a-real-token"
WIDTHS = (320, 800, 1440)


@pytest.fixture(autouse=True)
def _new_window(page: Page) -> Iterator[None]:
    yield
    page.set_viewport_size({"width": 1280, "height": 800})


def new_job(page: Page, start: str, shoot: Callable[[], None] = lambda: None) -> Locator:
    """Open a page for a job and begin with one of what it offers."""
    page.get_by_role("region", name="PAI jobs").get_by_role("button", name="Type or paste").first.click()
    shown = page.locator(".jp-pai-Document:visible")
    expect(shown.get_by_role("button", name=start).first).to_be_visible()
    shoot()
    shown.get_by_role("button", name=start).first.click()
    expect(shown.get_by_role("tab", name="Basics")).to_be_visible()
    return shown


def text_of(page: Page) -> str:
    """What the editor in front holds."""
    content = page.locator(".jp-pai-Document:visible .cm-content")
    found: str = content.evaluate("element => element.cmView.view.state.doc.toString()")
    return found


def drafts_of(lab: LabSite) -> list[str]:
    """The texts of all drafts at the backend."""
    url, parameters = f"{lab.url}pai/api/v2/drafts", {"token": lab.token}
    names = [each["name"] for each in httpx.get(url, params=parameters, timeout=60).json()["data"]]
    return [httpx.get(f"{url}/{name}", params=parameters, timeout=60).text for name in names]


def faults_of(page: Page) -> list[dict[str, Any]]:
    """What axe finds wrong on the page of the document in front."""
    return faults(page, ".jp-pai-Document:not(.lm-mod-hidden)")


def test_a_job_is_built_by_the_form_alone_and_runs(page: Page, lab: LabSite, shoot: Shoot) -> None:
    shown = new_job(page, "Your own program")
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


def test_a_folder_of_jupyter_goes_along_as_it_is_at_each_submission(page: Page, lab: LabSite, shoot: Shoot) -> None:
    folder = lab.root / "files" / "sent"
    folder.mkdir()
    (folder / "say.py").write_text("print('as it was chosen')\n")
    shown = new_job(page, "Your own program")
    shown.get_by_role("tab", name="Environment").click()
    shown.get_by_role("button", name="From Jupyter: Code directory").click()
    dialog = page.get_by_role("dialog")
    dialog.locator(".jp-DirListing-item", has_text="sent").click()
    dialog.get_by_role("button", name="Select").click()
    expect(
        shown.get_by_text("Folder sent of Jupyter is sent in the task. It is sent again when you submit.")
    ).to_be_visible()
    shoot(page, "form-folder")
    assert faults_of(page) == []
    shown.get_by_role("tab", name="Task roles").click()
    shown.get_by_label("Command").fill("python sent/say.py")
    (folder / "say.py").write_text("print('as it was submitted')\n")
    in_state(submit(page, "hello"), "SUCCEEDED")
    job = page.locator(".jp-pai-JobPage:visible")
    job.get_by_role("tab", name="Logs").click()
    expect(job.get_by_role("log")).to_contain_text("as it was submitted")


def test_a_template_of_the_gallery_runs_and_a_changed_one_is_kept(page: Page, lab: LabSite, shoot: Shoot) -> None:
    shown = new_job(page, "Hello GPU", shoot=lambda: shoot(page, "form-gallery"))
    expect(shown.get_by_role("status")).to_contain_text("Ready to submit: hello-gpu (SCM)")
    shown.get_by_label("Name *").fill("hello-mine")
    shown.get_by_role("button", name="Save as template").click()
    page.get_by_role("dialog").get_by_role("textbox").fill("mine")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved as template: mine")).to_be_visible()
    in_state(submit(page, "hello-mine"), "SUCCEEDED")
    again = new_job(page, "mine")
    expect(again.get_by_role("status")).to_contain_text("Ready to submit: hello-mine (SCM)")
    assert lab.get("templates/mine") == json.loads(text_of(page))


def test_a_change_of_the_form_changes_one_line_of_the_text(page: Page, shoot: Shoot) -> None:
    before = TRAIN.read_text(encoding="utf-8")
    import_file(page, TRAIN)
    shown = page.locator(".jp-pai-Document:visible")
    shown.get_by_role("tab", name="Task roles").click()
    tasks = shown.get_by_label("Tasks", exact=True)
    expect(tasks).to_have_value("2")
    assert text_of(page) == before
    tasks.fill("3")
    expect(shown.locator(".cm-activeLine")).to_contain_text("instances: 3")
    shoot(page, "form-twin")
    changed = [
        (old, new) for old, new in zip(before.splitlines(), text_of(page).splitlines(), strict=True) if old != new
    ]
    assert len(changed) == 1
    assert changed[0][0].replace("2", "3") == changed[0][1]
    tasks.fill("2")
    assert text_of(page) == before


def test_what_is_typed_in_the_text_is_in_the_form_and_its_fault_at_the_field(page: Page, shoot: Shoot) -> None:
    shown = new_job(page, "Your own program in OpenPAI v2")
    shown.get_by_role("tab", name="Task roles").click()
    expect(shown.get_by_label("Tasks", exact=True)).to_have_value("1")
    shown.locator(".cm-line", has_text="instances").click()
    page.keyboard.press("End")
    page.keyboard.press("Backspace")
    page.keyboard.type("0")
    expect(shown.get_by_label("Tasks", exact=True)).to_have_value("0")
    expect(shown.locator(".jp-pai-Form-field[data-pointed]")).to_contain_text("Tasks")
    shown.locator(".cm-line", has_text="uri").click()
    expect(shown.get_by_role("tab", name="Environment")).to_have_attribute("aria-selected", "true")
    shown.locator(".cm-line", has_text="instances").click()
    expect(shown.get_by_role("tab", name="Task roles")).to_have_attribute("aria-selected", "true")
    alert = shown.get_by_role("tabpanel").get_by_role("alert")
    expect(alert).to_contain_text("instances must be at least 1")
    expect(shown.locator(".cm-lint-marker-error")).to_have_count(1)
    shoot(page, "form-fault")
    shown.get_by_label("Tasks", exact=True).fill("2")
    expect(alert).to_have_count(0)
    expect(shown.get_by_role("status")).to_contain_text("Ready to submit")


def test_what_never_fits_is_told_before_it_is_submitted(page: Page, lab: LabSite, shoot: Shoot) -> None:
    shown = new_job(page, "Your own program")
    trial = shown.locator(".jp-pai-Document-trial")
    expect(trial).to_contain_text("It starts now.")
    shown.get_by_role("tab", name="Task roles").click()
    shown.get_by_role("spinbutton", name="GPUs a task").fill("64")
    expect(trial).to_contain_text("It never starts on these machines.")
    expect(shown.get_by_role("status")).not_to_contain_text("Ready to submit")
    shoot(page, "form-never")
    trial.get_by_role("button", name="Ask for 1 GPU a task").click()
    expect(shown.get_by_role("spinbutton", name="GPUs a task")).to_have_value("1")
    expect(trial).to_contain_text("It starts now.")
    assert lab.get("jobs?state=WAITING,RUNNING") == []


def test_the_keyboard_alone_leads_through_the_pages(page: Page) -> None:
    shown = new_job(page, "Your own program")
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


def test_drafts_outlive_a_reload_secrets_stay_out_of_sight_and_gbk_is_converted_after_a_yes(
    page: Page, lab: LabSite, shoot: Shoot, tmp_path: Path
) -> None:
    file = tmp_path / "draft.yaml"
    file.write_bytes(TRAIN.read_text(encoding="utf-8").replace("python:3.11", "中文镜像:1").encode("gbk"))
    import_file(page, file)
    page.get_by_role("dialog").get_by_role("button", name="Convert").click()
    shown = page.locator(".jp-pai-Document:visible")
    expect(shown.get_by_role("status")).to_contain_text("Ready to submit: train")
    assert "中文镜像:1" in text_of(page)
    expect(shown.locator(".jp-pai-Document-secret")).to_have_count(1)
    pages = shown.get_by_role("tablist", name="Pages of the form").get_by_role("tab")
    for place in range(pages.count()):
        pages.nth(place).click()
        assert SECRET not in page.evaluate("document.body.innerHTML")
        values = page.evaluate("[...document.querySelectorAll('input, textarea')].map(each => each.value)")
        assert not any(SECRET in value for value in values)
        if shown.locator("input[type=password]").count():
            shoot(page, "form-secrets")
    pages.first.click()
    shown.get_by_label("Name *").fill("half-done")
    until(lambda: "half-done" in "".join(drafts_of(lab)), 60)
    (kept,) = [draft for draft in drafts_of(lab) if "half-done" in draft]
    assert SECRET not in kept
    page.goto(f"{lab.url}lab/workspaces/test?token={lab.token}")
    page.locator("#jupyterlab-splash").wait_for(state="detached")
    expect(shown.get_by_label("Name *")).to_have_value("half-done")
    expect(shown.get_by_role("status")).to_contain_text("1 error")
    expect(shown.get_by_label("Errors")).to_contain_text("the value of tracker is masked")
    page.get_by_role("tab", name="draft.yaml").locator(".lm-TabBar-tabCloseIcon").click()
    shoot(page, "form-close")
    page.get_by_role("dialog").get_by_role("button", name="Keep as draft").click()
    expect(page.get_by_role("tab", name="draft.yaml")).to_have_count(0)
    page.get_by_role("region", name="PAI jobs").get_by_role("button", name="Type or paste").first.click()
    shown.get_by_role("button", name="Delete draft.yaml").click()
    expect(shown.get_by_role("button", name="Delete draft.yaml")).to_have_count(0)
