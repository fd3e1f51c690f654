"""``expectedRunTime`` in documents of v1 and in what they are converted to; how a time is written."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from pai_backend.model.duration import duration_text
from pai_backend.model.errors import DocumentError
from pai_backend.protocol import Document, read_document
from pai_backend.protocol.convert import to_v1, to_v2


def in_v1(own: Any, **extras: Any) -> Document:
    role = {"name": "r", "command": "x", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0}
    job = {"jobName": "j", "image": "i", "taskRoles": [role], "extras": {"jupyterPai": own, **extras}}
    return read_document(json.dumps(job))


@pytest.mark.parametrize(
    ("text", "seconds"), [("1s", 1), ("90m", 5400), ("2h30m", 9000), ("1d12h", 129_600), ("1d2h3m4s", 93_784)]
)
def test_a_time_is_read_from_its_units(text: str, seconds: int) -> None:
    assert in_v1({"expectedRunTime": text}).spec.expected_run_s == seconds
    assert in_v1({"expectedRunTime": duration_text(seconds)}).spec.expected_run_s == seconds


def test_a_time_is_written_in_the_largest_units() -> None:
    assert [duration_text(seconds) for seconds in (59, 3600, 5400, 129_600)] == ["59s", "1h", "1h30m", "1d12h"]


def test_v1_follows_it_and_keeps_what_else_stands_there_with_a_warning() -> None:
    document = in_v1({"expectedRunTime": "2h", "note": 1}, other=2)
    assert document.spec.expected_run_s == 7200
    assert document.spec.extras == {"jupyterPai": {"expectedRunTime": "2h", "note": 1}, "other": 2}
    assert [(one.code, one.path) for one in document.warnings] == [("unknown-field", "$.extras.jupyterPai.note")]
    assert in_v1(None).spec.expected_run_s is None


@pytest.mark.parametrize(
    ("own", "path", "said"),
    [
        ({"expectedRunTime": 7200}, "$.extras.jupyterPai.expectedRunTime", "expectedRunTime has no unit"),
        ({"expectedRunTime": "soon"}, "$.extras.jupyterPai.expectedRunTime", "not a known duration"),
        ({"expectedRuntime": "2h"}, "$.extras.jupyterPai.expectedRuntime", "unknown field"),
        ("2h", "$.extras.jupyterPai", "must be an object"),
    ],
)
def test_a_mistake_in_v1_is_a_fault_with_its_place(own: Any, path: str, said: str) -> None:
    with pytest.raises(DocumentError) as caught:
        in_v1(own)
    (fault,) = caught.value.errors
    assert fault.path == path
    assert said in fault.message
    assert fault.hint
    assert "7200" not in fault.message + fault.hint


def test_conversions_keep_it_where_it_stands() -> None:
    before = in_v1({"expectedRunTime": "90m", "note": 1})
    in_v2 = to_v2(before)
    assert yaml.safe_load(in_v2.text)["extras"]["jupyterPai"] == {
        "expectedRunTime": "1h30m",
        "extras": {"jupyterPai": {"note": 1}},
    }
    assert read_document(in_v2.text).spec.expected_run_s == 5400
    back = to_v1(read_document(in_v2.text))
    assert json.loads(back.text)["extras"]["jupyterPai"] == {"expectedRunTime": "1h30m"}
    assert read_document(back.text).spec.expected_run_s == 5400
    assert json.loads(to_v1(before).text)["extras"] == before.spec.extras
