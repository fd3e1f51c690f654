"""Make the pictures of the documentation from the running program: ``python -m tools.pictures [DIRECTORY] [--first]``.

With ``--first`` the first alone: whether the program is still as the pictures need it, its own tests tell.
A JupyterLab and a private backend of their own with two simulated nodes run the jobs that the pictures
show. Needs Chromium and what the tests need.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from tests.support.chromium import ARGUMENTS, OwnNetwork, executable
from tests.support.lab_site import LabSite, running_lab

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
IMAGES = ROOT / "docs" / "images"

SIZE: ViewportSize = {"width": 1280, "height": 800}
TIMEOUT_MS = 60_000
COLOURS = 256
"""A picture with a palette takes a third of the bytes."""
LANGUAGE_PLUGIN = "@jupyterlab/translation-extension:plugin"
LOGS = re.compile("Logs|日志")
TITLE = {"en": "PAI jobs", "zh_CN": "PAI 作业"}

KERNEL_IS_CONNECTED = (
    "() => window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.connectionStatus === 'connected'"
)

TRAINING = (
    "for epoch in $(seq 1 12); do "
    'echo "epoch $epoch of 12  loss 0.$((90 - epoch * 6))  accuracy 0.$((40 + epoch * 4))"; '
    "done; sleep 600"
)
"""Stands for a training: what it prints is made up, who runs it is not."""


def training() -> bytes:
    """The hello world of the examples as a job that goes on."""
    document = json.loads((EXAMPLES / "scm-helloworld.json").read_text(encoding="utf-8"))
    document["jobName"] = "train_resnet"
    document["taskRoles"][0]["command"] = TRAINING
    return json.dumps(document).encode()


def submit(site: LabSite, document: bytes, name: str, state: str, page: Page) -> None:
    """Submit through the Jupyter server and wait until the list shows the job in a state."""
    url = f"{site.url}pai/api/v2/jobs"
    answer = httpx.post(url, content=document, headers={"Authorization": f"token {site.token}"}, timeout=60)
    answer.raise_for_status()
    row = page.get_by_role("option").filter(has_text=name)
    expect(row.locator(f".jp-pai-StateMark[data-state={state}]")).to_be_visible()


@contextmanager
def opened(browser: Browser, site: LabSite, title: str) -> Iterator[Page]:
    """JupyterLab with the list of jobs open and nothing else."""
    context = browser.new_context(viewport=SIZE, permissions=["clipboard-read", "clipboard-write"])
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    page.goto(site.page)
    page.locator("#jupyterlab-splash").wait_for(state="detached")
    page.get_by_role("tab", name=title).click()
    page.get_by_role("region", name=title).wait_for()
    run(page, "application:close-all")
    yield page
    context.close()


def run(page: Page, command: str, arguments: dict[str, object] | None = None) -> None:
    """Start a command of JupyterLab. What it does is waited for in the page: a command may end with a question."""
    page.evaluate(
        "([command, args]) => { void window.jupyterapp.commands.execute(command, args); }",
        [command, arguments or {}],
    )


def keep(page: Page, directory: Path, name: str) -> None:
    """Take a picture, once fonts are loaded and the pointer lies over nothing."""
    page.mouse.move(SIZE["width"] - 5, SIZE["height"] - 5)
    page.evaluate("document.fonts.ready.then(() => true)")
    path = directory / f"{name}.png"
    page.screenshot(path=path, animations="disabled")
    with Image.open(path) as taken:
        taken.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{name}.png", flush=True)


def job_page(page: Page, name: str, words: str) -> None:
    """Open a job from the list and wait for words in its log."""
    page.get_by_role("option").filter(has_text=name).dblclick()
    job = page.locator(".jp-pai-JobPage:visible")
    job.get_by_role("tab", name=LOGS).click()
    expect(job.get_by_role("log")).to_contain_text(words)


def faulty_document(page: Page) -> None:
    """Paste a document with a number written as a word."""
    text = (
        (EXAMPLES / "scm-helloworld.json").read_text(encoding="utf-8").replace('"gpuNumber": 1', '"gpuNumber": "one"')
    )
    page.evaluate("text => navigator.clipboard.writeText(text)", text)
    page.get_by_role("region", name=TITLE["en"]).get_by_role("button", name="Type or paste").first.click()
    shown = page.locator(".jp-pai-Document:visible")
    shown.locator(".cm-content").click()
    page.keyboard.press("Control+V")
    expect(shown.locator(".cm-lint-marker-error")).to_be_visible()
    expect(shown.get_by_role("list", name="Errors")).to_be_visible()


def form(page: Page, site: LabSite) -> None:
    """Open the example of a training in the form, at its first task role."""
    (site.root / "files" / "train.yaml").write_bytes((EXAMPLES / "train.yaml").read_bytes())
    run(page, "pai:import-document", {"path": "train.yaml"})
    shown = page.locator(".jp-pai-Document:visible")
    shown.get_by_role("tab", name=re.compile("^(Task roles|任务角色)")).click()
    expect(shown.locator(".jp-pai-Form-page input").first).to_be_visible()
    expect(shown.locator(".jp-pai-Document-line[data-check=valid]")).to_be_visible()


@contextmanager
def notifications(page: Page, site: LabSite) -> Iterator[None]:
    """A chat and a program that have messages of the user's jobs. Removed afterwards: nothing here reaches them."""
    url, headers = f"{site.url}pai/api/v2/notifications", {"Authorization": f"token {site.token}"}
    wanted: tuple[dict[str, object], ...] = (
        {"channel": "slack", "to": "https://hooks.slack.com/services/T0/B0/x", "news": ["failed", "kept"]},
        {"channel": "webhook", "to": "https://ci.example.org/jobs", "news": ["succeeded", "failed", "waited"]},
    )
    made = [httpx.post(url, json=body, headers=headers, timeout=60).raise_for_status().json() for body in wanted]
    run(page, "pai:show-notifications")
    expect(page.locator(".jp-pai-Notifications:visible tbody tr")).to_have_count(2)
    yield
    for each in made:
        httpx.delete(f"{url}/{each['id']}", headers=headers, timeout=60).raise_for_status()


