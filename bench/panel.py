"""What users of the panel wait for, in a real Chromium: the first screen of a log of 1 GB, and what memory it takes."""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
from pathlib import Path

import httpx
from playwright.sync_api import CDPSession, Page, expect, sync_playwright

from bench.figures import Figure
from bench.scene import document
from tests.support.backend_process import until
from tests.support.chromium import ARGUMENTS, executable
from tests.support.lab_site import NODES, LabSite, running_lab

RUNS = 5
SMALL, LARGE = 1_000_000, 1_000_000_000
LAST = "the last line"
PATIENCE_MS = 300_000

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


async def measure() -> list[Figure]:
    """All figures."""
    return await asyncio.to_thread(_measured)


def _measured() -> list[Figure]:
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE_MS)
        root = Path(place)
        config = root / "large-logs.yaml"
        (root / "lab").mkdir()
        config.write_text(NODES.replace("engine:", f"engine:\n  log_bytes: {2 * LARGE}"))
        browser = playwright.chromium.launch(executable_path=executable(), args=ARGUMENTS)
        with running_lab(root / "lab", {"PAI_BACKEND_CONFIG": str(config)}) as site:
            page = browser.new_page()
            page.set_default_timeout(PATIENCE_MS)
            page.goto(site.page)
            page.locator("#jupyterlab-splash").wait_for(state="detached")
            devtools = page.context.new_cdp_session(page)
            small = _opened(page, devtools, _written(site, "small", SMALL))
            large = _opened(page, devtools, _written(site, "large", LARGE))
        browser.close()
    first = statistics.median(each for each, _ in large)
    heap, less = (statistics.median(each for _, each in runs) for runs in (large, small))
    return [
        Figure("log_first_screen", first, f"{statistics.median(each for each, _ in small):.0f} ms for 1 MB"),
        Figure("log_memory", heap - less, f"{heap:.1f} MB of JavaScript, {less:.1f} MB with a log of 1 MB"),
    ]


def _written(site: LabSite, name: str, size: int) -> str:
    """A job that has ended, with so many bytes of output."""
    command = f"yes 'epoch 12  loss 0.0712  accuracy 0.9641' | head -c {size}; echo; echo {LAST}"
    headers = {"Authorization": f"token {site.token}"}
    with httpx.Client(base_url=site.url, headers=headers, timeout=60) as client:
        answer = client.post("pai/api/v2/jobs", content=document(name, command=command)).raise_for_status()
        job = str(json.loads(answer.content)["uid"])
    until(lambda: _state(site, job) not in ("WAITING", "RUNNING", "STOPPING"), seconds=600)
    assert _state(site, job) == "SUCCEEDED"
    return job


def _state(site: LabSite, job: str) -> object:
    found = site.get(f"jobs/{job}")
    assert isinstance(found, dict)
    return found["state"]


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
