"""Domain errors: each has a stable code, a message, and the places it is about.

Faces translate codes once each: HTTP in ``api.errors``, exit codes in the CLI. A new error is a
subclass here and a row in those tables; a test asserts that every code is in every table.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from pai_backend.model.wording import HintWording, MessageWording, UserText, Worded


class Fault(Worded):
    """One thing wrong at one place of a document or request."""

    path: str = Field(default="", description="JSON path, e.g. ``$.taskRoles[0].command``.")
    message: UserText = ""
    line: int | None = Field(default=None, description="1-based line in the source text.")
    column: int | None = Field(default=None, description="1-based column, in characters.")
    hint: UserText = Field(default="", description="The remedy, in a sentence.")
    wording: MessageWording = None
    hint_wording: HintWording = None


class ErrorBody(Worded):
    """What every failed request answers with."""

    code: str
    message: UserText
    errors: tuple[Fault, ...] = ()
    hint: UserText = ""
    request_id: str = ""
    wording: MessageWording = None
    hint_wording: HintWording = None


class PaiError(Exception):
    """Base of all errors a user can meet. ``code`` is the class attribute, stable for ever."""

    code = "UnknownError"

    def __init__(self, message: str, *, errors: Sequence[Fault] = (), hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.errors = tuple(errors)
        self.hint = hint

    def body(self, request_id: str = "") -> ErrorBody:
        """The wire form of this error."""
        return ErrorBody(
            code=self.code, message=self.message, errors=self.errors, hint=self.hint, request_id=request_id
        )


class DocumentError(PaiError):
    """A job document is wrong; ``errors`` lists every fault found, not only the first."""

    code = "InvalidProtocolError"


class InvalidParameters(PaiError):
    """A request's parameter is missing or malformed."""

    code = "InvalidParametersError"


class NoSuchJob(PaiError):
    """No job of that name is visible to the caller."""

    code = "NoJobError"


class NoSuchTask(PaiError):
    """The job has no such role or task index."""

    code = "NoTaskError"


class NoSuchService(PaiError):
    """The job has no port of that label."""

    code = "NoServiceError"


class NoVirtualCluster(PaiError):
    """The document names a virtual cluster that does not exist."""

    code = "NoVirtualClusterError"


class NameTaken(PaiError):
    """The user already has a job of that name."""

    code = "ConflictJobError"


class AddressTaken(PaiError):
    """The workspace name is held by a job of the user's that runs, or means something else of theirs."""

    code = "ConflictAddressError"


class NoSuchAddress(PaiError):
    """The user has reserved no such workspace name."""

    code = "NoAddressError"


class StaleVersion(PaiError):
    """The cluster configuration has changed since the caller looked at it."""

    code = "ConflictClusterConfigError"


class NoSuchConfig(PaiError):
    """No cluster configuration of that version is kept."""

    code = "NoClusterConfigError"


class Unauthorized(PaiError):
    """No token, or one that is not known."""

    code = "UnauthorizedUserError"


class Forbidden(PaiError):
    """The caller is known but may not do this."""

    code = "ForbiddenUserError"


class LockedOut(PaiError):
    """An administrator has locked the caller out; nothing is answered until the lock-out ends."""

    code = "LockedOutUserError"


class NoSuchPath(PaiError):
    """The URL names nothing."""

    code = "NoApiError"


class MethodNotAllowed(PaiError):
    """The path exists but not with this verb (RFC 9110 §15.5.6)."""

    code = "MethodNotAllowedError"


class NoSuchKey(PaiError):
    """No registered SSH key has that fingerprint."""

    code = "NoKeyError"


class NoSuchSecret(PaiError):
    """The caller keeps no secret of that name."""

    code = "NoSecretError"


class NoSuchNotification(PaiError):
    """The caller has no notification of that id."""

    code = "NoNotificationError"


class NoSuchImage(PaiError):
    """The machine that runs the tasks has no such image."""

    code = "NoImageError"


class ImageInUse(PaiError):
    """The image cannot be removed: a task, a waiting job or a container needs it."""

    code = "ImageInUseError"


class NoSuchCertificate(PaiError):
    """The caller has no SSH certificate of that serial."""

    code = "NoCertificateError"


class NoSuchShare(PaiError):
    """The job is not shared with that user."""

    code = "NoShareError"


class ReadOnlyJob(PaiError):
    """The job has ended, or is being ended, and cannot be changed that way any more."""

    code = "ReadOnlyJobError"


class NotFinished(PaiError):
    """The job has not ended, so that it cannot be deleted."""

    code = "NotFinishedJobError"


class NotWaiting(PaiError):
    """The job has no place in the queue that could be changed: it runs, has ended, or is being ended."""

    code = "NotWaitingJobError"


class OtherQueue(PaiError):
    """Two jobs cannot change places: they differ in virtual cluster or priority."""

    code = "OtherQueueError"


class NoSuchTag(PaiError):
    """The job has no such tag."""

    code = "NoTagError"


class NoSuchToken(PaiError):
    """The caller has no such access token."""

    code = "NoTokenError"


class NoSuchUser(PaiError):
    """There is no user of that name; 400 as OpenPAI has it, not 404."""

    code = "NoUserError"


class UserExists(PaiError):
    """There is a user of that name, or a removed user had it."""

    code = "ConflictUserError"


class UserHasJobs(PaiError):
    """The user has jobs that have not ended."""

    code = "UserHasJobsError"


class GroupExists(PaiError):
    """There is a group of users of that name."""

    code = "ConflictGroupError"


class NoSuchGroup(PaiError):
    """There is no group of users of that name."""

    code = "NoGroupError"


class MustChangePassword(PaiError):
    """The session began with a password that an administrator has set; its user has to set another first."""

    code = "PasswordChangeRequiredError"


class WrongPassword(PaiError):
    """The password is not that of the user."""

    code = "IncorrectPasswordError"


class NoJobSsh(PaiError):
    """No task of the job can be reached by SSH now."""

    code = "NoJobSshInfoError"


class NotSupported(PaiError):
    """OpenPAI has this operation, and this backend does it another way, which the hint names."""

    code = "NotImplementedError"


class TooManyRequests(PaiError):
    """The caller has sent more requests than the configuration allows in this time."""

    code = "TooManyRequestsError"


class NoSuchFile(PaiError):
    """The default file system has nothing at that path."""

    code = "NoFileError"


class NoSuchStorage(PaiError):
    """The document names a team storage that does not exist or is not granted."""

    code = "NoStorageError"


class FileConflict(PaiError):
    """What is at that path does not fit: a directory, another upload, another offset, damaged bytes."""

    code = "ConflictFileError"


class NoEnoughQuota(PaiError):
    """The user's share, or the storage itself, is full."""

    code = "NoEnoughQuotaError"


class TooLarge(PaiError):
    """A document or body is over its limit."""

    code = "TooLargeError"


class Unavailable(PaiError):
    """A part of the backend that this needs is away; trying again later may help."""

    code = "UnavailableError"


class Bug(Exception):
    """An invariant of ours is broken; never a user's mistake."""
