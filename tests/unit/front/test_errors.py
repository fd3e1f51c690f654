"""Codes of the wire become typed errors and exit codes."""

from __future__ import annotations

import pytest

from jupyter_pai import errors
from jupyter_pai.wire import ACTIVE_STATES, FINAL_STATES
from pai_backend.model.errors import PaiError
from pai_backend.model.job import State


def all_codes() -> list[str]:
    """Every code the backend can send."""
    found, open_ = {PaiError.code}, [PaiError]
    while open_:
        for kind in open_.pop().__subclasses__():
            found.add(kind.code)
            open_.append(kind)
    return sorted(found)


@pytest.mark.parametrize("code", all_codes())
def test_every_code_of_the_backend_has_an_exit_code(code: str) -> None:
    assert code in errors.EXIT_CODES


def test_no_exit_code_is_kept_for_a_code_that_is_gone() -> None:
    assert set(errors.EXIT_CODES) == set(all_codes())


def test_final_and_active_states_are_those_of_the_model() -> None:
    assert {str(state) for state in State if state.final} == FINAL_STATES
    assert {str(state) for state in State if not state.final} == set(ACTIVE_STATES)


UNKNOWN = {"template": "unknown", "arguments": {}}


@pytest.mark.parametrize("wording", [None, "no", {}, {"template": 3}, {"template": "{x} other", "arguments": [1]}])
def test_a_wording_that_does_not_make_the_message_is_left_out(wording: object) -> None:
    error = errors.from_wire(404, {"code": "NoJobError", "message": "gone", "wording": wording})
    assert (error.message, error.body()["wording"]) == ("gone", None)


def test_a_refused_document_keeps_every_place() -> None:
    body = {
        "code": "InvalidProtocolError",
        "message": "2 faults",
        "hint": "Mend them.",
        "requestId": "r7",
        "wording": {"template": "{count} faults", "arguments": {"count": "2"}},
        "hintWording": None,
        "errors": [
            {"path": "$.image", "message": "is missing", "line": 1, "column": 2, "hint": "Add it."}
            | {"wording": None, "hintWording": {"template": "Add it.", "arguments": {}}},
            {"path": "$.x", "message": "is unknown", "line": None, "column": None, "hint": ""}
            | {"wording": {"template": "is {what}", "arguments": {"what": UNKNOWN}}, "hintWording": None},
        ],
    }
    error = errors.from_wire(400, body)
    assert isinstance(error, errors.InvalidDocument)
    assert error.exit_code == errors.USAGE
    assert error.faults[0] == errors.Fault("is missing", "$.image", 1, 2, "Add it.")
    assert error.faults[1].line is None
    assert error.body() == body


@pytest.mark.parametrize(
    ("status", "body", "kind", "exit_code"),
    [
        (404, {"code": "NoJobError", "message": "no"}, errors.NotFound, 2),
        (409, {"code": "ConflictJobError", "message": "taken"}, errors.NameTaken, 2),
        (401, {"code": "UnauthorizedUserError", "message": "who"}, errors.Denied, 2),
        (503, {"code": "UnavailableError", "message": "later"}, errors.BackendAway, 3),
        (418, {"code": "BrandNewError", "message": "?"}, errors.ClientError, 2),
        (502, {"code": "BrandNewError", "message": "?"}, errors.ClientError, 3),
    ],
)
def test_codes_become_their_exceptions(
    status: int, body: dict[str, str], kind: type[errors.ClientError], exit_code: int
) -> None:
    error = errors.from_wire(status, body)
    assert type(error) is kind
    assert error.exit_code == exit_code


@pytest.mark.parametrize("body", [None, [], "text", {"message": "no code"}])
def test_an_answer_of_something_else_is_named_as_such(body: object) -> None:
    error = errors.from_wire(502, body)
    assert "502" in error.message
    assert error.exit_code == errors.AWAY
