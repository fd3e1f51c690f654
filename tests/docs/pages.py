"""The pages of the documentation as data: fences, headings, links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
READMES = ("README.md", "README.zh-CN.md")

_FENCE = re.compile(r"^```(?P<language>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Fence:
    """A fenced block; ``first`` is its first line."""

    page: str
    line: int
    language: str
    text: str

    @property
    def first(self) -> str:
        return self.text.splitlines()[0] if self.text else ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """All pages, as paths below the project."""
    found = [*READMES, "CONTRIBUTING.md", "CHANGELOG.md", "tests/README.md"]
    return found + sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def fences(page: str) -> list[Fence]:
    text = read(page)
    return [
        Fence(page, text[: found.start()].count("\n") + 1, found["language"].strip(), found["text"])
        for found in _FENCE.finditer(text)
    ]


def headings(page: str) -> list[tuple[int, str]]:
    """Level and text of each heading; lines of fences are none."""
    return [(len(marks), text) for marks, text in _HEADING.findall(_FENCE.sub("", read(page)))]


def links(page: str) -> list[str]:
    return _LINK.findall(_FENCE.sub("", read(page)))


def anchor(heading: str) -> str:
    """The anchor that GitHub makes of a heading: lower case, no punctuation, hyphens for spaces."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
