"""The full-page table of 10,000 jobs while it scrolls: what JavaScript takes of each frame."""

from __future__ import annotations

from playwright.sync_api import Page

from bench.figures import Figure, percentile
from bench.panel.frames import CATEGORIES, Frame, frames_between
from bench.panel.scene import REST_MS, Scene

JOBS = 10_000
SPEED_PX_S = 2400
"""Seventy rows a second, a quick turn of the wheel; pages of a hundred rows are read on the way."""
WAY_PX = 24_000
BEGIN, END = "bench-scroll-begins", "bench-scroll-ends"
BOX = ".jp-pai-JobTable .jp-pai-Windowed"


def measure(scene: Scene) -> list[Figure]:
    """The 95th percentile over the frames of a scroll down through the table."""
    scene.have(JOBS)
    with scene.user() as context:
        page = context.new_page()
        scene.load(page)
        page.evaluate("() => window.jupyterapp.commands.execute('pai:show-job-table')")
        page.locator(f"{BOX} tr[data-job]").first.wait_for()
        page.wait_for_timeout(REST_MS)
        asked = _questions(page)
        frames = _scrolled(scene, page)
        asked = _questions(page) - asked
        assert page.locator(BOX).evaluate("box => box.scrollTop") >= 0.9 * WAY_PX, "the table was to scroll"
        page.wait_for_timeout(REST_MS)
        assert page.locator(f"{BOX} tr[data-job]").count() > 10, "the rows in sight were to be read"
    return [Figure("scroll_script_p95", percentile([each.script_ms for each in frames], 0.95), _told(frames, asked))]


def _scrolled(scene: Scene, page: Page) -> list[Frame]:
    """The frames while the wheel turns in the middle of the table."""
    place = page.locator(BOX).bounding_box()
    assert place is not None
    middle = {"x": place["x"] + place["width"] / 2, "y": place["y"] + place["height"] / 2}
    gesture = {**middle, "yDistance": -WAY_PX, "speed": SPEED_PX_S, "gestureSourceType": "mouse"}
    devtools = page.context.new_cdp_session(page)
    scene.browser.start_tracing(page=page, categories=CATEGORIES)
    page.evaluate("name => void performance.mark(name)", BEGIN)
    devtools.send("Input.synthesizeScrollGesture", gesture)
    page.evaluate("name => void performance.mark(name)", END)
    return frames_between(scene.browser.stop_tracing(), BEGIN, END)


def _questions(page: Page) -> int:
    """How often the page has asked for jobs."""
    asked = "() => performance.getEntriesByType('resource').filter(each => each.name.includes('/api/v2/jobs?')).length"
    return int(page.evaluate(asked))


def _told(frames: list[Frame], asked: int) -> str:
    script, work, lasts = ([getattr(each, name) for each in frames] for name in ("script_ms", "work_ms", "lasts_ms"))
    seconds = sum(lasts) / 1000
    return (
        f"{len(frames)} frames in {seconds:.1f} s; median {percentile(script, 0.5):.1f}, longest {max(script):.1f}; "
        f"all work on the thread p95 {percentile(work, 0.95):.1f}; {asked} requests for jobs"
    )
