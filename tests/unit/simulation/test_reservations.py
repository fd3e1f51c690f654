"""Reservations of a trace: who waits for them, and who uses them."""

from __future__ import annotations

import json

import pytest

from pai_backend.model.errors import DocumentError
from pai_backend.scheduling import read_config
from pai_backend.simulation import Trace, replay
from pai_backend.simulation.fate import RunOutcome
from pai_backend.simulation.reading import read_trace
from pai_backend.simulation.trace import Reservation
from tests.unit.simulation.test_replay import PAIR, arrival, fate


def course(**changes: object) -> Reservation:
    """All GPUs of ``a`` from second 100 to 200, for sue."""
    told = {"at": 0, "name": "course", "vc": "a", "gpus": 4, "begins": 100, "ends": 200, "users": ("sue",), **changes}
    return Reservation.model_validate(told)


def test_others_wait_unless_they_are_stopped_before_and_sue_starts_when_it_begins() -> None:
    events = (
        course(),
        arrival("into", 1, 30, gpus=4),
        arrival("bound", 2, 80, gpus=4, longest=50),
        arrival("sues", 3, 60, gpus=4, user="sue"),
    )
    report = replay(read_config(PAIR), Trace.of(events))
    bound = fate(report, "bound")
    assert (bound.started_s, bound.stopped_s) == (2, 52)
    assert [spell.outcome for spell in bound.spells] == [RunOutcome.OVERRUN]
    assert (fate(report, "sues").started_s, fate(report, "sues").ended_s) == (100, 160)
    assert fate(report, "into").started_s == 200, "though all is idle from second 160 on"


def test_it_is_a_line_of_a_trace() -> None:
    line = '{"at": 0, "event": "reserve", "name": "course", "vc": "a", "gpus": 4, "begins": 100, "ends": 200}'
    trace = read_trace(line + "\n" + json.dumps({"at": 1, "name": "g", "vc": "a", "duration": 9}))
    assert fate(replay(read_config(PAIR), trace), "g").started_s == 100


@pytest.mark.parametrize(("wrong", "said"), [({"vc": "z"}, "no virtual cluster z"), ({"type": "K80"}, "type K80")])
def test_what_does_not_exist_is_a_fault(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(DocumentError, match=said):
        replay(read_config(PAIR), Trace.of([course(**wrong), arrival("g", 1, 30)]))


def test_it_ends_after_it_begins() -> None:
    line = '{"at": 0, "event": "reserve", "name": "course", "vc": "a", "gpus": 4, "begins": 100, "ends": 100}'
    with pytest.raises(DocumentError, match="it ends before it begins"):
        read_trace(line)
