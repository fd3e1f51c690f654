"""JupyterLab in Chromium, with a backend beside it whose database takes any number of jobs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from playwright.sync_api import Browser, BrowserContext, Page

from bench.many_jobs import fill_sqlite
from bench.scene import document
from jupyter_pai.embedded import Embedded
from tests.support.backend_process import until
from tests.support.lab_site import NODES, LabSite, running_lab

SCREEN_PX = {"width": 1280, "height": 800}
PATIENCE_MS = 300_000
REST_MS = 1000
"""What JupyterLab starts late, and what moves late, does so within this time."""

ENDED = ("SUCCEEDED", "FAILED", "STOPPED")


@dataclass
class Scene:
    """A JupyterLab, a browser, and the backend's database."""

    site: LabSite
    browser: Browser
    database: str
    jobs: int = field(default=0)
    """How many jobs of :mod:`bench.many_jobs` the database has."""

    def have(self, count: int) -> None:
        """Fill the database up to so many jobs, not fewer than it has."""
        assert count >= self.jobs
        fill_sqlite(self.database, count - self.jobs, first=self.jobs)
        self.jobs = count

    def user(self) -> BrowserContext:
        """A browser of a user who was never here: nothing is cached."""
        context = self.browser.new_context(viewport=SCREEN_PX)  # type: ignore[arg-type]
        context.set_default_timeout(PATIENCE_MS)
        # JupyterLab alone loads more than the 250 resources that a page keeps the times of.
        context.add_init_script("performance.setResourceTimingBufferSize(5000)")
        return context

    def load(self, page: Page) -> None:
        """Load JupyterLab as it is at first, the file browser at its side, and let it come to rest."""
        page.goto(self.site.page)
        page.wait_for_function("() => window.jupyterapp?.commands.hasCommand('pai:show-jobs')")
        page.evaluate("() => window.jupyterapp.restored.then(() => null)")
        page.locator("#jupyterlab-splash").wait_for(state="detached")
        page.wait_for_timeout(REST_MS)

    def run_job(self, name: str, command: str) -> str:
        """The uid of a job that has run that command and succeeded."""
        return run_job(self.site, name, command)


@contextmanager
def many_jobs_lab(browser: Browser, root: Path) -> Iterator[Scene]:
    """A JupyterLab below ``root`` whose backend is on SQLite and has no job yet; both end with the block.

    The Lab knows the backend by its address: a Lab with a private backend would wait at its end for the jobs that the
    database says are running.
    """
    (root / "lab").mkdir(parents=True)
    config = root / "backend.yaml"
    config.write_text(f"user: bench\n{NODES}", encoding="utf-8")
    private = Embedded(root / "data", config)
    endpoint = private.ensure()
    try:
        with running_lab(root / "lab", {"PAI_URL": endpoint.url, "PAI_TOKEN": endpoint.token}) as site:
            yield Scene(site, browser, f"sqlite:///{root / 'data' / 'pai.sqlite'}")
    finally:
        private.stop()


def run_job(site: LabSite, name: str, command: str) -> str:
    """The uid of a job that has run that command and succeeded."""
    headers = {"Authorization": f"token {site.token}"}
    with httpx.Client(base_url=site.url, headers=headers, timeout=60) as client:
        answer = client.post("pai/api/v2/jobs", content=document(name, command=command)).raise_for_status()
        job = str(json.loads(answer.content)["uid"])
    until(lambda: _state(site, job) in ENDED, seconds=600)
    assert _state(site, job) == "SUCCEEDED"
    return job


def _state(site: LabSite, job: str) -> object:
    found = site.get(f"jobs/{job}")
    assert isinstance(found, dict)
    return found["state"]
