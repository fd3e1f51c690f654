"""The changelog decides the version: its newest section is the release, and other files have to agree with it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

SECTION = re.compile(r"^## \[(?P<version>[^\]]+)\](?: - (?P<date>\S+))?\n", re.MULTILINE)
VERSION = re.compile(r"\d+\.\d+\.\d+(-(alpha|beta|rc)\.\d+)?")  # as package.json has it; hatchling makes it PEP 440's
PACKAGE = "labextension/package.json"
CHART = "deploy/helm/jupyter-pai/Chart.yaml"


class NotReady(Exception):
    """The tree is no release; the message says what to do."""


@dataclass(frozen=True)
class Section:
    """One section of the changelog: ``version`` is ``Unreleased`` for the first."""

    version: str
    date: str
    text: str


def sections(changelog: str) -> list[Section]:
    """All sections, newest first."""
    found = list(SECTION.finditer(changelog))
    ends = [match.start() for match in found[1:]] + [len(changelog)]
    return [
        Section(match["version"], match["date"] or "", changelog[match.end() : end].strip())
        for match, end in zip(found, ends, strict=True)
    ]


def release_of(root: Path) -> Section:
    """The section of the release that the tree is. Raises NotReady."""
    found = sections((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    if found and found[0].version == "Unreleased":
        if found[0].text:
            raise NotReady("CHANGELOG.md has entries under [Unreleased]. Run make release-version VERSION=X.Y.Z first.")
        del found[0]
    if not found or not re.fullmatch(r"\d{4}-\d\d-\d\d", found[0].date):
        raise NotReady("The newest section of CHANGELOG.md has no date. Run make release-version VERSION=X.Y.Z first.")
    stated = {PACKAGE: package_version(root), **chart_versions(root)}
    for place, version in stated.items():
        if version != found[0].version:
            raise NotReady(f"{place} says {version}, and CHANGELOG.md {found[0].version}. Make them equal.")
    return found[0]


def package_version(root: Path) -> str:
    """The version that the wheel, the sdist and the panel get."""
    return str(json.loads((root / PACKAGE).read_text())["version"])


def chart_versions(root: Path) -> dict[str, str]:
    """The versions in Chart.yaml, by file and key."""
    found = re.findall(r"^(version|appVersion): *(\S+)$", (root / CHART).read_text(), re.MULTILINE)
    return {f"{CHART}, {key}": value for key, value in found}


def set_version(root: Path, version: str, date: str) -> None:
    """Make the entries under [Unreleased] the section of a version, and write it into every file that states it.

    Raises NotReady when the version is malformed or has a dated section, or when there are no entries.
    """
    if not VERSION.fullmatch(version):
        raise NotReady(f"{version} is not a version such as 1.2.3 or 1.2.3-rc.1.")
    path = root / "CHANGELOG.md"
    text = path.read_text(encoding="utf-8")
    found = sections(text)
    if not found or found[0].version != "Unreleased" or not found[0].text:
        raise NotReady("CHANGELOG.md has no entries under [Unreleased].")
    if any(section.version == version and section.date != "unreleased" for section in found):
        raise NotReady(f"CHANGELOG.md has a section of {version}.")
    head = f"## [Unreleased]\n\n## [{version}] - {date}\n"
    text = text.replace("## [Unreleased]\n", head, 1)
    path.write_text(text.replace(f"## [{version}] - unreleased\n\n", ""), encoding="utf-8")
    _replace(root / PACKAGE, r'(?m)^(  "version": ")[^"]+', rf"\g<1>{version}")
    _replace(root / CHART, r"(?m)^((?:version|appVersion): *)\S+$", rf"\g<1>{version}")


def _replace(path: Path, pattern: str, by: str) -> None:
    text, count = re.subn(pattern, by, path.read_text(encoding="utf-8"))
    assert count, f"{path} states no version"
    path.write_text(text, encoding="utf-8")
