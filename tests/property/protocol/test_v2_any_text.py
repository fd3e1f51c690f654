"""Whatever the text, reading YAML ends in a document or in faults with places inside of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from pai_backend.model.errors import DocumentError, Fault
from pai_backend.protocol import Document, read_document

DATA = Path(__file__).parents[2] / "data" / "documents"
WHOLE = [path.read_text() for path in sorted(DATA.rglob("*.yaml"))]
PIECES = [
    "protocolVersion: 2\n",
    "type: job\n",
    "taskRoles:\n",
    "  worker:\n",
    "    commands:\n",
    "      - ",
    "- ",
    "? ",
]
PIECES += [
    "name: a\n",
    "prerequisites:\n",
    "extras:\n",
    "secrets:\n",
    "parameters: ",
    "com.microsoft.pai.runtimeplugin:\n",
]
PIECES += [
    "<% $parameters.a %>",
    "<% $secrets.x[0] %>",
    "<%",
    "%>",
    "&a ",
    "*a",
    "<<: *a\n",
    "!!int ",
    "!x ",
    "|\n",
    ">-\n",
    "---\n",
]
PIECES += [
    "...\n",
    "%YAML 1.2\n",
    "[",
    "]",
    "{",
    "}",
    ",",
    ": ",
    ":\n",
    " ",
    "\n",
    "\r",
    "\t",
    "#",
    "'",
    '"',
    "\\",
    "1e3",
    "null",
    "\ufeff",
    "é",
]


def read(text: str) -> Document | None:
    """The document, or None after looking at its faults."""
    try:
        return read_document(text, "job.yaml")
    except DocumentError as error:
        check(text, error.errors)
        return None


def check(text: str, faults: Sequence[Fault]) -> None:
    """Every fault says what is wrong at a place inside of the text."""
    lines = text.count("\n") + text.count("\r") + 1
    assert faults
    for fault in faults:
        assert fault.message
        assert fault.path.startswith("$")
        assert fault.line is not None
        assert 1 <= fault.line <= lines
        assert fault.column is not None
        assert fault.column >= 1


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_pieces_of_yaml_in_any_order(text: str) -> None:
    read(text)


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(WHOLE), st.data())
def test_a_document_with_a_piece_put_in_or_taken_out(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = start + data.draw(st.integers(0, 40))
    changed = text[:start] + data.draw(st.sampled_from(["", *PIECES])) + text[end:]
    document = read(changed)
    if document is not None:
        assert document.source == changed.encode()
        assert document.spec.task_count >= 1
