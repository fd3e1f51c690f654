"""The list of jobs at the side: from the command that shows it until its rows are painted, after a fresh load."""

from __future__ import annotations

import statistics

from bench.figures import Figure
from bench.panel.scene import Scene

RUNS = 5
JOBS = 10_000
ROWS = 100
"""The least that the list shows of so many jobs: the newest, and behind those that run."""

SHOW = """rows => new Promise((resolve, reject) => {
  const options = document.getElementsByClassName('jp-pai-JobList-row');
  const seen = () => [...options].filter(each => each.offsetParent).length;
  if (seen() > 0) {
    reject(new Error('the list was shown before'));
    return;
  }
  const began = performance.now();
  const after = new MessageChannel();
  after.port1.onmessage = () => {
    const took = performance.now() - began;
    const asked = performance.getEntriesByType('resource')
      .filter(each => each.startTime >= began && each.name.includes('/pai/api/v2/jobs'));
    resolve([took, Math.max(...asked.map(each => each.responseEnd)) - began, seen()]);
  };
  const look = () => seen() < rows ? requestAnimationFrame(look) : after.port2.postMessage(null);
  requestAnimationFrame(look);
  void window.jupyterapp.commands.execute('pai:show-jobs');
})"""
"""Milliseconds until a frame with the rows was painted, and until the last answer was there; how many rows."""


def measure(scene: Scene) -> list[Figure]:
    """The median over fresh loads of JupyterLab."""
    scene.have(JOBS)
    runs = []
    with scene.user() as context:
        page = context.new_page()
        for _ in range(RUNS):
            scene.load(page)
            runs.append(page.evaluate(SHOW, ROWS))
    took, answered, rows = ([run[place] for run in runs] for place in range(3))
    told = (
        f"ms with {JOBS:,} jobs; slowest {max(took):.0f}; the answers came after {statistics.median(answered):.0f} ms"
    )
    return [Figure("open", statistics.median(took), f"{told}; {rows[0]} rows")]
