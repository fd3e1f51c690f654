"""Files that the replay has not seen: told where they are wrong, never a traceback and never a false success."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import hived_replay

DATA = Path(__file__).parent.parent / "data" / "hived"
CONFIGS = DATA / "configs.json.gz"


def a_trace() -> dict[str, Any]:
    with gzip.open(DATA / "scenarios.jsonl.gz", "rt", encoding="utf-8") as lines:
        found: dict[str, Any] = json.loads(next(lines))
    return found


def replayed(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code and what was said about errors."""
    code = hived_replay.main([str(path), "--configs", str(CONFIGS)])
    return code, capsys.readouterr().err


def test_an_unknown_operation_is_told_with_file_line_and_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = a_trace()
    wrong["ops"][1] = {"op": "explode"}
    path = tmp_path / "wrong.jsonl"
    path.write_text(f"{json.dumps(a_trace())}\n{json.dumps(wrong)}\n")
    code, said = replayed(path, capsys)
    assert code == 2
    assert f"{path}:2: op 1: unknown operation 'explode'" in said


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"config": "elsewhere"}, "no configuration 'elsewhere'"),
        ({"outcomes": []}, "0 outcomes"),
        ({"ops": "none"}, "'ops' is missing or no list"),
        ({"ops": [{"op": "retry", "group": "ghost"}], "outcomes": [{"kind": "wait"}]}, "'ghost' was never submitted"),
        ({"ops": [{"op": "delete"}], "outcomes": [{"kind": "ok"}]}, "delete without 'group'"),
        ({"ops": [{"op": "nodeBad", "node": "n"}], "outcomes": [{"kind": "fine"}]}, "unknown outcome 'fine'"),
        (
            {"ops": [{"op": "delete", "group": "g"}], "outcomes": [{"kind": "bound", "placement": [{"cells": []}]}]},
            "'placement' is a list of pods, each with node, cells",
        ),
        (
            {"ops": [{"op": "submit", "group": "g", "spec": {"vc": "a"}}], "outcomes": [{"kind": "wait"}]},
            "a spec has vc, priority, members",
        ),
    ],
)
def test_what_is_no_trace_is_told(
    change: dict[str, Any], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wrong.jsonl"
    path.write_text(json.dumps(a_trace() | change))
    code, said = replayed(path, capsys)
    assert code == 2
    assert said.startswith(f"{path}:1: ")
    assert reason in said


def test_a_file_that_breaks_off_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed = tmp_path / "half.jsonl.gz"
    packed.write_bytes((DATA / "scenarios.jsonl.gz").read_bytes()[:4000])
    code, said = replayed(packed, capsys)
    assert code == 2
    assert "cannot be read" in said
    plain = tmp_path / "half.jsonl"
    plain.write_text(json.dumps(a_trace())[:-50])
    code, said = replayed(plain, capsys)
    assert code == 2
    assert f"{plain}:1: no JSON" in said


def test_an_empty_file_agrees_with_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text("\n")
    assert replayed(path, capsys) == (2, f"{path}: there is no trace in it\n")


def test_configurations_that_are_missing_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps(a_trace()))
    assert hived_replay.main([str(path)]) == 2
    assert "--configs" in capsys.readouterr().err


def test_the_table_counts_what_is_involved_and_what_is_unexplained(capsys: pytest.CaptureFixture[str]) -> None:
    assert hived_replay.main([str(DATA / "traces-strict.jsonl.gz"), "--quiet"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("  L")]
    assert len(rows) == 4
    for row in rows:
        agree, involved, unexplained = (int(text) for text in row[-9:-6])
        assert unexplained == 0
        assert agree + involved == int(row[-1]) + involved == 3188
