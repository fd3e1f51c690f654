"""OpenPAI's file of services around a cluster configuration, as the seeds' lab has it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pai_backend.model.errors import DocumentError
from pai_backend.scheduling.config.read import read_config
from tests.support.lab_config import TWO_VCS


def indented(text: str, by: int = 4) -> str:
    return "".join(" " * by + line if line.strip() else line for line in text.splitlines(keepends=True))


def test_the_lab_s_file_is_read_as_it_is() -> None:
    for outer in ("hivedscheduler:\n  config: |\n", "# pushed\n---\nhivedscheduler:\n  config: |-\n"):
        assert read_config(outer + indented(TWO_VCS)) == read_config(TWO_VCS)
    mapping = read_config("hivedscheduler:\n  config:\n" + indented(TWO_VCS))
    assert mapping == read_config(TWO_VCS)


def test_other_services_are_told_and_passed_over() -> None:
    text = "rest-server: {replicas: 2}\nhivedscheduler:\n  config: |\n" + indented(TWO_VCS) + "webportal:\n  port: 80\n"
    config = read_config(text)
    last = len(text.splitlines())
    assert [(fault.path, fault.line) for fault in config.warnings] == [("$.rest-server", 1), ("$.webportal", last)]
    assert replace(config, warnings=()) == read_config(TWO_VCS)


def test_a_fault_inside_has_its_place_in_the_whole_file() -> None:
    text = "hivedscheduler:\r\n  config: |\r\n" + indented(TWO_VCS.replace("cellNumber: 1}", "cellNumber: x}", 1))
    with pytest.raises(DocumentError) as caught:
        read_config(text)
    (fault,) = caught.value.errors
    line, column = fault.line or 0, fault.column or 0
    assert text.splitlines()[line - 1][column - 1] == "x"
    assert fault.path == "$.virtualClusters.default.virtualCells[0].cellNumber"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hivedscheduler: {}\n", "hivedscheduler has no config"),
        ("hivedscheduler:\n  config: 'physicalCluster: {}'\n", "hivedscheduler has no config"),
        ("hivedscheduler:\n  config: |\n\nother: 1\n", "the configuration must be a mapping"),
        ("physicalCluster: {}\nhivedscheduler: {config: {}}\n", "hivedscheduler and physicalCluster are both given"),
    ],
)
def test_what_has_no_configuration_inside_is_refused(text: str, message: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read_config(text)
    assert caught.value.errors[0].message == message
