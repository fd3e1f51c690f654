"""``python -m tests.crash --kills 100 --jobs 300``: run the crash campaign and print what it found."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import sys
import tempfile
from pathlib import Path

from tests.crash.campaign import Campaign
from tests.support.podman_site import podman_site


def main() -> int:
    """Run it; exit code 0 when every promise held, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="how many times something is killed")
    parser.add_argument("--jobs", type=int, default=300, help="how many short jobs are submitted meanwhile")
    parser.add_argument("--takeovers", type=int, default=60, help="how many jobs take over a workspace name meanwhile")
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().randrange(10**6), help="repeat a run's choices"
    )
    parser.add_argument("--containers", action="store_true", help="run tasks in containers of Podman")
    parser.add_argument("--keep", type=Path, help="use this directory and leave it for inspection")
    options = parser.parse_args()
    with contextlib.ExitStack() as uses:
        scratch = Path(uses.enter_context(tempfile.TemporaryDirectory(prefix="pai-crash-", ignore_cleanup_errors=True)))
        campaign = Campaign(
            options.keep or scratch / "home",
            kills=options.kills,
            jobs=options.jobs,
            seed=options.seed,
            takeovers=options.takeovers,
            podman=uses.enter_context(podman_site(scratch / "podman")) if options.containers else None,
        )
        findings = asyncio.run(campaign.run())
    print(json.dumps(campaign.figures(), indent=2))
    for finding in findings:
        print(f"BROKEN: {finding}", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
