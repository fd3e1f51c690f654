"""Every fault and warning of a document says how it was made, whatever the document is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings

from pai_backend.model.errors import DocumentError, Fault
from pai_backend.model.spec import DocumentWarning
from pai_backend.model.wording import Wording, text_of
from pai_backend.protocol import read_document
from pai_backend.protocol.convert import to_v1, to_v2
from tests.fuzz.inputs import SOURCES
from tests.unit.protocol import test_bad_input, test_v2_bad_input

ROOT = Path(__file__).resolve().parents[3]
CATALOGUE = json.loads((ROOT / "jupyter_pai/locale/zh_CN/LC_MESSAGES/jupyter_pai.json").read_text(encoding="utf-8"))
V2 = {name: test_v2_bad_input.GOOD.replace(row["old"], row["new"]) for name, row in test_v2_bad_input.MISTAKES.items()}
SECRET_VALUE = "hunter2"


def check(wording: Wording | None, english: str) -> None:
    assert wording is not None, english
    assert text_of(wording) == english
    assert_known(wording)


def assert_known(wording: Wording) -> None:
    assert wording.template in CATALOGUE
    for value in wording.arguments.values():
        if isinstance(value, Wording):
            assert_known(value)


def check_said(said: Fault | DocumentWarning) -> None:
    check(said.wording, said.message)
    if said.hint:
        check(said.hint_wording, said.hint)


def check_document(source: str | bytes) -> int:
    """Reads and converts; how many faults and warnings were checked."""
    try:
        read = read_document(source)
        lost = [loss for convert in (to_v1, to_v2) for loss in convert(read).lost]
        said: list[Fault | DocumentWarning] = [*read.warnings, *lost]
    except DocumentError as error:
        body = error.body()
        check(body.wording, body.message)
        said = list(error.errors)
    for each in said:
        check_said(each)
        assert SECRET_VALUE not in each.model_dump_json()
    return len(said)


@pytest.mark.parametrize("name", test_bad_input.MISTAKES)
def test_mistakes_of_v1(name: str) -> None:
    assert check_document(test_bad_input.wrong(name))


@pytest.mark.parametrize("name", V2)
def test_mistakes_of_v2(name: str) -> None:
    assert check_document(V2[name])


@settings(max_examples=300, deadline=None)
@given(source=SOURCES)
def test_any_text(source: bytes) -> None:
    check_document(source)
