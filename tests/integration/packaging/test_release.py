"""``make release`` in a checkout of its own: what it makes, and that the same commit gives the same bytes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tests.support.distributions import ROOT, copy_checkout

TIMEOUT_S = 300
VERSION = "0.9.1"
WHEEL, SDIST = f"jupyter_pai-{VERSION}-py3-none-any.whl", f"jupyter_pai-{VERSION}.tar.gz"
CHART, BILL = f"jupyter-pai-{VERSION}.tgz", f"jupyter-pai-{VERSION}.cdx.json"
STATEMENT = f"jupyter-pai-{VERSION}.intoto.json"
BUILDER = """#!/bin/sh
echo "$*" >> "$(dirname "$0")/calls"
[ "$1" != push ] || echo sha256:abc > "$3"
"""

# One worker with the browser tests: the panel that they load is copied.
pytestmark = [pytest.mark.packaging, pytest.mark.timeout(900), pytest.mark.xdist_group("ui")]


def ran(command: list[str], cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    mail = {"GIT_AUTHOR_EMAIL": "t@example.org", "GIT_COMMITTER_EMAIL": "t@example.org"}
    names = {"GIT_AUTHOR_NAME": "T", "GIT_COMMITTER_NAME": "T"}
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "GITHUB_", "SOURCE_"))}
    # Its own backend and tools, not those of the tests.
    environment = {**kept, **mail, **names, "PYTHONPATH": str(cwd), **environ}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


def git(cwd: Path, *words: str) -> str:
    done = ran(["git", "-c", "commit.gpgsign=false", *words], cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def released(cwd: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return ran([sys.executable, "-m", "tools.release", *words], cwd, **environ)


def with_panel(checkout: Path) -> Path:
    """Built before, of that version, and newer than its sources: nothing here needs Node."""
    panel = checkout / "jupyter_pai" / "labextension"
    shutil.copytree(ROOT / "jupyter_pai" / "labextension", panel, copy_function=shutil.copyfile)
    stated = json.loads((panel / "package.json").read_text())
    (panel / "package.json").write_text(json.dumps({**stated, "version": VERSION}))
    return checkout


@pytest.fixture(scope="module")
def checkout(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with these files, whose newest changes are not released. ``sdist`` has built the panel."""
    made = tmp_path_factory.mktemp("release") / "checkout"
    copy_checkout(made)
    git(made, "init", "--quiet")
    git(made, "add", "--all")
    git(made, "commit", "--quiet", "--message", "all")
    return made


@pytest.fixture(scope="module")
def twice(checkout: Path) -> tuple[Path, Path]:
    """What two runs made, in two clones at two times of day."""
    done = released(checkout, "--set-version", VERSION)
    assert done.returncode == 0, done.stderr
    git(checkout, "commit", "--quiet", "--all", "--message", f"release: {VERSION}")
    git(checkout, "tag", f"v{VERSION}")
    other = checkout.parent / "other"
    git(checkout, "clone", "--quiet", str(checkout), str(other))
    outs = checkout.parent / "first", checkout.parent / "second"
    for place, out, zone in zip((checkout, other), outs, ("UTC", "Asia/Shanghai"), strict=True):
        done = released(with_panel(place), "--out", str(out), TZ=zone)
        assert done.returncode == 0, done.stderr
    return outs