def files(page: Page, site: LabSite) -> None:
    """The user's directory of the storage with a few files, and one of them open."""
    headers = {"Authorization": f"token {site.token}"}
    for name, text in FILES.items():
        url = f"{site.url}pai/api/v2/fs/ada/code/{name}"
        httpx.put(url, content=text.encode(), headers=headers, timeout=60).raise_for_status()
    run(page, "pai:show-files", {"path": "/ada/code"})
    shown = page.locator(".jp-pai-Files:visible")
    shown.get_by_role("button", name="train.py", exact=True).click()
    expect(shown).to_contain_text("import torch")


def notebook(page: Page) -> None:
    """Run two cells that end in a live view."""
    run(page, "docmanager:open", {"path": "train.ipynb"})
    panel = page.locator(".jp-NotebookPanel:visible")
    # Run before its kernel is connected, a notebook asks which one to use.
    page.wait_for_function(KERNEL_IS_CONNECTED)
    run(page, "notebook:run-all-cells")
    expect(panel.locator(".jp-Cell-outputArea").last).to_contain_text(re.compile("Running.*epoch 12", re.DOTALL))


def write_notebook(path: Path) -> None:
    """The notebook of the picture."""
    import nbformat

    cells = ["%load_ext jupyter_pai", "job = %pai submit train.json --name train_2\njob"]
    path.with_name("train.json").write_bytes(training())
    made = nbformat.v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)"}}
    )
    made.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    nbformat.write(made, path)


FILES = {
    "train.py": "import torch\n\nmodel = torch.nn.Linear(784, 10)\nrate = 0.1\n",
    "requirements.txt": "torch\ntensorboard\n",
    "README.md": "# Training\n\nRun `python train.py`.\n",
}

RATES = """\
protocolVersion: 2
name: rates
type: job
prerequisites: [{name: image, type: dockerimage, uri: python}]
parameters: {lr: 0, seed: 0}
taskRoles:
  main:
    dockerImage: image
    completion: {minFailedInstances: 1}
    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}
    commands: ['echo "lr <% $parameters.lr %>  accuracy 0.8<% $parameters.seed %>"; test <% $parameters.lr %> != 10']
"""


def start_runs(site: LabSite) -> None:
    """A notebook that stays at its third cell, and a sweep of which two jobs fail."""
    import nbformat

    cells = ["lr = 0.1", "import time\nlosses = [1 / (n + 1) for n in range(9)]", "time.sleep(600)", "print(losses)"]
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbformat.write(made, site.root / "files" / "evaluate.ipynb")
    wanted: tuple[tuple[str, dict[str, object]], ...] = (
        ("notebooks", {"path": "evaluate.ipynb", "name": "evaluate"}),
        ("sweeps", {"document": RATES, "axes": ["lr=0.1,1,10", "seed=1..2"], "name": "rates"}),
    )
    for what, body in wanted:
        url, headers = f"{site.url}pai/{what}", {"Authorization": f"token {site.token}"}
        httpx.post(url, json=body, headers=headers, timeout=60).raise_for_status()


