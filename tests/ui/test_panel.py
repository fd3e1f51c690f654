"""The panel in a real browser, on a real JupyterLab, backend and engine."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.support.axe import faults
from tests.support.lab_site import LabSite

ROOT = Path(__file__).resolve().parents[2]
JUPYTER = ROOT / "examples" / "scm-jupyter.json"
HELLO = ROOT / "examples" / "scm-helloworld.json"
TIMEOUT_MS = 60_000

# A hundred lines with a colour in each, over five seconds.
TRAINING = r"""awk 'BEGIN { for (i = 1; i <= 100; i++) {
  printf "epoch %3d  \033[32mloss %.4f\033[0m\n", i, 2.3 / i; fflush(); system("sleep 0.05") } }'"""

Shoot = Callable[[Page, str], None]

expect.set_options(timeout=TIMEOUT_MS)


def document(name: str, command: str) -> str:
    """The hello world of the examples under another name, with another command."""
    value = json.loads(HELLO.read_text(encoding="utf-8"))
    value["jobName"] = name
    value["taskRoles"][0]["command"] = command
    return json.dumps(value, indent=2, ensure_ascii=False)


def import_file(page: Page, file: Path) -> None:
    """Choose a file in the browser's dialog, as the button in the toolbar opens it."""
    with page.expect_file_chooser() as chooser:
        page.get_by_role("region", name="PAI jobs").get_by_role("button", name="Import a job file").first.click()
    chooser.value.set_files(file)


def paste(page: Page, text: str) -> Locator:
    """Open an empty submission page and paste into its editor; returns the page."""
    page.evaluate("text => navigator.clipboard.writeText(text)", text)
    page.get_by_role("region", name="PAI jobs").get_by_role("button", name="Type or paste").first.click()
    shown = page.locator(".jp-pai-Document:visible")
    shown.locator(".cm-content").click()
    page.keyboard.press("Control+V")
    return shown


def submit(page: Page, name: str) -> Locator:
    """Submit the document in front under a name; returns the page of the job."""
    shown = page.locator(".jp-pai-Document:visible")
    shown.get_by_label("Job name").fill(name)
    shown.get_by_role("button", name="Submit").click()
    job = page.locator(".jp-pai-JobPage:visible")
    expect(job.get_by_role("heading", name=name)).to_be_visible()
    return job


def log_of(job: Locator) -> Locator:
    """The log on the page of a job."""
    job.get_by_role("tab", name="Logs").click()
    return job.get_by_role("log")


def in_state(place: Locator, state: str) -> None:
    expect(place.locator(f".jp-pai-StateMark[data-state={state}]").first).to_be_visible()


def test_imported_jupyter_job_runs_and_its_service_opens(page: Page, shoot: Shoot) -> None:
    import_file(page, JUPYTER)
    shown = page.locator(".jp-pai-Document:visible")
    expect(shown.get_by_role("status")).to_contain_text("Ready to submit: jupyter_16be8b71 (SCM)")
    expect(shown.locator("[data-code=open-jupyter]")).to_be_visible()
    shoot(page, "panel-import")

    job = submit(page, "")
    in_state(job, "RUNNING")
    expect(job.locator("[data-code=open-jupyter]")).to_contain_text("listens on the network")
    expect(job.get_by_role("table", name="Tasks")).to_contain_text(re.compile("carol|dan"))
    expect(log_of(job)).to_contain_text("Serving notebooks")
    job.get_by_role("tab", name="Overview").click()

    with page.expect_popup() as popup:
        job.get_by_role("button", name="Open jupyter").click()
    service = popup.value
    service.wait_for_url(re.compile(r"^http://jupyter-16be8b71--jupyter\.localhost:\d+/tree"))
    expect(service).to_have_title("Home")
    expect(service.get_by_role("tab", name="Files")).to_be_visible()
    assert service.evaluate("window.opener") is None
    shoot(service, "panel-service")


def test_pasted_document_shows_each_error_at_its_line(page: Page, shoot: Shoot) -> None:
    text = document("broken", "true").replace('"image"', '"imgae"').replace('"taskNumber": 1', '"taskNumber": "one"')
    shown = paste(page, text)
    faults = shown.get_by_role("list", name="Errors")
    expect(faults).to_be_visible()
    # Line 1 is the object that the misspelt image is missing from.
    lines = {number for number, line in enumerate(text.splitlines(), 1) if "imgae" in line or '"one"' in line} | {1}
    assert len(lines) == 3
    expect(shown.locator(".cm-lint-marker-error")).to_have_count(3)
    for line in lines:
        expect(faults.get_by_role("button", name=re.compile(rf"Line {line}\b"))).to_be_visible()
    shoot(page, "panel-errors")

    expect(shown.get_by_role("button", name="Submit")).to_be_disabled()
    faults.get_by_role("button", name=re.compile("taskNumber")).click()
    expect(shown.locator(".cm-activeLine")).to_contain_text('"taskNumber"')


