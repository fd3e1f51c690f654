"""What a shim takes for the launcher's word on the end of a command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pai_backend.engine.bundle.record import ExitRecord
from pai_backend.engine.local.shim import contained

GOOD = {"version": 1, "code": 3, "signal": None, "reason": "exited", "message": "m", "causer": "user", "at": 1.0}


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "container").mkdir()
    return tmp_path / "container" / "record"


def test_a_record_goes_with_the_status_that_its_container_then_has(record: Path) -> None:
    for change, status in (({}, 3), ({"code": None, "signal": 9}, 137), ({"code": None}, 255)):
        record.write_text(json.dumps(GOOD | change))
        said = contained._record()
        assert said is not None
        assert said["status"] == status


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        "\x00",
        json.dumps(GOOD | {"code": 256}),
        json.dumps(GOOD | {"code": True}),
        json.dumps(GOOD | {"code": "3"}),
        json.dumps(GOOD | {"signal": 1.5}),
        json.dumps(GOOD | {"signal": 65, "code": None}),
        json.dumps(GOOD | {"signal": 9}),
        json.dumps(GOOD | {"reason": "preempted"}),
        json.dumps(GOOD | {"reason": ["exited"]}),
        json.dumps(GOOD | {"causer": "platform of others"}),
        "9" * 5000,
        "[" * 100_000,
    ],
    ids=lambda text: repr(text)[:40],
)
def test_what_a_task_may_not_say_is_not_taken(record: Path, text: str) -> None:
    record.write_text(text)
    assert contained._record() is None


def test_the_reasons_are_those_that_pods_may_give() -> None:
    reasons = ExitRecord.model_json_schema()["properties"]["reason"]["enum"]
    assert set(reasons) == contained._REASONS
