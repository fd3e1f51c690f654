"""What can go wrong between us and an API server, as errors that callers tell apart.

    EngineError
    ├── AccessError        how to reach the cluster is not known: file, context, credentials
    └── ClusterError       a request failed
        ├── Malformed      an answer that is not one of the API, as from a proxy's login page
        ├── Unreachable    no answer: refused, cut, timed out (``sent``: it may have been carried out all the same)
        │   └── Untrusted  its certificate is not accepted
        └── Refused        the server answered no, with its status and reason
            ├── ApiUnauthorized, ApiForbidden, ApiNotFound, AlreadyExists, ApiConflict, ApiGone, Invalid, NotAdmitted
            └── Busy       429, or a fault of the server: another try may succeed

Messages are fit for users. They hold the server's own words, never a header, a token or a body of ours.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from pai_backend.engine.base import EngineError

WORDS_MAX = 600  # characters of the server's message: an admission webhook may say anything
_ECHOING = {400, 422}  # answers that quote what was sent


class AccessError(EngineError):
    """How to reach the cluster is not known, or its credentials are unavailable. Names place, reason and remedy."""


class ClusterError(EngineError):
    """A request to the API server failed."""


class Malformed(ClusterError):
    """Something that should be an object of the API is not."""


class Unreachable(ClusterError):
    """No answer. ``sent`` says whether the request may have reached the server and been carried out."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class Untrusted(Unreachable):
    """The server's certificate is not accepted; another try a little later would not be, either."""

    def __init__(self, message: str) -> None:
        super().__init__(message, sent=False)


class RequestRefused(ClusterError):
    """The server answered with an error. ``reason`` is its word for it (``AlreadyExists``), "" without one."""

    def __init__(self, message: str, *, status: int, reason: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s  # seconds after which the server wants to be asked again


class ApiUnauthorized(RequestRefused):
    """401: the credentials are not, or no longer, accepted."""


class ApiForbidden(RequestRefused):
    """403: the role does not allow it, or a quota or admission rule forbids it."""


class ApiNotFound(RequestRefused):
    """404: no such object, or no such kind of object."""


class AlreadyExists(RequestRefused):
    """409 to a creation: the name is taken."""


class ApiConflict(RequestRefused):
    """409 to a change: the object is not the one, or not in the version, that was named."""


class ApiGone(RequestRefused):
    """410: the version to go on from, or the rest of a list, is no longer kept."""


class Invalid(RequestRefused):
    """400 or 422: the request can never succeed as it is."""


class Busy(RequestRefused):
    """429 or 5xx: the server cannot now."""


class NotAdmitted(RequestRefused):
    """500: an admission webhook does not answer, so nothing was done. It is told before it is tried again."""


_BY_STATUS: dict[int, type[RequestRefused]] = {
    400: Invalid,
    401: ApiUnauthorized,
    403: ApiForbidden,
    404: ApiNotFound,
    409: ApiConflict,
    410: ApiGone,
    422: Invalid,
    429: Busy,
}


@dataclass(frozen=True)
class FailedRequest:
    """What an error says it was about."""

    verb: str  # get, list, watch, create, patch, delete
    path: str

    def __str__(self) -> str:
        return f"{self.verb} {self.path}"


def refusal(request: FailedRequest, status: int, body: bytes, retry_after: str | None, now: datetime) -> RequestRefused:
    """The error for an answer with that status. ``retry_after`` is the header, ``now`` the aware time of the answer."""
    said = _status_object(body)
    reason = str(said.get("reason") or "")
    kind = _BY_STATUS.get(status, Busy if status >= 500 else RequestRefused)
    if kind is ApiConflict and reason == "AlreadyExists":
        kind = AlreadyExists
    if kind is Busy and "failed calling webhook" in str(said.get("message") or ""):
        kind = NotAdmitted
    wait = retry_after_s(retry_after, now)
    if wait is None:
        wait = _seconds_of(said)
    words = _words(request, status, said)
    return kind(
        f"{request}: the API server answers {status}{f' {reason}' if reason else ''}{f': {words}' if words else ''}",
        status=status,
        reason=reason,
        retry_after_s=wait,
    )


def retry_after_s(value: str | None, now: datetime) -> float | None:
    """Seconds to wait by a Retry-After header: a number of seconds, or a date. None when it says nothing usable.

    Source: RFC 9110 §10.2.3. A date that has passed means now.
    """
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        then = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (then.replace(tzinfo=then.tzinfo or UTC) - now).total_seconds())


def _status_object(body: bytes) -> dict[str, Any]:
    """The ``Status`` that comes with an error; empty for a proxy's page or anything else."""
    try:
        said = json.loads(body)
    except ValueError:
        return {}
    return said if isinstance(said, dict) and said.get("kind") == "Status" else {}


def _seconds_of(said: dict[str, Any]) -> float | None:
    details = said.get("details")
    seconds = details.get("retryAfterSeconds") if isinstance(details, dict) else None
    return float(seconds) if isinstance(seconds, int) and seconds > 0 else None


def _words(request: FailedRequest, status: int, said: dict[str, Any]) -> str:
    if status in _ECHOING and "/secrets" in request.path:
        return "its words are left out, since they may quote the secret"
    words = " ".join(str(said.get("message") or "").split())
    return words if len(words) <= WORDS_MAX else words[:WORDS_MAX] + " …"
