"""Pictures of the documentation are small, all used, and what the program makes today."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import READMES, ROOT, links, read

DOCS = ROOT / "docs"
IMAGES = DOCS / "images"
MAX_BYTES = 200_000
TOOL_TIMEOUT_S = 280


def size(picture: Path) -> tuple[int, int]:
    """Width and height of a PNG (PNG specification, 11.2.2 IHDR)."""
    data = picture.read_bytes()[:24]
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    return width, height


def test_pictures_are_small_and_each_is_shown_somewhere() -> None:
    pictures = {path.name: path for path in IMAGES.iterdir()}
    assert all(path.stat().st_size < MAX_BYTES for path in pictures.values())
    pages = [*READMES, *(str(page.relative_to(ROOT)) for part in ("", "zh-CN") for page in (DOCS / part).glob("*.md"))]
    shown = {((ROOT / page).parent / link).resolve() for page in pages for link in links(page)}
    assert shown >= set(pictures.values())


def test_every_picture_has_words_for_those_who_do_not_see_it() -> None:
    assert all("![](" not in read(page) for page in READMES)


@pytest.mark.ui
@pytest.mark.xdist_group("ui")
@pytest.mark.timeout(TOOL_TIMEOUT_S + 20)
def test_the_tool_makes_pictures_from_the_program_as_it_is(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tools.pictures", str(tmp_path / "images"), "--first"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    made = {path.name: size(path) for path in (tmp_path / "images").iterdir()}
    assert made == {"job.png": size(IMAGES / "job.png")}
