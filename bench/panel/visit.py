"""A first visit: what the browser fetches of ours, and how far what is shown moves by itself."""

from __future__ import annotations

import gzip
import time
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Page, Response

from bench.figures import Figure
from bench.panel.scene import REST_MS, Scene
from tests.support.lab_site import PANEL

RUNS = 3
FILE = "job-to-submit.yaml"
DOCUMENT = """\
protocolVersion: 2
name: visited
type: job
prerequisites:
  - {name: python, type: dockerimage, uri: "python:3.11"}
taskRoles:
  main:
    instances: 1
    dockerImage: python
    resourcePerInstance: {cpu: 1, memoryMB: 512, gpu: 0}
    commands:
      - "true"
"""

WATCH = """
window.benchShifts = [];
new PerformanceObserver(list => {
  for (const entry of list.getEntries()) {
    const nodes = entry.sources.map(each => each.node?.closest ? each.node : each.node?.parentElement);
    const ours = nodes.filter(node => node?.closest('[class*="jp-pai"]'));
    window.benchShifts.push({ value: entry.value, ours: ours.map(node => node.className) });
  }
}).observe({ type: 'layout-shift', buffered: true });
"""
"""Every shift, whether or not input came before it, and the classes of what moved and is of the panel."""


@dataclass
class Visit:
    """What was seen of one visit."""

    answers: list[Response] = field(default_factory=list)
    """Files of ours that the browser has fetched."""
    at_list: int = 0
    """How many of them had been fetched when the list was shown."""
    shifts: list[dict[str, Any]] = field(default_factory=list)
    """What has moved while list, table and a job's page were opened."""
    later: list[dict[str, Any]] = field(default_factory=list)
    """What has moved while a job came, ran and ended beside them."""

    def size_kb(self, count: int | None = None) -> float:
        """Kilobytes of the first ``count`` files, each by gzip as a web server does it; of all when left out."""
        return sum(len(gzip.compress(each.body(), 6)) for each in self.answers[:count]) / 1000


def measure(scene: Scene) -> list[Figure]:
    """Bytes of a visit, and the worst sum of shifts among some; each by a user whose browser knows nothing yet."""
    job = scene.run_job("visited", "echo seen")
    (scene.site.root / "files" / FILE).write_text(DOCUMENT, encoding="utf-8")
    sizes, shifts, later, others = [], [], [], []
    for _ in range(RUNS):
        with scene.user() as context:
            visit = _visited(scene, context.new_page(), job)
            assert visit.shifts, "the side bar that opens moves what is beside it: the observer was to tell"
            sizes.append((visit.size_kb(), visit.size_kb(visit.at_list), len(visit.answers)))
        shifts.append(_sum(visit.shifts, of_ours=True))
        others.append(_sum(visit.shifts, of_ours=False))
        later.append(_sum(visit.later, of_ours=True))
    whole, at_list, files = max(sizes)
    kind = "a development build" if any((PANEL / "static").glob("*.js.map")) else "built as released"
    told = (
        f"kB by gzip in {files} files for list, table, a job's page and the form; the list alone {at_list:.0f}; {kind}"
    )
    return [
        Figure("bundle", whole, told),
        Figure(
            "layout_shift", max(shifts), f"{max(shifts):.4f}, most of {RUNS}; {max(others):.4f} with JupyterLab's own"
        ),
        Figure("layout_shift_changes", max(later), f"{max(later):.4f}, most of {RUNS}"),
    ]


def _sum(shifts: list[dict[str, Any]], *, of_ours: bool) -> float:
    """The sum of all shifts, or of those in which something of ours moved."""
    return sum(float(each["value"]) for each in shifts if each["ours"] or not of_ours)


def _visited(scene: Scene, page: Page, job: str) -> Visit:
    """Look at the list, the table, a job's page with its log, and a document with its form."""
    visit = Visit()

    def fetched(answer: Response) -> None:
        if "/extensions/jupyter-pai/" in answer.url and answer.url.partition("?")[0].endswith(".js"):
            visit.answers.append(answer)

    page.on("response", fetched)
    page.add_init_script(WATCH)
    scene.load(page)
    before = page.evaluate("() => window.benchShifts.length")
    _execute(page, "pai:show-jobs", {}, "#jp-pai-jobs [role=option]")
    visit.at_list = len(visit.answers)
    _execute(page, "pai:show-job-table", {}, ".jp-pai-JobTable tr[data-job]")
    _execute(page, "pai:open-job", {"job": job}, ".jp-pai-JobPage table")
    visit.shifts = page.evaluate("() => window.benchShifts")[before:]
    scene.run_job(f"beside-{time.time_ns()}", "sleep 2; echo seen")
    page.wait_for_timeout(3 * REST_MS)
    visit.later = page.evaluate("() => window.benchShifts")[before + len(visit.shifts) :]
    _execute(page, "pai:open-job", {"job": job, "tab": "logs"}, ".jp-pai-JobPage .jp-pai-Log")
    _execute(page, "pai:import-document", {"path": FILE}, ".jp-pai-Document .jp-pai-Form-field")
    return visit


def _execute(page: Page, command: str, options: dict[str, str], shown: str) -> None:
    """Execute a command, wait until what it shows is seen, and then until it has come to rest."""
    page.evaluate("([name, options]) => window.jupyterapp.commands.execute(name, options)", [command, options])
    page.locator(shown).first.wait_for()
    page.wait_for_timeout(REST_MS)
