"""A small program on sshj, the SSH library that JetBrains' products log in with."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
BUILD = HERE.parents[3] / "build"
FETCH_S = 300


def command(*words: str) -> list[str]:
    """The command line that runs ``Ide.java`` with these arguments."""
    return ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{jars()}/*", str(HERE / "Ide.java"), *words]


def jars() -> Path:
    """Where sshj is. Maven fetches it once; a second run needs no network.

    Raises CalledProcessError with what Maven said.
    """
    found = re.search(r"<sshj>(.*)</sshj>", (HERE / "pom.xml").read_text(encoding="utf-8"))
    assert found is not None
    place = BUILD / f"sshj-{found[1]}"
    if place.is_dir():
        return place
    BUILD.mkdir(exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix="sshj-", dir=BUILD))
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={draft}"]
    try:
        retries = "-Dmaven.wagon.http.retryHandler.count=3"
        subprocess.run(["mvn", "-q", "-B", "-f", HERE / "pom.xml", retries, *goal], check=True, timeout=FETCH_S)
        # Several workers may come here at once: the first one's directory is as good as any.
        with contextlib.suppress(OSError):
            os.rename(draft, place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return place
