"""The form of a job in the output of a cell, in JupyterLab and in Notebook 7, up to the job that it submits."""

from __future__ import annotations

import json
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from tests.support.axe import faults
from tests.support.lab_site import LabSite
from tests.ui.test_outputs import open_notebook, run_cell, save, show, stored
from tests.ui.test_panel import Shoot, in_state

SECRET = "not-a-real-token"
BEGIN = f"""\
import jupyter_pai as pai
form = pai.form(jobName="built-in-a-cell", command="echo built", jobEnvs={{"TOKEN": "{SECRET}"}})
form"""


def form_of(page: Page) -> Locator:
    """The form in the output."""
    return page.locator(".jp-pai-FormOutput")


def answer(page: Page, code: str) -> Locator:
    """Run code in the notebook's kernel, in a cell below; its output."""
    page.evaluate("async () => { await window.jupyterapp.commands.execute('notebook:insert-cell-below'); }")
    page.locator(".jp-CodeCell .cm-content").last.click()
    page.keyboard.type(code)
    page.keyboard.press("Control+Enter")
    return page.locator(".jp-OutputArea-output").last


def test_a_form_in_a_cell_submits_and_python_has_its_document_and_job(page: Page, lab: LabSite, shoot: Shoot) -> None:
    name = open_notebook(page, lab, BEGIN, [])
    run_cell(page)
    form = form_of(page)
    expect(form.get_by_label("Name *")).to_have_value("built-in-a-cell")
    expect(form).not_to_contain_text("Not connected to Python")
    form.get_by_label("Name *").fill("changed-in-a-cell")
    shoot(page, "notebook-form")
    assert faults(page, ".jp-pai-FormOutput") == []
    form.get_by_role("button", name="Show document").click()
    expect(form.locator(".cm-content")).to_contain_text("changed-in-a-cell")
    shoot(page, "notebook-form-document")
    form.get_by_role("button", name="Submit").click()
    expect(form.get_by_text("Submitted:")).to_contain_text("changed-in-a-cell")
    shown = answer(page, "form.value['jobName'], form.job.wait()['state'], form.value['jobEnvs']")
    expect(shown).to_contain_text(f"('changed-in-a-cell', 'SUCCEEDED', {{'TOKEN': '{SECRET}'}})")
    answer(page, "form.fill(jobName='changed-by-python')")
    expect(form.get_by_label("Name *")).to_have_value("changed-by-python")
    save(page)
    held = json.dumps(stored(lab, name))
    assert "changed-by-python" in held
    assert SECRET not in held
    show(page, lab, name)
    expect(form.get_by_label("Name *")).to_have_value("changed-by-python")
    page.evaluate(
        "async () => { await window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart(); }"
    )
    expect(form).to_contain_text("Not connected to Python")
    expect(page.get_by_text("Error displaying widget")).to_have_count(0)


def test_notebook_7_shows_the_form_and_submits_a_template(
    page: Page, lab: LabSite, shoot: Callable[[Page, str], None]
) -> None:
    name = open_notebook(page, lab, "%load_ext jupyter_pai\n%pai form", [])
    page.goto(f"{lab.url}notebooks/{name}?token={lab.token}")
    page.locator(".jp-Notebook").wait_for()
    run_cell(page)
    form = form_of(page)
    form.get_by_role("button", name="Hello GPU").click()
    form.get_by_label("Name *").fill("from-notebook-7-by-a-form")
    shoot(page, "notebook-7-form")
    form.get_by_role("button", name="Submit").click()
    form.get_by_text("Submitted:").get_by_role("button").click()
    in_state(page.locator(".jp-pai-JobPage:visible"), "SUCCEEDED")
