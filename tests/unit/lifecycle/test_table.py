"""The table of task phases is complete, and refusing changes nothing."""

import pytest

from pai_backend.lifecycle.table import TASK_PHASES, TRANSITIONS, Happening, IllegalTransition, advance
from pai_backend.model.job import Phase


def test_every_phase_answers_every_happening_with_a_phase_or_an_explicit_refusal() -> None:
    assert set(TRANSITIONS) == set(TASK_PHASES)
    for phase, row in TRANSITIONS.items():
        assert set(row) == set(Happening), phase
        assert {target for target in row.values() if target is not None} <= set(TASK_PHASES)


@pytest.mark.parametrize(
    ("phase", "happening"),
    [(phase, happening) for phase, row in TRANSITIONS.items() for happening, to in row.items() if to is None],
)
def test_what_the_table_refuses_is_raised(phase: Phase, happening: Happening) -> None:
    with pytest.raises(IllegalTransition, match=phase.value):
        advance(phase, happening)


def test_nothing_leaves_the_end() -> None:
    assert {to for to in TRANSITIONS[Phase.ENDED].values() if to is not None} == {Phase.ENDED}


def test_every_living_phase_can_reach_the_end_by_stopping() -> None:
    for phase in TASK_PHASES:
        asked = advance(phase, Happening.STOP)
        assert asked is Phase.ENDED or advance(asked, Happening.EXITED) is Phase.ENDED
