"""The pictures of values to type: small, each shown with words, and what the tool draws from today's guide."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, links, read
from tests.docs.test_pictures import MAX_BYTES, size

IMAGES = ROOT / "docs" / "connect" / "images"
PAGE = "docs/connect/pycharm.md"


def test_each_picture_is_small_and_shown_with_words() -> None:
    pictures = {path.name for path in IMAGES.iterdir()}
    assert pictures == {link.removeprefix("images/") for link in links(PAGE) if link.startswith("images/")}
    assert all((IMAGES / name).stat().st_size < MAX_BYTES for name in pictures)
    assert "![](" not in read(PAGE)


def test_the_words_beside_a_picture_are_those_in_it() -> None:
    from jupyter_pai.connect.guide import guide
    from tools.connect_pictures import EXAMPLE, pictures

    words = dict(re.findall(r"!\[([^\]]+)\]\(images/([\w-]+)\.png\)", read(PAGE)))
    words = {name: said for said, name in words.items()}
    values = {name: [value for _, value in rows] for name, (_, rows) in pictures(guide(EXAMPLE)).items()}
    assert set(words) == set(values)
    for name in ("pycharm-ssh", "pycharm-mapping"):
        assert [value for value in values[name] if value not in words[name]] == []


@pytest.mark.ui
@pytest.mark.xdist_group("ui")
def test_the_tool_draws_the_pictures_as_they_are(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.connect_pictures", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    made = {path.name: size(path) for path in tmp_path.iterdir()}
    assert made == {path.name: size(path) for path in IMAGES.iterdir()}