def test_changes_without_a_version_are_no_release(checkout: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    first = git(checkout, "rev-list", "--max-parents=0", "HEAD")
    git(checkout, "clone", "--quiet", str(checkout), str(clone))
    git(clone, "checkout", "--quiet", first)
    done = released(clone, "--out", str(tmp_path / "out"))
    assert done.returncode == 1
    assert "make release-version VERSION=X.Y.Z" in done.stderr
    assert not (tmp_path / "out").exists()


def test_the_same_commit_gives_the_same_bytes(twice: tuple[Path, Path]) -> None:
    first, second = ({path.name: path.read_bytes() for path in out.iterdir()} for out in twice)
    assert set(first) == {WHEEL, SDIST, CHART, BILL, STATEMENT, "SHA256SUMS", "RELEASE_NOTES.md"}
    assert [name for name in first if first[name] != second.get(name)] == []


def test_sums_and_statement_name_what_was_made(checkout: Path, twice: tuple[Path, Path]) -> None:
    out, _ = twice
    checked = ran(["sha256sum", "--check", "--strict", "SHA256SUMS"], out)
    assert checked.returncode == 0, checked.stdout
    statement = json.loads((out / STATEMENT).read_text())
    assert statement["predicateType"] == "https://slsa.dev/provenance/v1"
    subjects = {each["name"]: each["digest"]["sha256"] for each in statement["subject"]}
    assert subjects == {
        name: hashlib.sha256((out / name).read_bytes()).hexdigest()
        for name in (WHEEL, SDIST, CHART, BILL, "RELEASE_NOTES.md")
    }
    [source] = [
        each["digest"]["gitCommit"]
        for each in statement["predicate"]["buildDefinition"]["resolvedDependencies"]
        if each["uri"].startswith("git+")
    ]
    assert source == git(checkout, "rev-parse", f"v{VERSION}")


def test_wheel_chart_and_notes_are_of_that_version(twice: tuple[Path, Path]) -> None:
    out, _ = twice
    assert f"jupyter_pai-{VERSION}.dist-info/METADATA" in zipfile.ZipFile(out / WHEEL).namelist()
    with tarfile.open(out / CHART) as archive:
        chart = archive.extractfile("jupyter-pai/Chart.yaml")
        assert chart is not None
        text = chart.read().decode()
        assert f"version: {VERSION}\nappVersion: {VERSION}\n" in text
        assert "jupyter-pai/templates/deployments.yaml" in archive.getnames()
        assert "jupyter-pai/.helmignore" not in archive.getnames()
    notes = (out / "RELEASE_NOTES.md").read_text()
    assert notes.startswith("### ")
    assert "## [" not in notes.replace("### [", "")


def test_the_bill_of_materials_is_valid_and_has_what_serves(twice: tuple[Path, Path]) -> None:
    out, _ = twice
    text = (out / BILL).read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    bill = json.loads(text)
    wheel = hashlib.sha256((out / WHEEL).read_bytes()).hexdigest()
    assert bill["metadata"]["component"]["hashes"] == [{"alg": "SHA-256", "content": wheel}]
    names = {each["name"] for each in bill["components"]}
    assert {"alembic", "asyncpg", "asyncssh", "kubernetes-asyncio", "sqlalchemy", "tornado"} <= names
    assert not {"pytest", "jupyterlab", "ruff"} & names
    needed = {each["ref"]: each.get("dependsOn", []) for each in bill["dependencies"]}
    assert "mako" in needed["alembic"]


def test_an_image_is_known_by_the_digest_of_its_push(twice: tuple[Path, Path], checkout: Path, tmp_path: Path) -> None:
    builder = tmp_path / "podman"
    builder.write_text(BUILDER)
    builder.chmod(0o755)
    # What builds the wheel for the image is looked for in .venv.
    (checkout / ".venv").symlink_to(sys.prefix)
    name = "registry.example.com:5000/pai:1"
    done = released(checkout, "--out", str(tmp_path / "out"), "--image", name, IMAGE_BUILDER=str(builder))
    assert done.returncode == 0, done.stderr
    assert f"{name}@sha256:abc" in done.stdout
    assert f"build --tag {name}" in (tmp_path / "calls").read_text()
    statement = json.loads((tmp_path / "out" / STATEMENT).read_text())
    assert {"name": name, "digest": {"sha256": "abc"}} in statement["subject"]


def test_a_tree_that_differs_from_its_commit_is_no_release(twice: tuple[Path, Path], checkout: Path) -> None:
    chart = checkout / "deploy/helm/jupyter-pai/Chart.yaml"
    before = chart.read_text()
    try:
        chart.write_text(before + "# more\n")
        done = released(checkout, "--out", str(checkout.parent / "none"))
        assert done.returncode == 1
        assert "not committed" in done.stderr
        chart.write_text(before.replace(f"appVersion: {VERSION}", "appVersion: 9.9.9"))
        done = released(checkout, "--out", str(checkout.parent / "none"))
        assert "appVersion says 9.9.9, and CHANGELOG.md 0.9.1" in done.stderr
    finally:
        chart.write_text(before)
