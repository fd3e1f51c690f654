"""``pai`` words the faults of documents and the answers of a real backend in Chinese."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from jupyter_pai.sync import Client
from tests.support.warm_start import run_pai

BAD = """{
  "jobName": "a",
  "image": "none",
  "taskRoles": [{"name": "w", "command": "x", "taskNumber": 0, "cpuNumbers": 1}]
}
"""
HAN = re.compile("[\u4e00-\u9fff]")


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "bad.json"
    path.write_text(BAD)
    return path


def pai(*words: str, **variables: str) -> tuple[int, str, str]:
    done = run_pai(*words, env={**os.environ, **variables})
    return done.returncode, done.stdout, done.stderr


def test_faults_are_in_chinese_with_line_and_column(bad: Path) -> None:
    code, _, told = pai("validate", str(bad), PAI_LANG="zh_CN")
    assert code == 2
    assert f"{bad}:4:61 $.taskRoles[0].taskNumber: taskNumber 不能小于 1" in told or (
        "bad.json:4:61 $.taskRoles[0].taskNumber: taskNumber 不能小于 1" in told
    )
    assert '任务角色中有未知字段 "cpuNumbers"' in told
    assert '是不是 "cpuNumber"？' in told
    assert "must be" not in told


def test_english_is_as_it_was(bad: Path) -> None:
    _, _, told = pai("validate", str(bad), PAI_LANG="en")
    assert "taskNumber must be at least 1" in told
    assert HAN.search(told) is None


def test_json_has_english_and_how_it_was_made(bad: Path) -> None:
    _, out, _ = pai("validate", str(bad), "--json", PAI_LANG="zh_CN")
    fault = json.loads(out)["errors"][0]
    assert fault["message"] == "taskNumber must be at least 1"
    assert fault["wording"] == {
        "template": "{name} must be at least {low}",
        "arguments": {"name": "taskNumber", "low": "1"},
    }


def test_warnings_of_a_valid_document_are_in_chinese(tmp_path: Path) -> None:
    path = tmp_path / "good.json"
    path.write_text(BAD.replace('"taskNumber": 0, "cpuNumbers": 1', '"taskNumber": "3"'))
    code, out, _ = pai("validate", str(path), PAI_LANG="zh_CN")
    assert code == 0
    assert "taskNumber 是写成文本的数字" in out


def test_what_a_backend_refuses_is_in_chinese(backend: Client, bad: Path) -> None:
    endpoint = backend.api.endpoint
    variables = {"PAI_URL": endpoint.url, "PAI_TOKEN": endpoint.token, "PAI_LANG": "zh_CN"}
    code, _, told = pai("submit", str(bad), **variables)
    assert (code, "taskNumber 不能小于 1" in told) == (2, True)
    code, _, told = pai("status", "missing", **variables)
    assert (code, "没有作业 'missing'。" in told) == (2, True)
    code, out, told = pai("status", "missing", "--json", **variables)
    body = json.loads(out or told)
    assert "There is no job 'missing'." in json.dumps(body)
    assert "There is no job {name}." in json.dumps(body)
