"""What can go wrong between the user and the backend, as typed exceptions.

::

    ClientError
    ├── InvalidDocument   the document (or a parameter) is wrong; ``faults`` says where
    ├── NotFound          no such job, task, service, key or virtual cluster
    ├── NameTaken         a job of that name exists
    ├── Denied            no valid token, or not allowed
    └── BackendAway       no answer, or the backend cannot serve now
        └── BackendStartFailed   the private backend did not start
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pai_backend.model.text import Text

OK, JOB_FAILED, USAGE, AWAY = 0, 1, 2, 3
"""Exit codes of ``pai``: fine, the job failed, usage or invalid document, backend away."""

LOCKED_OUT = "LockedOutUserError"
"""The code of refusals of a user whom an administrator has locked out."""

EXIT_CODES = {
    "InvalidProtocolError": USAGE,
    "InvalidParametersError": USAGE,
    "NoJobError": USAGE,
    "NoTaskError": USAGE,
    "NoServiceError": USAGE,
    "NoVirtualClusterError": USAGE,
    "NoFileError": USAGE,
    "NoStorageError": USAGE,
    "ConflictJobError": USAGE,
    "ConflictAddressError": USAGE,
    "ConflictFileError": USAGE,
    "ConflictUserError": USAGE,
    "ConflictGroupError": USAGE,
    "UserHasJobsError": USAGE,
    "ConflictClusterConfigError": USAGE,
    "NoEnoughQuotaError": USAGE,
    "UnauthorizedUserError": USAGE,
    "ForbiddenUserError": USAGE,
    LOCKED_OUT: USAGE,
    "PasswordChangeRequiredError": USAGE,
    "NoApiError": USAGE,
    "MethodNotAllowedError": USAGE,
    "NoKeyError": USAGE,
    "NoNotificationError": USAGE,
    "NoSecretError": USAGE,
    "NoCertificateError": USAGE,
    "NoImageError": USAGE,
    "NoShareError": USAGE,
    "ReadOnlyJobError": USAGE,
    "NotFinishedJobError": USAGE,
    "NotWaitingJobError": USAGE,
    "OtherQueueError": USAGE,
    "ImageInUseError": USAGE,
    "NoTagError": USAGE,
    "NoAddressError": USAGE,
    "NoTokenError": USAGE,
    "NoClusterConfigError": USAGE,
    "NoUserError": USAGE,
    "NoGroupError": USAGE,
    "IncorrectPasswordError": USAGE,
    "NoJobSshInfoError": USAGE,
    "NotImplementedError": USAGE,
    "TooManyRequestsError": AWAY,
    "TooLargeError": USAGE,
    "UnavailableError": AWAY,
    "UnknownError": AWAY,
}
"""Wire code -> exit code; a test walks all codes of the backend."""


@dataclass(frozen=True)
class Fault:
    """One thing wrong at one place; line and column count from 1."""

    message: str
    path: str = ""
    line: int | None = None
    column: int | None = None
    hint: str = ""


class ClientError(Exception):
    """A request failed; ``code`` is the backend's stable word, ``status`` the HTTP status (0: no answer)."""

    default_code: ClassVar[str] = "UnknownError"

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        faults: Sequence[Fault] = (),
        hint: str = "",
        status: int = 0,
        request_id: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.faults = tuple(faults)
        self.hint = hint
        self.status = status
        self.request_id = request_id

    @property
    def exit_code(self) -> int:
        """What ``pai`` exits with. A code this version does not know is judged by its HTTP status."""
        return EXIT_CODES.get(self.code, USAGE if 400 <= self.status < 500 else AWAY)

    def body(self) -> dict[str, object]:
        """The wire form, as ``--json`` prints it and relays answer it."""
        return {
            "code": self.code,
            "message": self.message,
            "errors": [
                {
                    "path": f.path,
                    "message": f.message,
                    "line": f.line,
                    "column": f.column,
                    "hint": f.hint,
                    "wording": _wording(f.message),
                    "hintWording": _wording(f.hint),
                }
                for f in self.faults
            ],
            "hint": self.hint,
            "requestId": self.request_id,
            "wording": _wording(self.message),
            "hintWording": _wording(self.hint),
        }


class InvalidDocument(ClientError):
    """The document or a parameter is wrong; ``faults`` lists every place."""

    default_code = "InvalidProtocolError"