def test_running_job_stops_after_a_question_and_is_deleted_after_another(page: Page, lab: LabSite) -> None:
    paste(page, document("sleeper", "echo started; sleep 600"))
    job = submit(page, "stopped-by-hand")
    in_state(job, "RUNNING")
    job.get_by_role("button", name="Stop").click()
    page.get_by_role("dialog").get_by_role("button", name="Keep it running").click()
    in_state(job, "RUNNING")
    job.get_by_role("button", name="Stop").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    in_state(job, "STOPPED")
    detail = lab.get("jobs/stopped-by-hand")
    assert isinstance(detail, dict)
    assert detail["state"] == "STOPPED"
    row = page.locator(".jp-pai-JobList-row").filter(has_text="stopped-by-hand")
    expect(row).to_be_visible()
    job.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)
    expect(job).to_have_count(0)


def test_log_shows_colours_and_what_comes_while_it_is_watched(page: Page, shoot: Shoot) -> None:
    paste(page, document("cifar10-training", TRAINING))
    job = submit(page, "cifar10-training")
    log = log_of(job)
    expect(log.locator(".ansi-green-fg").first).to_have_text("loss 2.3000")
    expect(log).to_contain_text("epoch  20")
    in_state(job, "RUNNING")
    shoot(page, "panel-job")
    expect(log).to_contain_text("epoch 100")
    in_state(job, "SUCCEEDED")
    assert log.evaluate("log => log.scrollHeight - log.scrollTop - log.clientHeight") < 30


