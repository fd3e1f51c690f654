"""``python -m bench [NAME] [--json]``: measure, print figure, floor and peer; exit code 1 when a floor is missed."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
from collections.abc import Awaitable, Callable

from bench import api, documents, listing, local, nodes, queue, scheduling
from bench.figures import Figure, compare, load_floors, row
from bench.kubernetes import following

BENCHES: dict[str, Callable[[], Awaitable[list[Figure]]]] = {
    "api": api.measure,
    "documents": documents.measure,
    "kubernetes": following.measure,
    "listing": listing.measure,
    "local": local.measure,
    "nodes": nodes.measure,
    "queue": queue.measure,
    "scheduling": scheduling.measure,
}


def main() -> int:
    """Run one benchmark or all."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("name", nargs="?", choices=sorted(BENCHES), help="one benchmark; all when left out")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    options = parser.parse_args()
    floors = load_floors()
    misses: list[str] = []
    report: dict[str, object] = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    }
    for name in [options.name] if options.name else sorted(BENCHES):
        figures = asyncio.run(BENCHES[name]())
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
