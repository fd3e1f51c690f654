"""Whatever the input, reading, masking and converting answer with a document or a DocumentError, soon.

Runs for PAI_FUZZ_S seconds in all (30 when that is not set): rounds of Hypothesis, so that what is found is shrunk
and kept, and tried first the next time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings

from pai_backend.model.errors import DocumentError
from pai_backend.model.spec import Dialect
from pai_backend.protocol import Document, read_document
from pai_backend.protocol.convert import to_v1, to_v2
from pai_backend.protocol.fields import MAX_REPORTED
from pai_backend.protocol.mask import MASKED_WHOLE, masked
from tests.fuzz.inputs import CORPUS, SOURCES
from tests.support.processor_time import processor_time

BUDGET_S = float(os.environ.get("PAI_FUZZ_S", "30"))
INPUT_S = 1.0
"""Processor time of one input, which has a few kilobytes: the largest texts have their own tests."""
ROUND = settings(deadline=None, max_examples=200, suppress_health_check=list(HealthCheck))

V2 = (Dialect.OPENPAI_V2, Dialect.OPENPAI_V2_DRAFT)


def read(source: bytes) -> Document | None:
    """The document, or None when it has faults, which are whole."""
    try:
        document = read_document(source)
    except DocumentError as error:
        faults = error.errors
    else:
        assert document.source == source
        assert read_document(source) == document
        return document
    assert faults
    assert all(fault.message and fault.hint and fault.path.startswith("$") for fault in faults)
    assert all(fault.line is not None and fault.column is not None for fault in faults[:MAX_REPORTED])
    return None


def check_reading(source: bytes) -> None:
    document = read(source)
    if document is not None:
        text = f"{document!r} {document.warnings}"
        assert "hunter2" not in text


def check_masking(source: bytes) -> None:
    result = masked(source)
    document = read(source)
    if document is None or result == MASKED_WHOLE:
        return
    after = read(result)
    assert after is not None
    assert after.secrets.keys() == document.secrets.keys()
    assert masked(result) == result
    if document.dialect in V2:
        assert [role.name for role in after.spec.task_roles] == [role.name for role in document.spec.task_roles]


def check_converting(source: bytes) -> None:
    document = read(source)
    if document is None:
        return
    for convert, dialects in ((to_v1, (Dialect.OPENPAI_V1, Dialect.QIZHI)), (to_v2, (Dialect.OPENPAI_V2,))):
        try:
            converted = convert(document)
        except DocumentError:
            continue
        assert read_document(converted.text).dialect in dialects
        assert all(loss.path.startswith("$") and loss.message for loss in converted.lost)


CHECKS = {"reading": check_reading, "masking": check_masking, "converting": check_converting}


def bounded(check: Callable[[bytes], None], source: bytes) -> None:
    assert processor_time(lambda: check(source)) < INPUT_S


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.timeout(BUDGET_S + 120)
def test_any_input_is_answered(name: str) -> None:
    @ROUND
    @given(SOURCES)
    def one_round(source: bytes) -> None:
        bounded(CHECKS[name], source)

    end = time.monotonic() + BUDGET_S / len(CHECKS)
    while time.monotonic() < end:
        one_round()


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("number", range(len(CORPUS)))
def test_the_documents_it_starts_from_are_answered(name: str, number: int) -> None:
    bounded(CHECKS[name], CORPUS[number])


def test_the_checks_find_what_they_look_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(source: bytes) -> Document:
        raise ValueError("not a DocumentError")

    monkeypatch.setattr("tests.fuzz.test_readers.read_document", wrong)
    with pytest.raises(ValueError, match="not a DocumentError"):
        check_reading(CORPUS[0])
