"""Logs come in pieces, whose ends are anywhere in a character."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

import pytest

from jupyter_pai import render
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


def test_the_command_prints_whole_characters_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jobs, "connected", FakeClient)
    args = argparse.Namespace(job="a", role=None, index=None, stream="stdout", offset=0, follow=True)
    jobs.logs(args, Output(as_json=True))
    said = [json.loads(line)["data"] for line in capsys.readouterr().out.splitlines()]
    assert "".join(said) == TEXT + "\ufffd"


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
