"""What is locked with hashes: the versions of ``tools/versions.txt``, for all that pyproject.toml names."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.release.bill import EXTRAS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSIONS = dict(
    line.split("==") for line in (ROOT / "tools/versions.txt").read_text().splitlines() if not line.startswith("#")
)
FILES = {"tools/locked.txt": {"dev"}, "deploy/image/requirements.txt": set(EXTRAS)}
PIN = re.compile(
    r"(?P<name>[\w.-]+)(\[[\w,-]+\])?==(?P<version>\S+)( ; (?P<marker>[^\\]+?))?( \\\n    --hash=sha256:\w{64})+\n"
)
WITH_PYTHON = {"setuptools"}  # tools/write-versions leaves it out
REMEDY = "tools/lock writes it anew"


def pins(name: str) -> list[re.Match[str]]:
    text = (ROOT / name).read_text().partition("\n")[2]
    found = list(PIN.finditer(text))
    assert "".join(pin[0] for pin in found) == text, "every line is a version with its hashes"
    return found


def named(extras: set[str]) -> set[str]:
    """The packages that these extras of ours lead to directly, on Linux and this Python."""
    texts = [*PROJECT["dependencies"], *(text for extra in extras for text in PROJECT["optional-dependencies"][extra])]
    found = [Requirement(text) for text in texts]
    inner = {extra for each in found if each.name == "jupyter-pai" for extra in each.extras} - extras
    needed = {canonicalize_name(each.name) for each in found if each.marker is None or each.marker.evaluate()}
    return (needed - {"jupyter-pai"}) | (named(extras | inner) if inner else set())


@pytest.mark.parametrize("file", FILES)
def test_locked_versions_are_those_of_the_constraints(file: str) -> None:
    wrong = {
        pin["name"]: pin["version"]
        for pin in pins(file)
        if VERSIONS.get(pin["name"], pin["version"]) != pin["version"]
        or (
            pin["name"] not in VERSIONS.keys() | WITH_PYTHON
            and (pin["marker"] is None or Marker(pin["marker"]).evaluate())
        )
    }
    assert wrong == {}, REMEDY


@pytest.mark.parametrize(("file", "extras"), FILES.items())
def test_all_that_we_name_is_locked(file: str, extras: set[str]) -> None:
    assert named(extras) - {canonicalize_name(pin["name"]) for pin in pins(file)} == set(), REMEDY


def test_the_image_gets_nothing_of_the_tests() -> None:
    names = {pin["name"] for pin in pins("deploy/image/requirements.txt")}
    assert not names & {"pytest", "jupyterlab", "ruff", "mypy", "uv"}


def test_the_lock_of_the_image_and_the_bill_of_materials_are_of_the_same_extras() -> None:
    [line] = [line for line in (ROOT / "tools/lock").read_text().splitlines() if line.startswith("lock deploy/image/")]
    assert re.findall(r"--extra (\w+)", line) == list(EXTRAS)
