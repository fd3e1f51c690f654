"""What an answer of the API server means, in words that hold no secrets."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from pai_backend.engine.base import EngineError
from pai_backend.engine.kubernetes.failures import (
    WORDS_MAX,
    AlreadyExists,
    ApiConflict,
    ApiForbidden,
    ApiGone,
    ApiNotFound,
    ApiUnauthorized,
    Busy,
    FailedRequest,
    Invalid,
    RequestRefused,
    refusal,
    retry_after_s,
)

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
PODS = FailedRequest("create", "/api/v1/namespaces/team/pods")


def status(code: int, reason: str, message: str = "", **details: object) -> bytes:
    return json.dumps(
        {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}
    ).encode()


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", Invalid),
        (401, "ApiUnauthorized", ApiUnauthorized),
        (403, "ApiForbidden", ApiForbidden),
        (404, "ApiNotFound", ApiNotFound),
        (409, "AlreadyExists", AlreadyExists),
        (409, "ApiConflict", ApiConflict),
        (410, "Expired", ApiGone),
        (422, "Invalid", Invalid),
        (429, "TooManyRequests", Busy),
        (500, "InternalError", Busy),
        (504, "Timeout", Busy),
        (418, "", RequestRefused),
    ],
)
def test_a_status_is_a_kind_of_error_that_says_verb_place_and_reason(
    code: int, reason: str, kind: type[RequestRefused]
) -> None:
    error = refusal(PODS, code, status(code, reason, "because"), None, NOW)
    assert type(error) is kind
    assert isinstance(error, EngineError)
    assert (error.status, error.reason) == (code, reason)
    assert str(PODS) in str(error)
    assert str(code) in str(error)
    assert "because" in str(error)


@pytest.mark.parametrize("body", [b"", b"<html>Sign in</html>", b"[1]", b'{"kind": "Other"}', b"\xff\xfe"])
def test_an_answer_of_something_else_than_an_api_server_is_an_error_too(body: bytes) -> None:
    error = refusal(PODS, 502, body, None, NOW)
    assert isinstance(error, Busy)
    assert str(error) == f"{PODS}: the API server answers 502"


def test_what_a_server_says_of_a_wrong_secret_is_not_repeated() -> None:
    said = status(422, "Invalid", "data[password]: Invalid value: hunter2")
    error = refusal(FailedRequest("create", "/api/v1/namespaces/team/secrets"), 422, said, None, NOW)
    assert "hunter2" not in str(error)
    assert "may quote the secret" in str(error)
    assert "hunter2" in str(refusal(PODS, 422, said, None, NOW))


def test_a_very_long_message_is_cut() -> None:
    error = refusal(PODS, 403, status(403, "ApiForbidden", "x" * 5000), None, NOW)
    assert len(str(error)) < WORDS_MAX + 150


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        (" 0 ", 0.0),
        ("Sat, 21 Nov 2026 12:00:30 GMT", 30.0),
        ("Sat, 21 Nov 2026 11:00:00 GMT", 0.0),
        ("soon", None),
        ("-3", None),
        ("1.5", None),
        ("", None),
        (None, None),
        ("²", None),
    ],
)
def test_the_server_says_in_seconds_or_as_a_date_when_to_come_back(header: str | None, seconds: float | None) -> None:
    assert retry_after_s(header, NOW) == seconds
    assert refusal(PODS, 429, b"", header, NOW).retry_after_s == seconds


def test_without_a_header_the_status_object_says_when_to_come_back() -> None:
    said = status(429, "TooManyRequests", retryAfterSeconds=4)
    assert refusal(PODS, 429, said, None, NOW).retry_after_s == 4.0
    assert refusal(PODS, 429, said, "9", NOW).retry_after_s == 9.0
