"""A notebook and a sweep as jobs, from JupyterLab's own pages."""

from __future__ import annotations

import json

import nbformat
from playwright.sync_api import Page, expect

from tests.support.axe import faults
from tests.support.lab_site import LabSite
from tests.ui.test_panel import HELLO, Shoot, paste

KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
JOB = ".jp-pai-JobPage:not(.lm-mod-hidden)"


def test_the_notebook_in_front_runs_as_a_job_and_opens_at_the_cell_that_failed(
    page: Page, lab: LabSite, shoot: Shoot
) -> None:
    go = lab.root / "go"
    cells = [
        nbformat.v4.new_code_cell("lr = 0.1\nname = 'adam'", metadata={"tags": ["parameters"]}),
        nbformat.v4.new_markdown_cell("# Training"),
        nbformat.v4.new_code_cell(f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.05)"),
        nbformat.v4.new_code_cell("print('rate', lr, name)"),
        nbformat.v4.new_code_cell("1 / 0"),
        nbformat.v4.new_code_cell("print('never')"),
    ]
    (lab.root / "files" / "work").mkdir()
    written = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": KERNEL})
    nbformat.write(written, lab.root / "files" / "work" / "train.ipynb")
    page.evaluate(
        "async () => { await window.jupyterapp.commands.execute('docmanager:open', {path: 'work/train.ipynb'}); }"
    )
    page.locator(".jp-NotebookPanel-toolbar").get_by_role("button", name="Run this notebook as a PAI job").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Parameter name")).to_have_value("adam")
    dialog.get_by_label("Parameter lr").fill("0.5")
    shoot(page, "notebook-dialog")
    assert faults(page, ".jp-Dialog") == []
    dialog.get_by_role("button", name="Run", exact=True).click()

    job = page.locator(JOB)
    table = job.get_by_role("table", name="Cells")
    expect(table.locator("tr[data-step='running']")).to_contain_text("import os, time")
    expect(job.get_by_text("2 of 6 cells have run")).to_be_visible()
    shoot(page, "notebook-cells")
    assert faults(page, JOB) == []
    go.touch()
    expect(job.get_by_role("alert")).to_contain_text("Cell 5 failed: ZeroDivisionError: division by zero")
    expect(table.locator("tr[data-step='waiting']")).to_contain_text("Did not run")
    job.get_by_role("button", name="Open the notebook with its outputs").click()
    opened = page.locator(".jp-NotebookPanel:visible")
    failed = opened.locator(".jp-Cell.jp-mod-active")
    expect(failed).to_contain_text("ZeroDivisionError")
    expect(opened.get_by_text("rate 0.5 adam")).to_be_attached()
    [fetched] = (lab.root / "files" / "work").glob("train-*.ipynb")
    nbformat.validate(nbformat.read(fetched, as_version=4))
    shoot(page, "notebook-failed")


def test_a_document_is_submitted_as_a_sweep_which_has_a_page(page: Page, shoot: Shoot) -> None:
    value = json.loads(HELLO.read_text(encoding="utf-8"))
    role = {**value["taskRoles"][0], "gpuNumber": 0, "command": 'echo "loss $LR"; test $LR != 2'}
    role["minFailedTaskCount"] = 1
    value |= {"jobName": "swept", "jobEnvs": {"LR": 0}, "taskRoles": [role]}
    value.pop("gpuType", None)
    paste(page, json.dumps(value))
    page.get_by_role("button", name="Sweep…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Values").fill("LR=1..3\nSEED=7,8")
    dialog.get_by_label("Name").fill("rates")
    shoot(page, "sweep-dialog")
    assert faults(page, ".jp-Dialog") == []
    dialog.get_by_role("button", name="Submit").click()
    shown = page.locator(".jp-pai-JobTable:visible")
    expect(shown.get_by_role("heading", name="Sweep rates")).to_be_visible()
    expect(shown.get_by_role("status")).to_have_text("Succeeded 4 · Failed 2")
    table = shown.get_by_role("table", name="Jobs of the sweep")
    last = table.locator("tr[data-job='rates-006']")
    expect(last.get_by_role("cell")).to_have_text(["3", "8", "Succeeded", "loss 3"])
    table.get_by_role("button", name="LR", exact=True).click()
    table.get_by_role("button", name="LR ▲").click()
    expect(table.locator("tbody tr").first).to_contain_text("loss 3")
    shoot(page, "sweep-page")
    assert faults(page, ".jp-pai-JobTable") == []
    shown.get_by_role("button", name="Clone…").click()
    page.get_by_role("dialog").get_by_label("Name of the new sweep").fill("again")
    page.get_by_role("dialog").get_by_role("button", name="Ok").click()
    expect(page.get_by_role("heading", name="Sweep again")).to_be_visible()
    expect(shown.get_by_role("status")).to_have_text("Succeeded 4 · Failed 2")
    table.get_by_role("button", name="again-001").click()
    page.get_by_role("button", name="All jobs of the sweep again").click()
    expect(page.get_by_role("heading", name="Sweep again")).to_be_visible()