def test_ssh_command_is_copied(page: Page) -> None:
    paste(page, document("with-ssh", "sleep 600"))
    job = submit(page, "with-ssh")
    in_state(job, "RUNNING")
    job.get_by_role("button", name="Copy the address of SSH").click()
    expect(page.get_by_text("Copied: ssh")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert re.fullmatch(r"ssh -p \d+ with-ssh@127\.0\.0\.1", copied)


def test_keyboard_walks_the_list_and_opens_a_job(page: Page) -> None:
    for name in ("first-by-key", "second-by-key"):
        paste(page, document(name, "true"))
        in_state(submit(page, name), "SUCCEEDED")
    region = page.get_by_role("region", name="PAI jobs")
    region.get_by_role("searchbox").fill("by-key")
    jobs = region.get_by_role("listbox", name="Jobs")
    expect(jobs.get_by_role("option")).to_have_count(2)
    jobs.focus()
    page.keyboard.press("Home")
    expect(jobs.get_by_role("option", selected=True)).to_contain_text("second-by-key")
    page.keyboard.press("ArrowDown")
    expect(jobs.get_by_role("option", selected=True)).to_contain_text("first-by-key")
    page.keyboard.press("Enter")
    expect(page.locator(".jp-pai-JobPage:visible").get_by_role("heading")).to_have_text("first-by-key")


def test_taken_name_is_said_and_another_one_helps(page: Page) -> None:
    text = document("taken-name", "true")
    paste(page, text)
    in_state(submit(page, "taken-name"), "SUCCEEDED")
    shown = paste(page, text)
    expect(shown.get_by_role("status")).to_contain_text("Ready to submit")
    shown.get_by_role("button", name="Submit").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(shown.get_by_role("alert")).to_contain_text("taken-name")
    in_state(submit(page, "another-name"), "SUCCEEDED")


def test_a_job_takes_the_place_of_the_one_that_has_its_name(page: Page) -> None:
    text = document("taken-over", "sleep 600")
    paste(page, text)
    in_state(submit(page, "taken-over"), "RUNNING")
    shown = paste(page, text)
    expect(shown.get_by_role("status")).to_contain_text("Ready to submit")
    shown.get_by_role("button", name="Submit").click()
    page.get_by_role("dialog").get_by_role("button", name="Replace").click()
    job = page.locator(".jp-pai-JobPage:visible")
    expect(job.get_by_role("heading", name="taken-over")).to_be_visible()
    in_state(job, "RUNNING")
    earlier = page.get_by_role("option").filter(has_text="taken-over-")
    expect(earlier.locator(".jp-pai-StateMark[data-state=STOPPED]")).to_be_visible()


def test_file_of_the_jupyter_server_is_opened_from_the_file_browser(page: Page, lab: LabSite) -> None:
    (lab.root / "files" / "job.json").write_text(document("from-the-server", "true"), encoding="utf-8")
    page.get_by_role("tab", name=re.compile("File Browser")).click()
    page.locator(".jp-DirListing-item", has_text="job.json").click(button="right")
    page.get_by_role("menuitem", name="Submit as PAI Job").click()
    shown = page.locator(".jp-pai-Document:visible")
    expect(shown.get_by_role("status")).to_contain_text("Ready to submit: from-the-server")


def test_a_program_of_the_file_browser_runs_with_what_is_beside_it(page: Page, lab: LabSite, shoot: Shoot) -> None:
    folder = lab.root / "files" / "net"
    folder.mkdir()
    (folder / "layers.py").write_text("DEPTH = 50\n")
    (folder / "fit.py").write_text("import sys\nimport layers\nprint('depth', layers.DEPTH, sys.argv[1:])\n")
    page.get_by_role("tab", name=re.compile("File Browser")).click()
    page.get_by_role("button", name="Refresh the file browser").click()
    page.locator(".jp-DirListing-item", has_text="net").dblclick()
    page.locator(".jp-DirListing-item", has_text="layers.py").wait_for()
    page.locator(".jp-DirListing-item", has_text="fit.py").click(button="right")
    page.get_by_role("menuitem", name="Run as PAI Job…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Send the files beside the program")).to_be_checked()
    dialog.get_by_label("Arguments").fill("--lr '")
    dialog.get_by_role("button", name="Run", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("a quotation mark that is not closed")
    dialog.get_by_label("Arguments").fill("--lr '0.1 0.2'")
    assert faults(page, ".jp-Dialog") == []
    shoot(page, "program-dialog")
    dialog.get_by_role("button", name="Run", exact=True).click()
    job = page.locator(".jp-pai-JobPage:visible")
    expect(job.get_by_role("log")).to_contain_text("depth 50 ['--lr', '0.1 0.2']")
    # The list of jobs is not shown now, and all that follows it goes on.
    expect(page.get_by_role("button", name="0 running · 0 waiting")).to_be_visible()


def test_job_without_a_free_gpu_says_why_it_waits_and_runs_when_one_is_free(page: Page, lab: LabSite) -> None:
    for name in ("holds-one", "holds-another"):
        paste(page, document(name, "sleep 600"))
        in_state(submit(page, name), "RUNNING")
    paste(page, document("waits", "sleep 600"))
    job = submit(page, "waits")
    in_state(job, "WAITING")
    job.get_by_role("button", name="Why?").click()
    expect(job.locator("[data-kind=why]")).to_contain_text("1 GPU of type TITANX")
    lab.stop("holds-one")
    in_state(job, "RUNNING")
    expect(job.locator("[data-kind=why]")).to_have_count(0)


def test_notebook_7_shows_the_panel_and_submits_below_the_notebook(page: Page, lab: LabSite) -> None:
    # With a kernel named, or a question for one would lie over the page.
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    notebook = {"cells": [], "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (lab.root / "files" / "empty.ipynb").write_text(json.dumps(notebook))
    page.goto(f"{lab.url}notebooks/empty.ipynb?token={lab.token}")
    page.locator(".jp-Notebook").wait_for()
    page.evaluate("window.jupyterapp.restored.then(() => window.jupyterapp.commands.execute('pai:show-jobs'))")
    paste(page, document("from-notebook-7", "true"))
    in_state(submit(page, "from-notebook-7"), "SUCCEEDED")


def test_dark_theme_reaches_every_part(page: Page, shoot: Shoot) -> None:
    page.evaluate("window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Dark'})")
    page.locator("body[data-jp-theme-light=false]").wait_for(state="attached")
    paste(page, document("dark", "echo dark; sleep 600"))
    job = submit(page, "in-the-dark")
    in_state(job, "RUNNING")
    expect(log_of(job)).to_contain_text("dark")
    shoot(page, "panel-dark")
    background = job.locator(".jp-pai-Detail").evaluate("part => getComputedStyle(part).backgroundColor")
    assert max(int(value) for value in re.findall(r"\d+", background)[:3]) < 100
    page.evaluate("window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Light'})")


def test_a_running_job_says_how_to_connect_and_which_programs_will_work(page: Page, shoot: Shoot) -> None:
    paste(page, document("reached", "sleep 600"))
    job = submit(page, "reached")
    in_state(job, "RUNNING")
    job.get_by_role("button", name="Connect…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("region", name="SSH")).to_contain_text("ssh reached")
    expect(dialog.get_by_role("link", name="VS Code", exact=True)).to_have_attribute(
        "href", re.compile(r"^vscode://vscode-remote/ssh-remote\+reached/.+/work\?windowId=_blank$")
    )
    expect(dialog.get_by_role("link", name="JetBrains Gateway")).to_be_visible()
    dialog.get_by_text("PyCharm", exact=True).click()
    expect(dialog.get_by_text("OpenSSH config and authentication agent")).to_be_visible()
    shoot(page, "connect")
    key = dialog.get_by_role("region", name="Private key of this job")
    for form, name, beginning in (
        ("openssh", "reached", "-----BEGIN OPENSSH PRIVATE KEY-----"),
        ("pem", "reached.pem", "-----BEGIN RSA PRIVATE KEY-----"),
        ("ppk", "reached.ppk", "PuTTY-User-Key-File-3: ssh-ed25519"),
    ):
        key.get_by_label("Format of the key").select_option(form)
        with page.expect_download() as download:
            key.get_by_role("button", name="Download").click()
        assert download.value.suggested_filename == name
        assert download.value.path().read_text(encoding="ascii").startswith(beginning)
    key.scroll_into_view_if_needed()
    shoot(page, "connect-key")
    assert faults(page, ".jp-pai-Connect") == []
    dialog.get_by_role("button", name="Check which programs will work").click()
    verdicts = dialog.get_by_role("list", name="Which programs will work")
    expect(verdicts.locator("[data-client=ssh][data-works=true]")).to_contain_text("will work")
    expect(verdicts.locator("[data-client]")).to_have_count(8)
    verdicts.scroll_into_view_if_needed()
    shoot(page, "connect-doctor")
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()
