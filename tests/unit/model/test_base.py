"""Values of models: which of their fields were given, and what they take in memory."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_backend.model.job import Job, Retries, Task
from pai_backend.testing.builders import make_job, make_spec
from tests.support.interpreters import run_alone

JOBS = 300
JOB_KIB = 12.0
"""More than a job of one task takes, nothing of it shared with others; 22 KiB when each value had its own names."""

counts = st.dictionaries(st.sampled_from(sorted(Retries.model_fields)), st.integers(0, 9))


@given(counts, counts)
def test_a_value_knows_which_fields_it_was_given_whoever_shares_their_names(
    first: dict[str, int], second: dict[str, int]
) -> None:
    values = [Retries(**first), Retries.model_validate(second), Retries.model_construct(None, **first)]
    assert [value.model_fields_set for value in values] == [first.keys(), second.keys(), first.keys()]
    assert values[0].model_dump(exclude_unset=True) == first


@given(counts, counts)
def test_a_copy_was_given_what_is_new_in_it_and_others_were_not(before: dict[str, int], update: dict[str, int]) -> None:
    value, other = Retries(**before), Retries(**before)
    for deep in (False, True):
        copied = value.model_copy(update=update, deep=deep)
        assert copied == Retries(**{**before, **update})
        assert copied.model_fields_set == before.keys() | update.keys()
    assert value == other
    assert value.model_fields_set == other.model_fields_set == before.keys()


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value)), Retries.model_copy]
)
def test_a_value_made_from_a_value_is_the_same(again: Callable[[Retries], Retries]) -> None:
    made = again(Retries(user=2))
    assert made == Retries(user=2)
    assert made.model_fields_set == {"user"}


def test_values_of_one_kind_share_the_names_of_their_fields() -> None:
    text = Retries(user=1).model_dump_json()
    assert Retries.model_validate_json(text).model_fields_set is Retries.model_validate_json(text).model_fields_set
    task = make_job("one").tasks[0].model_dump_json()
    assert Task.model_validate_json(task).model_fields_set is Task.model_validate_json(task).model_fields_set


CHANGED = """
import pydantic

class Elsewhere(pydantic.BaseModel):
    "Has no place of its own for the names, as a release that keeps them in another way."

pydantic.BaseModel = Elsewhere
from pai_backend.model import base
from pai_backend.model.job import Retries

assert base.SHARES_NAMES is False
first, second = Retries(user=1), Retries(user=2)
copied = first.model_copy(update={"platform": 3})
assert first.model_fields_set == second.model_fields_set == {"user"}
assert first.model_fields_set is not second.model_fields_set
assert copied.model_fields_set == {"user", "platform"}
assert copied == Retries(user=1, platform=3) and first == Retries(user=1)
"""


def test_a_pydantic_that_keeps_the_names_elsewhere_is_noticed_and_used_as_it_is() -> None:
    done = run_alone(CHANGED)
    assert done.returncode == 0, done.stderr


def test_a_job_takes_little_memory() -> None:
    text = make_job("one", spec=make_spec()).model_dump_json()
    Job.model_validate_json(text)  # whatever the first one makes for all
    tracemalloc.start()
    try:
        jobs = [Job.model_validate_json(text) for _ in range(JOBS)]
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken / len(jobs) < JOB_KIB * 1024
