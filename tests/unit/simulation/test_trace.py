"""Traces: what a line may say, and what is answered to lines that are wrong."""

from __future__ import annotations

import json

import pytest

from pai_backend.model.errors import DocumentError, Fault
from pai_backend.scheduling import Group, Member
from pai_backend.simulation import read_trace
from pai_backend.simulation.reading import MOST_FAULTS

LINE = {"at": 5, "name": "g", "vc": "a", "duration": 60}


def line(**fields: object) -> str:
    return json.dumps(LINE | fields)


def faults(text: str) -> list[Fault]:
    with pytest.raises(DocumentError) as caught:
        read_trace(text)
    return list(caught.value.errors)


def test_a_line_with_only_what_is_needed_is_one_task_with_one_gpu() -> None:
    (arrival,) = read_trace(line()).arrivals
    assert arrival.group == Group("g", "a", (Member(1, 1),), priority=10)
    assert (arrival.at, arrival.duration, arrival.user) == (5.0, 60.0, "")


def test_every_field_reaches_the_group() -> None:
    fields = {"tasks": 2, "gpus": 4, "priority": 100, "type": "V100", "pinned": "P", "within": "RACK", "lazy": True}
    (arrival,) = read_trace(line(**fields)).arrivals
    assert arrival.group == Group("g", "a", (Member(2, 4),), 100, "V100", "P", True, "RACK")


def test_arrivals_are_ordered_by_time_and_those_of_one_instant_as_written() -> None:
    text = "\n".join([line(name="late", at=9), "", line(name="first", at=1), line(name="second", at=1)])
    assert [arrival.name for arrival in read_trace(text).arrivals] == ["first", "second", "late"]


def test_all_faults_are_listed_with_their_lines() -> None:
    text = "\n".join([line(duration=0), "{", line(gpu=3), line(name="x"), line(name="x")])
    assert [(fault.line, fault.path) for fault in faults(text)] == [
        (1, "$.duration"),
        (2, ""),
        (3, "$.gpu"),
        (5, "$.name"),
    ]


def test_a_misspelled_field_is_answered_with_the_right_one() -> None:
    assert faults(line(gpu=3))[0].hint == "Did you mean gpus?"


@pytest.mark.parametrize(
    "fields",
    [
        {"at": -1},
        {"at": float("nan")},
        {"at": 1e300},
        {"duration": float("inf")},
        {"tasks": 0},
        {"gpus": 1.5},
        {"gpus": True},
        {"gpus": "1"},
        {"priority": 1001},
        {"priority": -2},
        {"name": ""},
        {"lazy": "yes"},
    ],
)
def test_a_value_that_cannot_be_is_refused_at_its_field(fields: dict[str, object]) -> None:
    (fault,) = faults(line(**fields))
    assert fault.path == f"$.{next(iter(fields))}"
    assert fault.line == 1


@pytest.mark.parametrize(
    "text", ["", "\n \n", "[1]", "7", "[" * 100_000, '{"at": ' + "1" * 5000 + "}", '{"at":1,"at":2}']
)
def test_what_is_no_trace_is_refused_in_words(text: str) -> None:
    (fault, *_) = faults(text)
    assert fault.message
    assert fault.line == 1


def test_of_many_faults_the_first_ones_are_listed_and_all_are_counted() -> None:
    text = "\n".join(["{"] * (MOST_FAULTS + 50))
    with pytest.raises(DocumentError, match=f"{MOST_FAULTS + 50} faults"):
        read_trace(text)
    assert len(faults(text)) == MOST_FAULTS


@pytest.mark.parametrize(
    ("text", "path", "column"),
    [
        (line(gpu=3), "$.gpu", 51),
        (line(min=2), "$.min", 51),
        (line(members=[{"tasks": 1, "gpus": 0}]), "$.members[0].gpus", 51),
        (line(members=[{"tasks": 1}], tasks=2), "$.tasks", 78),
        (line(event="explode"), "$.event", 51),
        (line(pinned="P", priority=-1), "$.pinned", 51),
        ('{"at": 1, "event": "fail"}', "$.node", 1),
        ('  {"at": 1, "event": "repair", "node": "n", "devices": 3}', "$.devices", 45),
        ('{"at": 1, "event": "cancel", "name": "nobody"}', "$.name", 30),
    ],
)
def test_a_fault_tells_the_column_of_its_field(text: str, path: str, column: int) -> None:
    (fault,) = faults(text)
    assert (fault.line, fault.path, fault.column) == (1, path, column)


def test_a_group_cannot_be_cancelled_before_it_arrives() -> None:
    (fault,) = faults(line() + '\n{"at": 4, "event": "cancel", "name": "g"}')
    assert (fault.line, fault.path) == (2, "$.at")


def test_unequal_members_reach_the_group_with_their_least_and_their_cell() -> None:
    members = [{"tasks": 4, "gpus": 2, "min": 1, "within": "SOCKET"}, {"gpus": 8}]
    (arrival,) = read_trace(line(members=members, within="RACK")).arrivals
    assert arrival.group.members == (Member(4, 2, 1, "SOCKET"), Member(1, 8))
    assert arrival.group.within == "RACK"
