"""No text of the largest size is dear to read, whoever wrote it.

The floor of 100 ms is held by the benchmarks, on a quiet machine; here the steps of the same texts are counted, and the
100 MiB are as they are.
"""

from __future__ import annotations

import contextlib
import tracemalloc

import pytest

from pai_backend.model.errors import DocumentError
from pai_backend.protocol import read_document
from pai_backend.protocol.yaml_tree import MAX_NODES
from tests.support.hostile_yaml import LARGEST, TEXTS
from tests.support.interpreter_steps import interpreter_steps
from tests.support.processor_time import ENOUGH_S, processor_time

MAX_STEPS = 5_000_000
"""Twice those of the dearest text."""
MEMORY_BYTES = 100 * 1_048_576


@pytest.mark.parametrize("name", TEXTS)
def test_a_hostile_text_takes_bounded_time_and_memory(name: str) -> None:
    text = TEXTS[name]
    assert len(text.encode()) <= LARGEST

    def read() -> None:
        with contextlib.suppress(DocumentError):
            read_document(text, "job.yaml")

    assert interpreter_steps(read) < MAX_STEPS
    assert processor_time(read) < ENOUGH_S


@pytest.mark.parametrize("name", ["items", "flow items", "roles by alias", "printed lists", "a plain text", "keys"])
def test_a_hostile_text_takes_bounded_memory(name: str) -> None:
    tracemalloc.start()
    try:
        with contextlib.suppress(DocumentError):
            read_document(TEXTS[name], "job.yaml")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MEMORY_BYTES


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("items", f"more than {MAX_NODES} keys and values"),
        ("roles by alias", f"more than {MAX_NODES} keys and values"),
        ("lists of aliases", f"more than {MAX_NODES} keys and values"),
        ("merges", f"more than {MAX_NODES} keys and values"),
        ("long aliases", "more than 4194304 characters"),
        ("deep aliases", "more than 64 levels"),
        ("open brackets", "more than 64 levels"),
        ("documents", "more than 32 documents"),
        ("too many roles", "taskRoles has 2500 members, more than 1000"),
        ("many plugins in many roles", "com.microsoft.pai.runtimeplugin has 2000 members, more than 32"),
        ("plugins in many roles", "plugins with more than 10000 lines"),
        ("a chain of prerequisites", "plugins with more than 10000 lines"),
        ("storages at one place", "storages has 7000 members, more than 100"),
        ("tags in a command", "more than 15000 tags"),
    ],
)
def test_the_limit_that_was_met_is_said(name: str, said: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read_document(TEXTS[name], "job.yaml")
    assert any(said in fault.message for fault in caught.value.errors)


def test_a_thousand_roles_are_read() -> None:
    assert len(read_document(TEXTS["small roles"]).spec.task_roles) == 1_000
