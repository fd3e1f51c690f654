"""``python -m bench [NAME] [--json]``: measure, print figure, floor and peer; exit code 1 when a floor is missed.

``NAME`` means also all benches whose names go on with a dash: ``kubernetes`` is four. One that this machine cannot run
is skipped with the reason; where ``CI`` is set, that counts as missed. ``--cpu`` prints first, for one round of twenty
of ``kubernetes-starting`` and its peers, which programs have used the processors.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeAlias

from bench import api, attacks, containers, documents, interactive, listing, local, nodes, queue, scheduling
from bench.figures import CannotRun, Figure, compare, load_floors, row
from bench.kubernetes import following, reacting, scale, starting
from bench.panel import figures as panel
from bench.quality import figures as quality
from bench.services import figures as services
from bench.services import lasting, page
from bench.ssh import figures as ssh

Bench: TypeAlias = Callable[[], Coroutine[Any, Any, list[Figure]]]

BENCHES: dict[str, Bench] = {
    "api": api.measure,
    "attack-guesses": attacks.guesses,
    "attack-idle": attacks.idle,
    "attack-texts": attacks.texts,
    "containers": containers.measure,
    "documents": documents.measure,
    "kernels": interactive.kernels,
    "kubernetes": following.measure,
    "kubernetes-reacting": reacting.measure,
    "kubernetes-scale": scale.measure,
    "kubernetes-starting": starting.measure,
    "listing": listing.measure,
    "local": local.measure,
    "nodes": nodes.measure,
    "panel": panel.measure,
    "quality": quality.measure,
    "queue": queue.measure,
    "scheduling": scheduling.measure,
    "services": services.measure,
    "services-lasting": lasting.measure,
    "services-page": page.measure,
    "ssh": ssh.measure,
    "terminal": interactive.terminal,
}


def chosen(name: str | None) -> list[str]:
    """The benches that a name means."""
    return [each for each in sorted(BENCHES) if name is None or each == name or each.startswith(f"{name}-")]


def main() -> int:
    """Run one benchmark or all."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name", nargs="?", choices=sorted(BENCHES), help="one benchmark; all when left out")
    parser.add_argument("--cpu", action="store_true", help="kubernetes-starting: print also who used the processors")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    options = parser.parse_args()
    floors = load_floors()
    benches: dict[str, Bench] = {**BENCHES, "kubernetes-starting": partial(starting.measure, tells_cpu=options.cpu)}
    misses: list[str] = []
    report: dict[str, object] = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    }
    for name in chosen(options.name):
        try:
            figures = asyncio.run(benches[name]())
        except CannotRun as lack:
            print(f"SKIP {name}: {lack}", file=sys.stderr, flush=True)
            misses += [f"{name}: {lack}"] if os.environ.get("CI") else []
            continue
        misses += compare(name, figures, floors[name])
        report[name] = {figure.name: {"value": figure.value, "peer": figure.peer} for figure in figures}
        if not options.json:
            for figure in figures:
                print(row(name, figure, floors[name][figure.name]), flush=True)
    if options.json:
        print(json.dumps({**report, "misses": misses}, indent=2))
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
