"""All figures of the panel: each part measured in the same Chromium, one after the other."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from bench.figures import Figure
from bench.panel import form, log, opening, table, visit
from bench.panel.scene import PATIENCE_MS, many_jobs_lab
from tests.support.chromium import ARGUMENTS, OwnNetwork, executable


async def measure() -> list[Figure]:
    """All figures."""
    return await asyncio.to_thread(_measured)


def _measured() -> list[Figure]:
    with OwnNetwork().entered(), tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE_MS)
        root = Path(place)
        browser = playwright.chromium.launch(executable_path=executable(), args=ARGUMENTS)
        figures = []
        with many_jobs_lab(browser, root / "many") as scene:
            for part in (opening, table, form, visit):
                figures += part.measure(scene)
        figures += log.measure(browser, root / "logs")
        browser.close()
    return figures
