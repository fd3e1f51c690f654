"""What must be true of any input: reading, masking and converting answer with a document or a DocumentError, soon."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pai_backend.model.errors import DocumentError
from pai_backend.model.spec import Dialect
from pai_backend.protocol import Document, read_document
from pai_backend.protocol.convert import to_v1, to_v2
from pai_backend.protocol.fields import MAX_REPORTED
from pai_backend.protocol.mask import MASKED_WHOLE, masked
from tests.support.interpreter_steps import interpreter_steps
from tests.support.processor_time import ENOUGH_S, processor_time

MAX_STEPS: Final = 1_000_000
"""Of one check of one input, which has a few kilobytes: ten times the dearest known. The largest texts have their own
tests."""
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
    assert "hunter2" not in str(after.secrets)
    assert masked(result) == result
    if document.dialect in V2:
        assert [role.name for role in after.spec.task_roles] == [role.name for role in document.spec.task_roles]
        assert [role.image_auth for role in after.spec.task_roles] == [
            role.image_auth for role in document.spec.task_roles
        ]


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


CHECKS: Final[dict[str, Callable[[bytes], None]]] = {
    "reading": check_reading,
    "masking": check_masking,
    "converting": check_converting,
}


def bounded(name: str, source: bytes) -> None:
    """Run the check of that name and bound what it takes."""
    steps = 0

    def check() -> None:
        nonlocal steps
        steps = interpreter_steps(lambda: CHECKS[name](source))

    assert processor_time(check) < ENOUGH_S
    assert steps < MAX_STEPS
