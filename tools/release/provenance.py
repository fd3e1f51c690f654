"""Sums of what was made, and a statement of what it was made from: in-toto, with SLSA's predicate."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

BUILD_TYPE = "https://github.com/jupyter-pai/jupyter-pai/blob/main/CONTRIBUTING.md#a-release"


def sha256(path: Path) -> str:
    """The digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_sums(files: Sequence[Path], target: Path) -> None:
    """Write the sums, as ``sha256sum --check`` reads them."""
    target.write_text("".join(f"{sha256(path)}  {path.name}\n" for path in files))


def write_statement(
    files: Sequence[Path], images: Mapping[str, str], materials: Mapping[str, Mapping[str, str]], target: Path
) -> None:
    """Say which files and images (name -> ``sha256:…``) were made from which materials (address -> digests)."""
    subjects = [{"name": path.name, "digest": {"sha256": sha256(path)}} for path in files]
    subjects += [
        {"name": name, "digest": {"sha256": digest.removeprefix("sha256:")}} for name, digest in images.items()
    ]
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"command": "make release", "images": sorted(images)},
                "resolvedDependencies": [{"uri": uri, "digest": dict(found)} for uri, found in materials.items()],
            },
            "runDetails": {"builder": {"id": _builder(os.environ)}},
        },
    }
    target.write_text(json.dumps(statement, indent=2) + "\n")


def _builder(environ: Mapping[str, str]) -> str:
    """Who built: the workflow, where one runs this."""
    workflow = environ.get("GITHUB_WORKFLOW_REF")
    return f"{environ['GITHUB_SERVER_URL']}/{workflow}" if workflow else "make release"
