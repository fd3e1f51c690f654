"""The progress bar: on standard error when somebody watches, and nothing at all otherwise."""

from __future__ import annotations

import pytest

from jupyter_pai.fs.bar import ProgressBar


def test_a_bar_that_is_shown_says_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    bar = ProgressBar(shown=True)
    bar.begin(2_000_000)
    bar.advance(2_000_000)
    bar.say("left out: x")
    bar.close()
    out, said = capsys.readouterr()
    assert out == ""
    assert "2.00M/2.00M" in said
    assert "left out: x" in said


def test_without_a_watcher_only_what_is_said_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    bar = ProgressBar(shown=False)
    bar.begin(100)
    bar.advance(50)
    bar.say("left out: x")
    bar.close()
    assert capsys.readouterr() == ("", "left out: x\n")