def notebook_job(page: Page) -> None:
    """Open the job of a notebook at its cells."""
    run(page, "pai:open-job", {"job": "ada~evaluate", "tab": "notebook"})
    expect(page.locator("tr[data-step=running]")).to_contain_text("time.sleep")


def sweep(page: Page) -> None:
    """Open the sweep when it has ended."""
    run(page, "pai:open-sweep", {"sweep": "rates"})
    rows = page.locator(".jp-pai-JobTable:visible tbody tr")
    expect(rows.filter(has_text="accuracy")).to_have_count(6)


def first(browser: Browser, site: LabSite, directory: Path) -> None:
    """A list with jobs, and a job's page."""
    hello, jupyter = ((EXAMPLES / f"scm-{name}.json").read_bytes() for name in ("helloworld", "jupyter"))
    with opened(browser, site, TITLE["en"]) as page:
        submit(site, hello, "helloworld_16be675e", "SUCCEEDED", page)
        submit(site, jupyter, "jupyter_16be8b71", "RUNNING", page)
        # The last line that a Jupyter server writes at its start.
        job_page(page, "jupyter_16be8b71", "Skipped non-installed server")
        # Lower, so that the log's last lines fill it: those above name this machine's directories.
        page.set_viewport_size({"width": SIZE["width"], "height": 470})
        page.get_by_role("log").evaluate("log => log.scrollTo(0, log.scrollHeight)")
        keep(page, directory, "job")


def in_english(browser: Browser, site: LabSite, directory: Path) -> None:
    """A document with an error, the form, notifications, files, a notebook, the job of a notebook, a sweep."""
    write_notebook(site.root / "files" / "train.ipynb")
    with opened(browser, site, TITLE["en"]) as page:
        faulty_document(page)
        keep(page, directory, "submit")
    with opened(browser, site, TITLE["en"]) as page:
        form(page, site)
        keep(page, directory, "form")
        with notifications(page, site):
            keep(page, directory, "notifications")
        files(page, site)
        keep(page, directory, "files")
    with opened(browser, site, TITLE["en"]) as page:
        notebook(page)
        keep(page, directory, "notebook")
    with opened(browser, site, TITLE["en"]) as page:
        start_runs(site)
        notebook_job(page)
        keep(page, directory, "notebook-cells")
        sweep(page)
        keep(page, directory, "sweep")


def in_chinese(browser: Browser, site: LabSite, directory: Path) -> None:
    """What a user sees first and most, in Chinese."""
    settings = f"{site.url}lab/api/settings/{LANGUAGE_PLUGIN}"
    body = {"raw": json.dumps({"locale": "zh_CN"})}
    answer = httpx.put(settings, json=body, headers={"Authorization": f"token {site.token}"}, timeout=60)
    answer.raise_for_status()
    with opened(browser, site, TITLE["zh_CN"]) as page:
        job_page(page, "train_2", "epoch 12")
        keep(page, directory, "job-zh")
        form(page, site)
        keep(page, directory, "form-zh")
        with notifications(page, site):
            keep(page, directory, "notifications-zh")
        files(page, site)
        keep(page, directory, "files-zh")
        notebook_job(page)
        keep(page, directory, "notebook-cells-zh")
        sweep(page)
        keep(page, directory, "sweep-zh")


def make(directory: Path, *, first_alone: bool) -> None:
    """All pictures, into a directory, or the first."""
    directory.mkdir(parents=True, exist_ok=True)
    with OwnNetwork().entered(), tempfile.TemporaryDirectory(prefix="ada-") as place, sync_playwright() as playwright:
        expect.set_options(timeout=TIMEOUT_MS)
        browser = playwright.chromium.launch(executable_path=executable(), args=ARGUMENTS)
        with running_lab(Path(place), {"PAI_BACKEND_USER": "ada"}) as site:
            first(browser, site, directory)
            if not first_alone:
                in_english(browser, site, directory)
                in_chinese(browser, site, directory)
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tools.pictures")
    parser.add_argument("directory", nargs="?", type=Path, default=IMAGES)
    parser.add_argument("--first", action="store_true")
    asked = parser.parse_args()
    make(asked.directory, first_alone=asked.first)
