"""The first screen of a log of 1 GB, and what memory it takes beside one of 1 MB."""

from __future__ import annotations

import statistics
from pathlib import Path

from playwright.sync_api import Browser, CDPSession, Page

from bench.figures import Figure
from bench.panel.scene import PATIENCE_MS, run_job
from tests.support.lab_site import NODES, running_lab

RUNS = 5
SMALL, LARGE = 1_000_000, 1_000_000_000
LAST = "the last line"
COMMAND = "yes 'epoch 12  loss 0.0712  accuracy 0.9641' | head -c {size}; echo; echo {last}"

CLICK_AND_WAIT = """([last]) => new Promise(resolve => {
  const page = [...document.querySelectorAll('.jp-pai-JobPage')].find(each => each.offsetParent);
  const began = performance.now();
  [...page.querySelectorAll('[role=tab]')].find(each => each.id.endsWith('-logs')).click();
  const look = () => {
    if (page.querySelector('.jp-pai-Log')?.textContent.includes(last)) {
      resolve(performance.now() - began);
    } else {
      requestAnimationFrame(look);
    }
  };
  look();
})"""


def measure(browser: Browser, root: Path) -> list[Figure]:
    """Both figures, in a JupyterLab of their own below ``root``, whose backend keeps as much of a log."""
    config = root / "large-logs.yaml"
    (root / "lab").mkdir(parents=True)
    config.write_text(NODES.replace("engine:", f"engine:\n  log_bytes: {2 * LARGE}"))
    runs: dict[str, list[tuple[float, float]]] = {}
    with running_lab(root / "lab", {"PAI_BACKEND_CONFIG": str(config)}) as site:
        page = browser.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.goto(site.page)
        page.locator("#jupyterlab-splash").wait_for(state="detached")
        devtools = page.context.new_cdp_session(page)
        for name, size in (("small", SMALL), ("large", LARGE)):
            job = run_job(site, name, COMMAND.format(size=size, last=LAST))
            runs[name] = _opened(page, devtools, job)
        page.close()
    first, less_first = (statistics.median(took for took, _ in runs[name]) for name in ("large", "small"))
    heap, less_heap = (statistics.median(used for _, used in runs[name]) for name in ("large", "small"))
    return [
        Figure("log_first_screen", first, f"{less_first:.0f} ms for 1 MB"),
        Figure("log_memory", heap - less_heap, f"{heap:.1f} MB of JavaScript, {less_heap:.1f} MB with a log of 1 MB"),
    ]


def _opened(page: Page, devtools: CDPSession, job: str) -> list[tuple[float, float]]:
    """Milliseconds until the end of the log is seen, and MB of JavaScript then, for each run."""
    runs = []
    for _ in range(RUNS):
        page.evaluate("job => window.jupyterapp.commands.execute('pai:open-job', {job, tab: 'overview'})", job)
        page.locator(".jp-pai-JobPage:visible").get_by_role("table", name="Tasks").wait_for()
        took = page.evaluate(CLICK_AND_WAIT, [LAST])
        devtools.send("HeapProfiler.collectGarbage")
        used = devtools.send("Runtime.getHeapUsage")["usedSize"] / 1e6
        runs.append((took, used))
        page.evaluate("() => window.jupyterapp.commands.execute('application:close-all')")
    return runs
