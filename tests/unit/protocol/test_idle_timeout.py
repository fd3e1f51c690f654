"""``idleTimeout`` in documents of v1 and v2, in ``extras`` and in ``extras.jupyterPai``, and in conversions."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from pai_backend.model.errors import DocumentError
from pai_backend.protocol import Document, read_document
from pai_backend.protocol.convert import to_v1, to_v2

IN_V2 = """\
protocolVersion: 2
name: j
type: job
prerequisites: [{name: i, type: dockerimage, uri: i}]
taskRoles:
  r: {dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}, commands: [x]}
extras:
"""


def in_v1(extras: Any) -> Document:
    role = {"name": "r", "command": "x", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0}
    return read_document(json.dumps({"jobName": "j", "image": "i", "taskRoles": [role], "extras": extras}))


@pytest.mark.parametrize("extras", [{"idleTimeout": "90m"}, {"jupyterPai": {"idleTimeout": "1h30m"}}])
def test_both_places_are_followed_in_both_protocols_and_kept_by_conversions(extras: dict[str, Any]) -> None:
    first = in_v1(extras)
    second = read_document(IN_V2 + "".join(f"  {line}\n" for line in yaml.safe_dump(extras).splitlines()))
    for document in (first, second):
        assert document.spec.idle_timeout_s == 5400
        assert not document.warnings
        there = read_document(to_v2(document).text)
        assert there.spec.idle_timeout_s == 5400
        back = read_document(to_v1(there).text)
        assert back.spec.idle_timeout_s == 5400
        assert "idleTimeout" in (back.spec.extras if "idleTimeout" in extras else back.spec.extras["jupyterPai"])


def test_a_job_without_it_is_never_idle() -> None:
    assert in_v1({}).spec.idle_timeout_s is None
    assert in_v1({"idleTimeout": None, "jupyterPai": {"note": 1}}).spec.idle_timeout_s is None
    assert read_document(IN_V2 + "  other: 1\n").spec.idle_timeout_s is None


@pytest.mark.parametrize(
    ("extras", "path", "said"),
    [
        ({"idleTimeout": 3600}, "$.extras.idleTimeout", "idleTimeout has no unit"),
        ({"idleTimeout": "soon"}, "$.extras.idleTimeout", "idleTimeout is not a known duration"),
        ({"idleTimeout": "9s"}, "$.extras.idleTimeout", "idleTimeout must be from 10 seconds to 365 days"),
        ({"jupyterPai": {"idleTimeout": "366d"}}, "$.extras.jupyterPai.idleTimeout", "must be from 10 seconds to 365"),
        (
            {"idleTimeout": "1h", "jupyterPai": {"idleTimeout": "1h"}},
            "$.extras.jupyterPai.idleTimeout",
            "idleTimeout is also given in extras",
        ),
    ],
)
def test_a_mistake_is_a_fault_with_its_place_and_remedy(extras: dict[str, Any], path: str, said: str) -> None:
    in_yaml = IN_V2 + "".join(f"  {line}\n" for line in yaml.safe_dump(extras).splitlines())
    readers: list[Callable[[], object]] = [lambda: in_v1(extras), lambda: read_document(in_yaml)]
    for read in readers:
        with pytest.raises(DocumentError) as caught:
            read()
        (fault,) = caught.value.errors
        assert fault.path == path
        assert said in fault.message
        assert fault.hint
        assert fault.line
