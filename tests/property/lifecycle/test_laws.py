"""The laws of ``step`` over random lives, and proof that they can fail."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pai_backend.lifecycle.step import step
from pai_backend.model.errors import Bug
from pai_backend.model.job import Job
from tests.mutants import lifecycle as mutants
from tests.property.lifecycle.walks import Step, Story, drain, jobs


def walk(machine: Step, job: Job, data: st.DataObject, steps: int = 30) -> Story:
    story = Story(job)
    for _ in range(steps):
        story.take(machine, data)
    return story


@settings(max_examples=100, deadline=None)
@given(job=jobs, data=st.data())
def test_every_life_keeps_the_laws_and_can_be_ended(job: Job, data: st.DataObject) -> None:
    story = walk(step, job, data)
    assert drain(story, step).state.final, "\n".join(story.lines)


@pytest.mark.parametrize("mutant", mutants.ALL, ids=lambda mutant: mutant.__name__)
def test_a_wrong_machine_is_found_out(mutant: Step) -> None:
    @settings(max_examples=600, deadline=None, derandomize=True, phases=[Phase.generate], report_multiple_bugs=False)
    @given(job=jobs, data=st.data())
    def lives(job: Job, data: st.DataObject) -> None:
        assert drain(walk(mutant, job, data), mutant).state.final

    with pytest.raises((AssertionError, Bug)):
        lives()
