"""OpenPAI v2 documents and kept tasks in the panel, in a real browser on a real JupyterLab, backend and engine."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Page, expect

from tests.support.lab_site import LabSite
from tests.ui.test_panel import HELLO, ROOT, Shoot, import_file, in_state, log_of, paste, submit

TRAIN = ROOT / "examples" / "train.yaml"


def test_an_imported_v2_document_runs_and_its_log_covers_the_secret(page: Page, shoot: Shoot) -> None:
    import_file(page, TRAIN)
    shown = page.locator(".jp-pai-Document:visible")
    expect(shown.get_by_role("status")).to_contain_text("Ready to submit: train (OpenPAI v2)")
    shoot(page, "panel-v2-import")

    job = submit(page, "train-in-the-panel")
    in_state(job, "SUCCEEDED")
    log = log_of(job)
    expect(log).to_contain_text("epoch 3 with token ****************")
    expect(log).not_to_contain_text("not-a-real-token")
    shoot(page, "panel-v2-job")


def test_faults_of_yaml_are_marked_at_their_lines(page: Page, shoot: Shoot) -> None:
    text = TRAIN.read_text(encoding="utf-8")
    text = text.replace("instances: 2", "instances: two").replace("$parameters.epochs", "$parameters.epoch")
    shown = paste(page, text)
    faults = shown.get_by_role("list", name="Errors")
    expect(faults).to_be_visible()
    lines = {number for number, line in enumerate(text.splitlines(), 1) if "two" in line or "epoch %>" in line}
    assert len(lines) == 2
    expect(shown.locator(".cm-lint-marker-error")).to_have_count(2)
    for line in lines:
        expect(faults.get_by_role("button", name=re.compile(rf"Line {line}\b"))).to_be_visible()
    shoot(page, "panel-v2-errors")
    expect(shown.get_by_role("button", name="Submit")).to_be_disabled()


def test_a_kept_task_says_until_when_and_is_let_go_by_its_button(page: Page, lab: LabSite, shoot: Shoot) -> None:
    value = json.loads(HELLO.read_text(encoding="utf-8"))
    value["jobEnvs"] = {"isDebug": True}
    value["taskRoles"][0] |= {"command": "echo as far as it came; exit 3", "minFailedTaskCount": 1}
    paste(page, json.dumps(value, indent=2))
    job = submit(page, "kept-in-the-panel")
    expect(job.get_by_role("table", name="Tasks")).to_contain_text("kept until")
    shoot(page, "panel-kept")
    job.get_by_role("button", name="Release").first.click()
    expect(page.get_by_role("option", name="kept-in-the-panel")).to_contain_text("Failed")
    detail = lab.get("jobs/kept-in-the-panel")
    assert isinstance(detail, dict)
    assert detail["state"] == "FAILED"
