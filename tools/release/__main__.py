"""``make release`` and ``make release-version``: see the package."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from tools.release.bill import write_bill
from tools.release.changelog import NotReady, Section, release_of, set_version
from tools.release.chart import package_chart
from tools.release.image import build_image
from tools.release.provenance import sha256, write_statement, write_sums

ROOT = Path(__file__).resolve().parents[2]
LOCKED = ("tools/locked.txt", "deploy/image/requirements.txt", "labextension/yarn.lock")
REPOSITORY = "https://github.com/jupyter-pai/jupyter-pai"


def git(*words: str) -> str:
    """What git says of this checkout."""
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def check_tree(section: Section) -> None:
    """Raises NotReady when a commit does not hold all that would be built, or its tag is of another version."""
    if changed := git("status", "--porcelain", "--untracked-files=no"):
        raise NotReady(f"These changes are not committed:\n{changed}")
    tags = [tag for tag in git("tag", "--points-at", "HEAD").split() if re.match(r"v\d", tag)]
    if tags and tags != [f"v{section.version}"]:
        raise NotReady(f"The commit has the tag {' '.join(tags)}, and CHANGELOG.md says {section.version}.")


def build_distributions(out: Path, version: str, epoch: int) -> list[Path]:
    """The sdist, and the wheel made from this checkout. A panel of another version is built anew."""
    panel = ROOT / "jupyter_pai" / "labextension"
    stated = panel / "package.json"
    if stated.is_file() and json.loads(stated.read_text())["version"] != version:
        shutil.rmtree(panel)
    command = [sys.executable, "-m", "build", "--quiet", "--no-isolation", "--sdist", "--wheel", "--outdir", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)})
    return sorted([*out.glob("*.whl"), *out.glob("*.tar.gz")])


def release(out: Path, image: str) -> None:
    """Make everything in ``out``, which is emptied before."""
    section = release_of(ROOT)
    check_tree(section)
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct"))
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    files = build_distributions(out, section.version, epoch)
    files.append(package_chart(ROOT / "deploy/helm/jupyter-pai", section.version, epoch, out))
    bill = out / f"jupyter-pai-{section.version}.cdx.json"
    [wheel] = [path for path in files if path.suffix == ".whl"]
    write_bill(wheel, epoch, bill)
    notes = out / "RELEASE_NOTES.md"
    notes.write_text(section.text + "\n", encoding="utf-8")
    files += [bill, notes]
    images = {image: build_image(ROOT, image)} if image else {}
    write_sums(files, out / "SHA256SUMS")
    materials = {
        f"git+{REPOSITORY}@refs/tags/v{section.version}": {"gitCommit": git("rev-parse", "HEAD")},
        **{f"file:{name}": {"sha256": sha256(ROOT / name)} for name in LOCKED},
    }
    write_statement(files, images, materials, out / f"jupyter-pai-{section.version}.intoto.json")
    for path in sorted(out.iterdir()):
        print(path)
    for name, digest in images.items():
        print(f"{name}@{digest}")


def main(arguments: list[str]) -> int:
    """The exit code: 1 when the tree is no release."""
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="directory of what is made; default: dist")
    parser.add_argument("--image", default="", help="also build and push the backend's image under this NAME:TAG")
    parser.add_argument("--set-version", metavar="X.Y.Z", help="write this version into the tree, and make nothing")
    args = parser.parse_args(arguments)
    try:
        if args.set_version is not None:
            set_version(ROOT, args.set_version, f"{datetime.now(UTC):%Y-%m-%d}")
        else:
            release(args.out, args.image)
    except NotReady as problem:
        print(f"release: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
