"""Kernels in jobs in a real browser: from JupyterLab's launcher, of a job made for them, and in Notebook 7."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Locator, Page, expect

from tests.support.lab_site import LabSite
from tests.ui.test_panel import document, in_state, paste, submit
from tests.ui.test_terminals import type_line, written


def command(page: Page, name: str) -> None:
    """Execute a command of JupyterLab."""
    page.evaluate("async name => { await window.jupyterapp.commands.execute(name); }", name)


def cell(page: Page) -> Locator:
    """The cell in front that is typed into."""
    return page.locator(".jp-Notebook:visible .jp-Cell.jp-mod-selected .cm-content")


def run(page: Page, code: str) -> Locator:
    """Run code in the selected cell; returns what it puts out."""
    cell(page).click()
    page.keyboard.press("Control+A")
    page.keyboard.type(code)
    expect(cell(page)).to_have_text(code)
    number = page.locator(".jp-Notebook:visible .jp-CodeCell").count() - 1
    page.keyboard.press("Shift+Enter")
    return page.locator(".jp-Notebook:visible .jp-CodeCell").nth(number).locator(".jp-OutputArea-output").first


def rests(page: Page) -> None:
    """The kernel of the notebook in front has answered, and does nothing."""
    page.wait_for_function(
        "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
    )


def test_a_job_computes_for_notebooks_of_jupyterlab_and_notebook_7(page: Page, lab: LabSite) -> None:
    paste(page, document("train", "exec sleep 600"))
    in_state(submit(page, "train"), "RUNNING")
    command(page, "launcher:create")
    launcher = page.locator(".jp-Launcher:visible")
    launcher.locator(".jp-LauncherCard[title='Python on train']").first.click()
    rests(page)
    expect(run(page, "import os; print(os.environ['PAI_JOB_NAME'], os.getcwd())")).to_contain_text(
        re.compile("train .*/work")
    )
    cell(page).click()
    page.keyboard.type("os.getcw")
    page.keyboard.press("Tab")
    expect(page.locator(".jp-Completer-item", has_text="getcwdb")).to_be_visible()
    page.keyboard.press("Enter")
    expect(cell(page)).to_contain_text("os.getcwd")
    slider = run(page, "import ipywidgets; slider = ipywidgets.IntSlider(value=7); slider")
    expect(slider.locator(".widget-readout")).to_have_text("7")
    run(page, "slider.value = 42; 1")
    expect(slider.locator(".widget-readout")).to_have_text("42")
    page.keyboard.press("Control+S")
    page.get_by_role("dialog").get_by_role("button", name="Rename").click()  # to the name that it has
    expect(page.get_by_role("dialog")).to_have_count(0)

    with page.context.expect_page() as opened:
        page.evaluate("address => window.open(address)", f"{lab.url}notebooks/Untitled.ipynb?token={lab.token}")
    notebook = opened.value
    notebook.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
    rests(notebook)
    notebook.locator(".jp-Notebook .jp-CodeCell .cm-content").last.click()
    expect(run(notebook, "slider.value, os.environ['PAI_JOB_NAME']")).to_contain_text("(42, 'train')")
    notebook.close()


def test_a_job_is_made_for_a_kernel_and_ends_with_it(page: Page, lab: LabSite) -> None:
    command(page, "launcher:create")
    page.locator(".jp-Launcher:visible .jp-LauncherCard").filter(has_text="New GPU kernel").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Image (with ipykernel)").fill("registry.example/jupyter:1")
    dialog.get_by_label("Stop when unused for").fill("8h")
    dialog.get_by_role("button", name="Start").click()
    rests(page)
    out = run(page, "import os; print(os.environ['PAI_JOB_NAME'])")
    expect(out).to_contain_text(re.compile(r"kernel-\w+"))
    name = out.inner_text().strip()
    detail = lab.get(f"jobs/{name}")
    assert isinstance(detail, dict)
    assert detail["idle"]["timeoutS"] == 8 * 3600
    command(page, "kernelmenu:shutdown")
    row = page.locator(".jp-pai-JobList-row").filter(has_text=name)
    expect(row.locator("[data-state=STOPPED]")).to_be_visible()


def test_a_failed_task_that_is_kept_opens_a_terminal(page: Page, lab: LabSite) -> None:
    kept = json.loads(document("kept", "echo the evidence >left; exit 3"))
    paste(page, json.dumps({**kept, "jobEnvs": {"isDebug": True}}))
    job = submit(page, "kept")
    expect(job).to_contain_text("kept for debugging")
    job.get_by_role("button", name="Open a terminal in").first.click()
    page.locator(".jp-pai-Terminal:visible .xterm-screen").wait_for()
    type_line(page, "cat left >seen")
    assert written(lab, "seen") == "the evidence"
