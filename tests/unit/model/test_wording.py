"""Texts keep the template and the arguments that they were made of, also on the wire and in the database."""

import copy
import json
import pickle

import pytest

from pai_backend.model.errors import DocumentError, Fault, PaiError
from pai_backend.model.spec import DocumentWarning
from pai_backend.model.text import NO_TEXT, Text
from pai_backend.model.wording import Wording, text_of, wording_of

NESTED = Text("{name} must be {kind}, not { … }", name="a {kind}", kind=Text("at least {least}", least=3))


def test_a_text_is_its_english() -> None:
    assert NESTED == "a {kind} must be at least 3, not { … }"
    assert f"{NESTED}." == "a {kind} must be at least 3, not { … }."


def test_braces_of_an_argument_are_not_filled_again() -> None:
    assert Text("{one} {two}", one="{two}", two="{one}") == "{two} {one}"


@pytest.mark.parametrize("made", [pickle.loads(pickle.dumps(NESTED)), copy.copy(NESTED), copy.deepcopy(NESTED)])
def test_copies_keep_template_and_arguments(made: Text) -> None:
    assert (made, made.template, made.arguments) == (NESTED, NESTED.template, NESTED.arguments)


def test_a_wording_makes_its_text_again() -> None:
    wording = wording_of(NESTED)
    assert wording is not None
    sent = Wording.model_validate_json(wording.model_dump_json())
    assert text_of(sent) == NESTED
    assert sent.arguments["kind"] == Wording(template="at least {least}", arguments={"least": "3"})


@pytest.mark.parametrize("text", ["plain", "", NO_TEXT, None])
def test_another_text_has_no_wording(text: str | None) -> None:
    assert wording_of(text) is None


def test_an_error_sends_its_wordings_beside_the_english_text() -> None:
    fault = Fault(path="$.a", message=NESTED, hint=Text("Fix it."))
    sent = json.loads(
        DocumentError(fault.message, errors=[fault], hint=fault.hint).body("r").model_dump_json(by_alias=True)
    )
    assert sent["message"] == sent["errors"][0]["message"] == str(NESTED)
    assert sent["wording"] == sent["errors"][0]["wording"]
    assert sent["wording"]["template"] == NESTED.template
    assert sent["hintWording"] == sent["errors"][0]["hintWording"] == {"template": "Fix it.", "arguments": {}}


def test_a_text_of_another_program_is_sent_without() -> None:
    body = PaiError("fsspec says so").body()
    assert (body.message, body.wording, body.hint_wording) == ("fsspec says so", None, None)


def test_a_stored_warning_keeps_its_wording_and_an_older_one_is_read() -> None:
    warning = DocumentWarning(code="x", message=NESTED)
    assert DocumentWarning.model_validate_json(warning.model_dump_json()).wording == wording_of(NESTED)
    assert DocumentWarning.model_validate_json('{"code": "x", "message": "m", "path": "", "hint": ""}').wording is None
