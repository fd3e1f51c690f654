"""Files of the backend's storage in a real browser: uploaded, looked at, saved, deleted, and chosen in the form."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.support.axe import faults
from tests.support.lab_site import LabSite
from tests.ui.test_form import new_job, text_of
from tests.ui.test_panel import Shoot, in_state, paste, submit

WIDTHS = (320, 800, 1440)
PART = 4 * 1024 * 1024
PICTURE = """<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20" onload="document.title = 'ran'">
<rect width="9" height="9"/></svg>"""
DROP = """(target, [name, text]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([text], name));
  for (const type of ['dragover', 'drop']) {
    target.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: transfer }));
  }
}"""


@pytest.fixture(autouse=True)
def _new_window(page: Page) -> Iterator[None]:
    yield
    page.set_viewport_size({"width": 1280, "height": 800})


@pytest.fixture
def folder(page: Page, lab: LabSite, request: pytest.FixtureRequest) -> str:
    """A folder of the user's for the test, empty."""
    user = lab.get("users/me")
    assert isinstance(user, dict)
    path = f"/{user['username']}/{request.function.__name__}"
    ask(lab, "POST", path, b"{}").raise_for_status()
    return path


def ask(lab: LabSite, method: str, path: str, body: bytes | None = None, **query: str) -> httpx.Response:
    """A request for a path of the storage, without the browser."""
    url = f"{lab.url}pai/api/v2/fs{quote(path)}"
    return httpx.request(method, url, content=body, params={"token": lab.token, **query}, timeout=60)


def open_files(page: Page, path: str) -> Locator:
    """The page of files at a path."""
    page.evaluate("path => window.jupyterapp.commands.execute('pai:show-files', { path })", path)
    files = page.locator(".jp-pai-Files:visible")
    expect(files.get_by_label("Path")).to_have_value(path)
    return files


def upload(page: Page, files: Locator, paths: list[Path]) -> None:
    """Choose files of this computer by the button."""
    with page.expect_file_chooser() as chooser:
        files.get_by_role("button", name="Upload…").click()
    chooser.value.set_files(paths)


def test_files_are_uploaded_looked_at_saved_and_deleted(
    page: Page, lab: LabSite, folder: str, tmp_path: Path, shoot: Shoot
) -> None:
    files = open_files(page, folder)
    expect(files).to_contain_text("The folder is empty.")
    large = os.urandom(2 * PART + 17)
    (tmp_path / "model.bin").write_bytes(large)
    (tmp_path / "page.html").write_text("<script>document.title = 'ran'</script>中文")
    (tmp_path / "plot.svg").write_text(PICTURE)
    upload(page, files, [tmp_path / name for name in ("model.bin", "page.html", "plot.svg")])
    expect(files.get_by_role("status").first).to_have_text("3 of 3 uploaded")
    expect(files.get_by_role("row", name="model.bin")).to_contain_text("8.0 MiB")
    assert ask(lab, "GET", f"{folder}/model.bin").content == large

    files.get_by_role("button", name="page.html", exact=True).click()
    expect(files.get_by_label("Text of page.html")).to_have_text("<script>document.title = 'ran'</script>中文")
    assert faults(page, ".jp-pai-Files") == []
    shoot(page, "files")
    files.get_by_role("button", name="plot.svg", exact=True).click()
    picture = files.get_by_role("img", name="plot.svg")
    assert picture.evaluate("async image => (await image.decode(), image.naturalWidth)") == 40
    assert "ran" not in page.title()
    files.get_by_role("button", name="model.bin", exact=True).click()
    expect(files.get_by_label("Preview")).to_contain_text("A file of this type cannot be shown here.")
    with page.expect_download() as saved:
        files.get_by_role("link", name="Download model.bin").click()
    assert saved.value.suggested_filename == "model.bin"
    assert saved.value.path().read_bytes() == large

    files.get_by_role("button", name="Delete model.bin").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("The file is deleted for good.")
    dialog.get_by_role("button", name="Delete").click()
    expect(files.get_by_role("row", name="model.bin")).to_have_count(0)
    assert ask(lab, "GET", f"{folder}/model.bin").status_code == 404


def test_a_dropped_file_replaces_another_only_after_a_question(page: Page, lab: LabSite, folder: str) -> None:
    files = open_files(page, folder)
    files.get_by_role("button", name="New Folder…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox").fill("a b")
    dialog.get_by_role("button", name="Make").click()
    expect(files.get_by_label("Path")).to_have_value(f"{folder}/a b")
    body = files.locator(".jp-pai-Files-body")
    body.evaluate(DROP, ["note.txt", "first"])
    expect(files.get_by_role("row", name="note.txt")).to_contain_text("5 B")
    body.evaluate(DROP, ["note.txt", "the second"])
    expect(dialog).to_contain_text("The folder has these already: note.txt")
    dialog.get_by_role("button", name="Cancel").click()
    assert ask(lab, "GET", f"{folder}/a b/note.txt").text == "first"
    body.evaluate(DROP, ["note.txt", "the second"])
    dialog.get_by_role("button", name="Replace").click()
    expect(files.get_by_role("row", name="note.txt")).to_contain_text("10 B")
    files.get_by_role("navigation", name="Folders").get_by_role("button").nth(2).click()
    expect(files.get_by_role("button", name="Open the folder a b")).to_be_visible()


