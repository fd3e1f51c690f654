"""A job in the output of a notebook: followed by its cell, and shown again where there is no kernel."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from jupyter_pai.widgets.output import MIME
from tests.support.lab_site import LabSite
from tests.ui.test_panel import document, in_state, paste, submit

Shoot = Callable[[Page, str], None]


def open_notebook(page: Page, lab: LabSite, source: str, outputs: list[Any], *, trusted: bool = False) -> str:
    """A notebook of one cell, opened; its name."""
    cell = {"id": "one", "cell_type": "code", "execution_count": None, "metadata": {"trusted": trusted}}
    notebook = {
        "cells": [{**cell, "source": source, "outputs": outputs}],
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    name = f"{uuid.uuid4().hex}.ipynb"
    (lab.root / "files" / name).write_text(json.dumps(notebook))
    show(page, lab, name)
    return name


def show(page: Page, lab: LabSite, name: str) -> None:
    """JupyterLab with this notebook alone, loaded afresh."""
    page.goto(f"{lab.url}lab/tree/{name}?reset&token={lab.token}")
    page.locator("#jupyterlab-splash").wait_for(state="detached")


def save(page: Page) -> None:
    """Save the notebook, which has changed."""
    changed = page.locator(".lm-DockPanel-tabBar .jp-mod-dirty")
    expect(changed).to_have_count(1)
    page.get_by_role("button", name="Save and create checkpoint").click()
    expect(changed).to_have_count(0)


def stored(lab: LabSite, name: str) -> dict[str, Any]:
    """The data of the one output in the notebook's file."""
    found: dict[str, Any] = json.loads((lab.root / "files" / name).read_text())["cells"][0]["outputs"][0]["data"]
    return found


KERNEL_IS_CONNECTED = (
    "() => window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.connectionStatus === 'connected'"
)


def run_cell(page: Page) -> None:
    """Run the cell that is there, once a kernel is."""
    page.wait_for_function(KERNEL_IS_CONNECTED)
    page.locator(".jp-CodeCell .cm-content").first.click()
    page.keyboard.press("Control+Enter")


def shown(page: Page) -> Locator:
    """The job in the output."""
    return page.locator(".jp-OutputArea-output.jp-pai-Output")


def test_a_cell_shows_the_job_that_it_submits_and_the_page_shows_it_again(
    page: Page, lab: LabSite, shoot: Shoot
) -> None:
    text = document("in-a-cell", "echo ready; sleep 600")
    name = open_notebook(page, lab, f"%load_ext jupyter_pai\ndocument = {text!r}\n%pai submit $document", [])
    run_cell(page)
    in_state(shown(page), "RUNNING")
    expect(shown(page).get_by_role("log")).to_contain_text("ready")
    shoot(page, "output-of-a-cell")
    save(page)
    show(page, lab, name)
    in_state(shown(page), "RUNNING")
    shown(page).get_by_role("button", name="Stop").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    in_state(shown(page), "STOPPED")
    save(page)
    data = stored(lab, name)
    assert data[MIME]["ended"] is True
    assert "STOPPED" in "".join(data["text/html"])
    assert "STOPPED" in "".join(data["text/plain"])


@pytest.mark.parametrize("trusted", [False, True])
def test_a_job_that_nothing_here_knows_is_shown_as_the_notebook_holds_it(
    page: Page, lab: LabSite, trusted: bool, shoot: Shoot
) -> None:
    held = {"uid": uuid.uuid4().hex, "name": "gone", "state": "RUNNING", "seen": "2026-11-01T10:00:00+00:00"}
    data = {
        MIME: {**held, "ended": False},
        "application/vnd.jupyter.widget-view+json": {"model_id": "gone", "version_major": 2, "version_minor": 0},
        "text/html": "<b>gone</b> RUNNING",
        "text/plain": "gone: RUNNING",
    }
    output = {"output_type": "display_data", "data": data, "metadata": {}}
    open_notebook(page, lab, "%pai status gone", [output], trusted=trusted)
    expect(shown(page)).to_contain_text("This is the job as it was at")
    expect(shown(page)).to_contain_text("gone RUNNING")
    expect(page.get_by_text("Error displaying widget")).to_have_count(0)
    shoot(page, f"output-unknown-{trusted}")


def test_details_of_a_job_open_from_its_output(page: Page, lab: LabSite) -> None:
    paste(page, document("to-open", "sleep 600"))
    in_state(submit(page, "to-open"), "RUNNING")
    rows = lab.get("jobs?keyword=to-open")
    assert isinstance(rows, list)
    held = {"uid": rows[0]["uid"], "name": "to-open", "state": "WAITING", "seen": "2026-11-01T10:00:00+00:00"}
    output = {"output_type": "display_data", "data": {MIME: {**held, "ended": False}}, "metadata": {}}
    open_notebook(page, lab, "", [output])
    in_state(shown(page), "RUNNING")
    shown(page).get_by_role("button", name="Show Job Details").click()
    in_state(page.locator(".jp-pai-JobPage"), "RUNNING")