class NotFound(ClientError):
    """The thing named does not exist or is not visible to the caller."""

    default_code = "NoJobError"


class NameTaken(ClientError):
    """The user already has a job of that name."""

    default_code = "ConflictJobError"


class Denied(ClientError):
    """The token is missing or unknown, or its owner may not do this."""

    default_code = "UnauthorizedUserError"


class BackendAway(ClientError):
    """No answer at the backend's address, or it says that it cannot serve now."""

    default_code = "UnavailableError"


class BackendStartFailed(BackendAway):
    """The private backend could not be started; the message has its own last words."""


_CLASSES: dict[str, type[ClientError]] = {
    "InvalidProtocolError": InvalidDocument,
    "InvalidParametersError": InvalidDocument,
    "TooLargeError": InvalidDocument,
    "NoJobError": NotFound,
    "NoTaskError": NotFound,
    "NoServiceError": NotFound,
    "NoVirtualClusterError": NotFound,
    "NoApiError": NotFound,
    "NoKeyError": NotFound,
    "NoNotificationError": NotFound,
    "NoSecretError": NotFound,
    "NoCertificateError": NotFound,
    "NoImageError": NotFound,
    "NoShareError": NotFound,
    "NoTagError": NotFound,
    "NoAddressError": NotFound,
    "NoTokenError": NotFound,
    "NoClusterConfigError": NotFound,
    "NoUserError": NotFound,
    "NoGroupError": NotFound,
    "NoJobSshInfoError": NotFound,
    "IncorrectPasswordError": Denied,
    "ReadOnlyJobError": Denied,
    "NoFileError": NotFound,
    "NoStorageError": NotFound,
    "ConflictJobError": NameTaken,
    "UnauthorizedUserError": Denied,
    "ForbiddenUserError": Denied,
    "PasswordChangeRequiredError": Denied,
    LOCKED_OUT: Denied,
    "UnavailableError": BackendAway,
}


def worded(entry: Mapping[str, object], text: str, wording: str) -> str:
    """The text of a body's member; with its template and arguments, where the backend sends them."""
    english, made = str(entry.get(text) or ""), text_of(entry.get(wording))
    return made if made == english else english


def text_of(wording: object) -> Text | None:
    """The text that a wording of the wire makes; None where the backend, of another version, sends no wording."""
    if not isinstance(wording, dict) or not isinstance(template := wording.get("template"), str):
        return None
    arguments = wording.get("arguments")
    given = arguments.items() if isinstance(arguments, dict) else ()
    return Text(template, **{str(name): text_of(value) or str(value) for name, value in given})


def _wording(text: str) -> dict[str, object] | None:
    """The wire form of what :func:`text_of` made."""
    if not isinstance(text, Text) or not text:
        return None
    arguments = {
        name: (_wording(value) if isinstance(value, Text) else None) or str(value)
        for name, value in text.arguments.items()
    }
    return {"template": text.template, "arguments": arguments}


def _fault(item: object) -> Fault:
    entry = item if isinstance(item, dict) else {}
    line, column = entry.get("line"), entry.get("column")
    return Fault(
        message=worded(entry, "message", "wording"),
        path=str(entry.get("path") or ""),
        line=line if isinstance(line, int) else None,
        column=column if isinstance(column, int) else None,
        hint=worded(entry, "hint", "hintWording"),
    )


HINTS = {
    "UnauthorizedUserError": Text(
        "Sign in again with `pai login URL`, or check PAI_TOKEN, PAI_TOKEN_FILE or client.toml."
    ),
}
"""Remedies for people at a shell or a notebook, where the backend's is for programs that use REST."""


def from_wire(status: int, body: object) -> ClientError:
    """The exception for a failed answer; bodies of other shapes (a proxy's page) still give a clear one."""
    if not isinstance(body, dict) or "code" not in body:
        hint = Text("A proxy or another server answered instead of the backend. Check the address.")
        return ClientError(
            Text("The backend's address answered HTTP {status} without an error body.", status=status),
            status=status,
            hint=hint,
        )
    code = str(body["code"])
    errors = body.get("errors")
    return _CLASSES.get(code, ClientError)(
        worded(body, "message", "wording") or code,
        code=code,
        faults=[_fault(item) for item in errors] if isinstance(errors, list) else (),
        hint=HINTS.get(code) or worded(body, "hint", "hintWording"),
        status=status,
        request_id=str(body.get("requestId") or ""),
    )
