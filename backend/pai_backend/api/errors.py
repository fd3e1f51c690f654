"""One translation of errors to HTTP: a table from code to status, and the body they all share.

A domain error knows its code and its fields, never a status; a new one needs a row here (a test walks them).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from pydantic import BaseModel, ValidationError

from pai_backend.engine.base import EngineError
from pai_backend.model.errors import ErrorBody, Fault, InvalidParameters, PaiError, Unavailable
from pai_backend.model.text import Text
from pai_backend.model.validation import Loc, dotted, faults

STATUS: dict[str, int] = {
    "UnknownError": 500,
    "InvalidProtocolError": 400,
    "InvalidParametersError": 400,
    "NoJobError": 404,
    "NoTaskError": 404,
    "NoServiceError": 404,
    "NoVirtualClusterError": 404,
    "NoApiError": 404,
    "NoKeyError": 404,
    "NoNotificationError": 404,
    "NoSecretError": 404,
    "NoCertificateError": 404,
    "NoImageError": 404,
    "NoShareError": 404,
    "NoTagError": 404,
    "NoAddressError": 404,
    "NoFileError": 404,
    "NoStorageError": 404,
    "NoTokenError": 404,
    "NoGroupError": 404,
    "NoClusterConfigError": 404,
    "NoJobSshInfoError": 404,
    "NoUserError": 400,
    "IncorrectPasswordError": 400,
    "NotImplementedError": 400,
    "ConflictJobError": 409,
    "ConflictAddressError": 409,
    "ConflictFileError": 409,
    "ConflictUserError": 409,
    "ConflictGroupError": 409,
    "UserHasJobsError": 409,
    "ConflictClusterConfigError": 409,
    "NotFinishedJobError": 409,
    "NotWaitingJobError": 409,
    "OtherQueueError": 409,
    "ImageInUseError": 409,
    "UnauthorizedUserError": 401,
    "ForbiddenUserError": 403,
    "LockedOutUserError": 403,
    "PasswordChangeRequiredError": 403,
    "NoEnoughQuotaError": 403,
    "ReadOnlyJobError": 403,
    "TooLargeError": 413,
    "TooManyRequestsError": 429,
    "UnavailableError": 503,
    "MethodNotAllowedError": 405,
}


def translate(error: BaseException | None, request_id: str) -> tuple[int, ErrorBody]:
    """Status and body of an error. One that is not ours tells its text to the log only.

    What an engine says is fit for users: where it is away, so is what needs it, and nothing is broken here.
    """
    if isinstance(error, EngineError):
        error = Unavailable(
            Text("The engine cannot do this now: {error}", error=error),
            hint=Text("Jobs keep running; try again in a moment."),
        )
    if isinstance(error, PaiError):
        return STATUS[error.code], error.body(request_id)
    body = ErrorBody(
        code="UnknownError",
        message="Internal error of the backend.",
        hint=f"Look for the request id {request_id} in the backend's log.",
        request_id=request_id,
    )
    return 500, body


def bad_query(error: ValidationError, model: type[BaseModel]) -> InvalidParameters:
    """What is wrong with the parameters of a URL; each fault's path is ``?name``."""
    return _invalid(error, model, lambda loc: f"?{dotted(loc)}")


def bad_body(error: ValidationError, model: type[BaseModel], text: bytes) -> InvalidParameters:
    """What is wrong with a JSON body; a body that is no JSON gets the line and column of the break."""
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] != "json_invalid":
        return _invalid(error, model, lambda loc: f"$.{dotted(loc)}" if loc else "$")
    line, column = _place_of_break(text)
    fault = Fault(
        path="$",
        message=Text("The body is not valid JSON."),
        line=line,
        column=column,
        hint=Text("Send a JSON object as the body."),
    )
    return InvalidParameters(fault.message, errors=[fault], hint=fault.hint)


def _place_of_break(text: bytes) -> tuple[int, int]:
    """1-based line and column where the standard JSON reader stops."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.lineno, error.colno
    except UnicodeDecodeError as error:
        before = text[: error.start]
        return before.count(b"\n") + 1, len(before) - (before.rfind(b"\n") + 1) + 1
    except (ValueError, RecursionError):  # a number of thousands of digits, or too deep: where, it does not say
        return 1, 1
    return 1, 1


def _invalid(error: ValidationError, model: type[BaseModel], path: Callable[[Loc], str]) -> InvalidParameters:
    found: Sequence[Fault] = [
        Fault(
            path=path(loc),
            message=Text("{place} {complaint}.", place=dotted(loc) or Text("The body"), complaint=complaint),
            hint=hint,
        )
        for loc, complaint, hint in faults(error, model)
    ]
    message = (
        found[0].message
        if len(found) == 1
        else Text("{count} parameters are wrong: {message}", count=len(found), message=found[0].message)
    )
    return InvalidParameters(message, errors=found, hint=found[0].hint)
