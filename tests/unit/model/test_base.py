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

JOBS = 300
JOB_KIB = 12.0
"""More than a job of one task takes, nothing of it shared with others; 22 KiB when each value had its own names."""

counts = st.dictionaries(st.sampled_from(sorted(Retries.model_fields)), st.integers(0, 9))


@given(counts, counts)
def test_a_value_knows_which_fields_it_was_given_whoever_shares_their_names(
    first: dict[str, int], second: dict[str, int]
) -> None:
    values = [Retries(**first), Retries.model_validate(second), Retries.model_construct(**first)]
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
