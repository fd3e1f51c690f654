"""``nodeSelector`` in documents of v1 and in what they are converted to."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from pai_backend.model.errors import DocumentError
from pai_backend.protocol import Document, read_document
from pai_backend.protocol.convert import to_v1, to_v2
from pai_backend.protocol.own_fields import MOST_LABELS

LABELS = {"zone": "a", "example.org/rack": ""}


def in_v1(own: Any) -> Document:
    role = {"name": "r", "command": "x", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0}
    return read_document(json.dumps({"jobName": "j", "image": "i", "taskRoles": [role], "extras": {"jupyterPai": own}}))


def test_v1_follows_it_beside_the_expected_run_time() -> None:
    spec = in_v1({"nodeSelector": LABELS, "expectedRunTime": "2h"}).spec
    assert (spec.node_selector, spec.expected_run_s) == (LABELS, 7200)
    assert in_v1({}).spec.node_selector == {}


def test_conversions_keep_it_where_it_stands() -> None:
    in_v2 = to_v2(in_v1({"nodeSelector": LABELS, "note": 1}))
    assert yaml.safe_load(in_v2.text)["extras"]["jupyterPai"] == {
        "nodeSelector": LABELS,
        "extras": {"jupyterPai": {"note": 1}},
    }
    assert read_document(in_v2.text).spec.node_selector == LABELS
    back = to_v1(read_document(in_v2.text))
    assert json.loads(back.text)["extras"]["jupyterPai"] == {"nodeSelector": LABELS}


def test_a_selector_has_a_bounded_number_of_labels() -> None:
    labels = {f"label{number}": "x" for number in range(MOST_LABELS + 1)}
    with pytest.raises(DocumentError) as caught:
        in_v1({"nodeSelector": labels})
    (fault,) = caught.value.errors
    assert (fault.path, fault.message) == ("$.extras.jupyterPai.nodeSelector", "nodeSelector has 33 labels")
    labels.popitem()
    assert in_v1({"nodeSelector": labels}).spec.node_selector == labels


def test_every_label_that_is_none_is_told_at_once() -> None:
    with pytest.raises(DocumentError) as caught:
        in_v1({"nodeSelector": {"-a": "x", "b": "y/z", "c": 1, "d-": "x"}})
    assert [fault.path.rpartition("nodeSelector")[2] for fault in caught.value.errors] == [
        '["-a"]',
        ".b",
        ".c",
        '["d-"]',
    ]
    assert all(fault.hint for fault in caught.value.errors)
