"""Laws of reading whatever the text: an answer or a list of faults, each at a real place."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pai_backend.model.errors import DocumentError, Fault
from pai_backend.protocol import Document, read_document
from pai_backend.protocol.locate import locate

DOCUMENTS = [path.read_text() for path in sorted((Path(__file__).parents[2] / "data" / "documents").glob("*.json"))]
PIECES = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"',
    "\\",
    "//",
    "/*",
    "*/",
    "\n",
    "\r",
    "\t",
    " ",
    "'",
    "#",
    "\ufeff",
    "\u00a0",
]
PIECES += [
    "null",
    "true",
    "1",
    "-",
    "1e3",
    "1.5",
    "NaN",
    "9" * 30,
    '"a"',
    r"\u",
    r"\ud800",
    r"\n",
    "，",
    "“",
    "é",
    "\x00",
]
PIECES += ['"jobName"', '"taskRoles"', '"portList"', '"command"', '"protocolVersion"', "QIZHI_"]


@st.composite
def damaged_documents(draw: st.DrawFn) -> str:
    """A real document with a few pieces put in, taken out or replaced."""
    text = draw(st.sampled_from(DOCUMENTS))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(text)))
        cut = draw(st.integers(0, 8))
        text = text[:at] + draw(st.sampled_from(["", *PIECES])) + text[at + cut :]
    return text


ANY_TEXT = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=60).map("".join), damaged_documents())


def read(text: str | bytes) -> Document | tuple[Fault, ...]:
    try:
        return read_document(text)
    except DocumentError as error:
        return error.errors


def points_into(text: str, fault: Fault) -> bool:
    """Whether line and column name a character of the text, or the end of a line."""
    lines = re.split(r"\r\n?|\n", text.removeprefix("\ufeff"))
    if fault.line is None or fault.column is None:
        return False
    return 1 <= fault.line <= len(lines) and 1 <= fault.column <= len(lines[fault.line - 1]) + 1


@settings(deadline=None)
@given(st.one_of(st.binary(), ANY_TEXT.map(lambda text: text.encode(errors="replace"))))
def test_any_bytes_are_a_document_or_faults(source: bytes) -> None:
    answer = read(source)
    if isinstance(answer, Document):
        assert answer.source == source
    else:
        assert answer
        assert all(fault.message and fault.hint and fault.path.startswith("$") for fault in answer)


@settings(deadline=None)
@given(ANY_TEXT)
def test_each_fault_points_into_the_text(text: str) -> None:
    answer = read(text)
    if not isinstance(answer, Document):
        for fault in answer:
            assert points_into(text, fault), fault


@settings(deadline=None)
@given(ANY_TEXT)
def test_reading_twice_gives_the_same_answer(text: str) -> None:
    assert read(text) == read(text)


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8")))
def test_the_source_of_a_comment_is_kept(comment: str) -> None:
    source = (DOCUMENTS[0] + "// " + re.sub(r"[\r\n]", " ", comment)).encode()
    answer = read(source)
    assert isinstance(answer, Document)
    assert answer.source == source


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=5), JSON), st.sampled_from([None, 1, "\t"]), st.booleans())
def test_json_reads_as_the_standard_library_reads_it(value: dict[str, object], indent: int | str, plain: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=plain)
    located = locate(text)
    if r"\u0000" in text:
        assert located.flaws
    else:
        assert located.root is not None
        assert located.root.plain() == value


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_reads_as_the_number_it_is(number: float) -> None:
    root = locate(json.dumps({"n": number})).root
    assert root is not None
    assert root.plain() == {"n": number}


@pytest.mark.parametrize("shift", [(1000, 0), (0, 1000), (-1000, 0), (0, -1000)])
def test_the_law_of_places_refuses_a_place_outside(shift: tuple[int, int]) -> None:
    faults = read("{} x")
    assert isinstance(faults, tuple)
    (fault,) = faults
    assert points_into("{} x", fault)
    wrong = fault.model_copy(update={"line": (fault.line or 0) + shift[0], "column": (fault.column or 0) + shift[1]})
    assert not points_into("{} x", wrong)
