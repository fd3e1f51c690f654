"""Logs come in pieces, whose ends are anywhere in a character."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

import pytest

from jupyter_pai import render
from jupyter_pai.client import LogChunk
from jupyter_pai.commands import jobs
from jupyter_pai.commands.output import Output
from jupyter_pai.log_text import incremental_decoder
from jupyter_pai.widgets.job_view import JobView

TEXT = "第 1 轮：损失 0.5\n"
PIECES = [bytes([byte]) for byte in TEXT.encode()]


class FakeClient:
    """Follows one log, a byte at a time."""

    def __enter__(self) -> FakeClient:
        return self

    def __exit__(self, *_: object) -> None: ...

    def follow_log(self, *_: object, **__: object) -> Iterator[bytes]:
        yield from PIECES
        yield "末".encode()[:2]

    def log(self, *_: object, offset: int, **__: object) -> LogChunk:
        """A page of 8 bytes."""
        whole = TEXT.encode()
        first = offset if offset >= 0 else len(whole) + offset
        page = whole[first : first + 8]
        return LogChunk(page, first, first + len(page))


def logged(capsys: pytest.CaptureFixture[str], *, offset: int, follow: bool = False) -> list[dict[str, Any]]:
    """What ``pai logs --json`` prints."""
    args = argparse.Namespace(
        job="a", role=None, index=None, stream="stdout", offset=offset, follow=follow, timestamps=False
    )
    jobs.logs(args, Output(as_json=True))
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_pages_of_a_log_have_whole_characters_and_lead_to_each_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jobs, "connected", FakeClient)
    said, offset = "", 0
    while (page := logged(capsys, offset=offset)[0])["data"]:
        said, offset = said + page["data"], page["next"]
    assert said == TEXT


def test_a_log_of_several_pages_is_printed_whole(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr(jobs, "connected", FakeClient)
    monkeypatch.setattr(jobs, "LOG_PAGE_BYTES", 8)
    args = argparse.Namespace(job="a", role=None, index=None, stream="stdout", offset=0, follow=False, timestamps=False)
    jobs.logs(args, Output(as_json=False))
    assert capfdbinary.readouterr().out == TEXT.encode()


@pytest.mark.parametrize("back", range(1, 12))
def test_an_offset_within_a_character_begins_at_the_next_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], back: int
) -> None:
    monkeypatch.setattr(jobs, "connected", FakeClient)
    (page,) = logged(capsys, offset=-back)
    assert "\ufffd" not in page["data"]
    assert TEXT.encode()[page["offset"] : page["next"]].decode() == page["data"]


def test_a_log_that_is_followed_from_within_a_character_begins_at_the_next_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tail = TEXT.encode()[1:]
    monkeypatch.setattr(jobs, "connected", FakeClient)
    monkeypatch.setattr(FakeClient, "follow_log", lambda *_, **__: iter([tail]))
    assert "".join(line["data"] for line in logged(capsys, offset=1, follow=True)) == TEXT[1:]


def test_the_command_prints_whole_characters_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jobs, "connected", FakeClient)
    assert "".join(line["data"] for line in logged(capsys, offset=0, follow=True)) == TEXT + "\ufffd"


def test_the_view_shows_whole_characters() -> None:
    view: Any = JobView.__new__(JobView)
    view._decoder, view._log, view._redraw_due = incremental_decoder(), "", True
    for piece in PIECES:
        view._on_log(piece)
    assert view._log == TEXT


def test_an_exit_of_a_role_names_no_task() -> None:
    exit_ = {"role": "worker", "index": None, "status": 0, "message": ""}
    job: Any = {"name": "a", "state": "SUCCEEDED", "exit": exit_}
    assert render.verdict(job) == "a succeeded in worker with exit status 0"
    exit_["index"] = 2
    assert render.verdict(job).startswith("a succeeded in worker-2 ")