def test_an_upload_that_is_cancelled_leaves_no_file(page: Page, lab: LabSite, folder: str, tmp_path: Path) -> None:
    files = open_files(page, folder)
    (tmp_path / "large").write_bytes(bytes(3 * PART))
    held: list[Route] = []
    page.route("**/large?offset=4194304*", lambda route: held.append(route))
    upload(page, files, [tmp_path / "large"])
    expect(files.get_by_label("Uploads")).to_contain_text("4.0 MiB of 12.0 MiB")
    with page.expect_request(lambda request: "offset=0" in request.url and not request.post_data_buffer):
        files.get_by_role("button", name="Cancel the upload of large").click()
    expect(files.get_by_label("Uploads")).to_contain_text("Cancelled")
    assert held
    answer = ask(lab, "HEAD", f"{folder}/large")
    assert answer.status_code == 404
    assert ask(lab, "GET", folder).json()["data"] == []


def test_ten_thousand_names_are_listed(page: Page, lab: LabSite, folder: str, shoot: Shoot) -> None:
    place = lab.root / "backend" / "fs" / folder[1:]
    for number in range(10_050):
        (place / f"part-{number:05}").touch()
    (place / "zz").mkdir()
    files = open_files(page, folder)
    expect(files).to_contain_text("10051 names")
    rows = files.locator("tbody tr:not([aria-hidden])")
    expect(rows.first).to_contain_text("zz")
    assert rows.count() < 100
    files.get_by_role("columnheader", name="Name").get_by_role("button").click()
    expect(rows.nth(1)).to_contain_text("part-10049")
    shoot(page, "files-many")


def test_a_job_leads_to_its_outputs(page: Page, lab: LabSite) -> None:
    role = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0}
    command = "echo 0.98 > $PAI_OUTPUT_DIR/accuracy"
    document = {"jobName": "with-outputs", "image": "none", "taskRoles": [{**role, "command": command}]}
    paste(page, json.dumps(document))
    job = submit(page, "with-outputs")
    in_state(job, "SUCCEEDED")
    job.get_by_role("button", name="Outputs").click()
    files = page.locator(".jp-pai-Files:visible")
    files.get_by_role("button", name="accuracy", exact=True).click()
    expect(files.get_by_label("Text of accuracy")).to_have_text("0.98")


def test_a_place_that_is_not_there_is_said_in_place_of_a_table(page: Page, lab: LabSite, folder: str) -> None:
    files = open_files(page, folder)
    files.get_by_label("Path").fill("/nothing/here")
    files.get_by_label("Path").press("Enter")
    expect(files.get_by_role("alert")).to_be_visible()
    expect(files.get_by_role("table")).to_have_count(0)


def test_a_path_of_the_form_is_chosen_in_the_storage(page: Page, lab: LabSite, folder: str, shoot: Shoot) -> None:
    ask(lab, "PUT", f"{folder}/code/train.py", b"pass").raise_for_status()
    shown = new_job(page, "Your own program")
    shown.get_by_role("tab", name="Environment").click()
    field = shown.get_by_label("Code directory", exact=True)
    shown.get_by_role("button", name="Storage: Code directory").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name=f"Open the folder {folder.rpartition('/')[2]}").click()
    dialog.get_by_role("button", name="Open the folder code").click()
    expect(dialog.get_by_role("button", name="train.py")).to_be_visible()
    assert faults(page, ".jp-pai-FilesDialog") == []
    shoot(page, "files-dialog")
    dialog.get_by_role("button", name="Choose").click()
    expect(field).to_have_value(f"$PAI_DEFAULT_FS_URI{folder}/code")
    assert f'"$PAI_DEFAULT_FS_URI{folder}/code"' in text_of(page)
    shown.get_by_role("button", name="Storage: Code directory").click()
    dialog.get_by_label("Path").fill(f"$PAI_DEFAULT_FS_URI{folder}/code/train.py")
    dialog.get_by_label("Path").press("Enter")
    expect(dialog.get_by_role("button", name="train.py")).to_have_attribute("aria-pressed", "true")
    dialog.get_by_role("button", name="Choose").click()
    expect(field).to_have_value(f"$PAI_DEFAULT_FS_URI{folder}/code/train.py")


def test_the_page_works_at_every_width_and_in_the_dark(page: Page, lab: LabSite, folder: str, shoot: Shoot) -> None:
    ask(lab, "PUT", f"{folder}/a-rather-long-name-of-a-file-of-a-run.log", b"line\n" * 100).raise_for_status()
    ask(lab, "POST", f"{folder}/code", b"{}").raise_for_status()
    files = open_files(page, folder)
    files.get_by_role("button", name="a-rather-long-name-of-a-file-of-a-run.log", exact=True).click()
    expect(files.get_by_label("Text of")).to_contain_text("line")
    page.evaluate("window.jupyterapp.commands.execute('application:toggle-left-area')")
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
        expect(page.locator("body")).to_have_attribute("data-jp-theme-light", str("Light" in theme).lower())
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            expect(files.get_by_role("button", name="Open the folder code")).to_be_visible()
            expect(files.get_by_label("Text of")).to_be_visible()
            assert faults(page, ".jp-pai-Files") == [], (theme, width)
            shoot(page, f"files-{width}-{theme.rpartition(' ')[2].lower()}")
