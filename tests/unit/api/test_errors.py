"""Every error has a status, and nothing of an unknown one gets out."""

from __future__ import annotations

from collections.abc import Iterator

from pai_backend.api.errors import STATUS, translate
from pai_backend.engine.base import EngineError
from pai_backend.model.errors import Fault, NoSuchJob, PaiError


def every_error(base: type[PaiError] = PaiError) -> Iterator[type[PaiError]]:
    yield base
    for error in base.__subclasses__():
        yield from every_error(error)


def test_every_domain_error_has_a_row_and_every_row_an_error() -> None:
    ours = [error for error in every_error() if error.__module__.startswith("pai_backend")]
    assert {error.code for error in ours} == set(STATUS)


def test_codes_are_distinct() -> None:
    ours = [error for error in every_error() if error.__module__.startswith("pai_backend")]
    codes = [error.code for error in ours if "code" in vars(error)]  # a finer kind of an error answers with its code
    assert len(codes) == len(set(codes))


def test_a_domain_error_is_told_with_its_places() -> None:
    fault = Fault(path="$.x", message="wrong", line=3, column=4, hint="right")
    status, body = translate(NoSuchJob("gone", errors=[fault], hint="look"), "r1")
    assert status == 404
    assert body.model_dump(by_alias=True) == {
        "code": "NoJobError",
        "message": "gone",
        "errors": (
            {"path": "$.x", "message": "wrong", "line": 3, "column": 4, "hint": "right"}
            | {"wording": None, "hintWording": None},
        ),
        "hint": "look",
        "requestId": "r1",
        "wording": None,
        "hintWording": None,
    }


def test_an_engine_that_is_away_is_no_mistake_of_the_backend() -> None:
    status, body = translate(EngineError("the API server cannot be reached"), "r3")
    assert (status, body.code) == (503, "UnavailableError")
    assert "the API server cannot be reached" in body.message
    assert body.hint


def test_an_unknown_error_tells_its_request_id_only() -> None:
    status, body = translate(ValueError("password=hunter2"), "r2")
    assert status == 500
    assert "hunter2" not in body.model_dump_json()
    assert "r2" in body.hint
