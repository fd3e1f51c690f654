"""``python -m backend.runtime.bundle``: build the bundle and its image; print what the image is called.

What is there and made of the same inputs is not built again. Several may run at once: one builds, the others wait.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from backend.runtime.bundle import image, tree
from backend.runtime.bundle.debian import BuildFailed

ROOT = Path(__file__).resolve().parents[3]
NAME = "jupyter-pai/runtime"
ARCHIVE = "runtime.tar"
TOLD = "image.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0, or 1 with the reason on standard error."""
    parser = argparse.ArgumentParser(prog="python -m backend.runtime.bundle", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build/runtime", help="directory to write (build/runtime)")
    parser.add_argument("--name", default=NAME, help=f"name of the image, with its registry and without a tag ({NAME})")
    chosen = parser.parse_args(arguments)
    try:
        told = built(chosen.out, chosen.name)
    except (BuildFailed, OSError) as error:
        sys.stderr.write(f"the runtime bundle was not built: {error}\n")
        return 1
    sys.stdout.write(json.dumps(told, indent=2) + "\n")
    return 0


def built(out: Path, name: str = NAME) -> dict[str, str]:
    """Build into a directory what is not there yet: its image's reference, digest, version, archive.

    Raises BuildFailed, OSError. A build that breaks off leaves what was there.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(out.with_name(out.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = {"name": name, "inputs": tree.inputs()}
        if (out / TOLD).exists():
            told: dict[str, str] = json.loads((out / TOLD).read_text())
            if wanted.items() <= told.items():
                return told
        with tempfile.TemporaryDirectory(prefix=".runtime-", dir=out.parent) as place:
            draft = Path(place) / "draft"
            draft.mkdir()
            told = {**wanted, **_build(draft, name)}
            (draft / TOLD).write_text(json.dumps(told, indent=2) + "\n")
            shutil.rmtree(out, ignore_errors=True)
            os.rename(draft, out)
        return told
    finally:
        os.close(lock)


def _build(out: Path, name: str) -> dict[str, str]:
    root = out / "tree"
    root.mkdir()
    version = tree.build(root)
    reference = f"{name}:{version}"
    labels = {
        "org.opencontainers.image.title": "jupyter-pai runtime",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.description": "Launcher, SSH server and bash of tasks; licences in /runtime/licences",
    }
    entrypoint = ["/runtime/bin/install", "/pai/runtime", "/pai/state"]
    made = image.Image(reference, "runtime", entrypoint, labels)
    digest = image.write(root, made, out / "oci", out / ARCHIVE)
    with (out / ARCHIVE).open("rb") as content:
        summed = hashlib.file_digest(content, "sha256").hexdigest()
    (out / tree.SUMS).write_text(f"{summed}  {ARCHIVE}\n")
    return {"reference": reference, "digest": digest, "version": version}


if __name__ == "__main__":
    sys.exit(main())
