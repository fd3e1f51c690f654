"""No JSON text of the largest size is dear to read, whoever wrote it.

The floor of 100 ms is held by the benchmarks, on a quiet machine; here the steps of the same texts are counted, and the
100 MiB are as they are.
"""

from __future__ import annotations

import contextlib
import tracemalloc

import pytest

from pai_backend.model.errors import DocumentError, Fault
from pai_backend.protocol import read_document
from pai_backend.protocol.fields import MAX_REPORTED
from pai_backend.protocol.locate import MAX_BRACKETS, MAX_VALUES
from pai_backend.protocol.tree import Positions
from pai_backend.protocol.v1 import MAX_VARIABLES
from tests.support.hostile_json import LARGEST, TEXTS, THOUSAND_ROLES
from tests.support.interpreter_steps import interpreter_steps
from tests.support.processor_time import ENOUGH_S, processor_time

MAX_STEPS = 2_500_000
"""Twice those of the dearest text."""
MEMORY_BYTES = 100 * 1_048_576


def faults_of(text: str) -> tuple[Fault, ...]:
    try:
        read_document(text)
    except DocumentError as error:
        return error.errors
    return ()


@pytest.mark.parametrize("name", TEXTS)
def test_a_hostile_text_takes_bounded_time_and_lists_bounded_faults(name: str) -> None:
    text = TEXTS[name]
    assert len(text.encode()) <= LARGEST
    assert interpreter_steps(lambda: faults_of(text)) < MAX_STEPS
    assert processor_time(lambda: faults_of(text)) < ENOUGH_S
    assert len(faults_of(text)) <= MAX_REPORTED + 1


@pytest.mark.parametrize("name", ["full roles", "variables", "lists", "too many values", "a command of four bytes"])
def test_a_hostile_text_takes_bounded_memory(name: str) -> None:
    tracemalloc.start()
    try:
        with contextlib.suppress(DocumentError):
            read_document(TEXTS[name])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MEMORY_BYTES


def test_a_job_of_a_thousand_roles_is_read() -> None:
    spec = read_document(THOUSAND_ROLES).spec
    assert len(spec.task_roles) == 1000
    assert spec.task_roles[999].ports[1].label == "b"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("too many values", f"more than {MAX_VALUES} values"),
        ("too many roles", "5990 task roles, more than 1000"),
        ("too many ports", "5990 entries in a port list, more than 256"),
        ("open brackets", "more than 64 levels of brackets"),
    ],
)
def test_a_limit_is_named_in_the_fault(name: str, said: str) -> None:
    assert said in faults_of(TEXTS[name])[0].message


def test_brackets_have_a_limit_of_their_own() -> None:
    with pytest.raises(DocumentError, match=f"more than {MAX_BRACKETS} objects and lists"):
        read_document('{"a":[' + "{}," * MAX_BRACKETS + "0]}")


def test_counting_lines_takes_time_linear_in_the_text() -> None:
    text = "\r\n" * 500_000
    positions = Positions(text)

    def count() -> None:
        assert positions.line_column(len(text)) == (500_001, 1)
        assert [positions.line_column(2 * line) for line in range(0, 500_000, 5_000)] == [
            (line + 1, 1) for line in range(0, 500_000, 5_000)
        ]

    assert processor_time(count) < ENOUGH_S


def test_more_variables_than_a_program_can_take_are_one_fault() -> None:
    env = ",".join(f'"a{number}": 0' for number in range(MAX_VARIABLES + 1))
    role = '{"name": "r", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0, "command": "true"}'
    text = f'{{"jobName": "j", "image": "i", "jobEnvs": {{{env}}}, "taskRoles": [{role}]}}'
    with pytest.raises(DocumentError) as caught:
        read_document(text)
    assert [(fault.path, fault.message) for fault in caught.value.errors] == [
        ("$.jobEnvs", "10001 variables in jobEnvs, more than 10000")
    ]
