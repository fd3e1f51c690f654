"""Exits explained in OpenPAI's shape, from the lifecycle's one table of exit classes."""

from __future__ import annotations

from datetime import datetime

from pai_backend.api.openpai.wire import ExitSpec
from pai_backend.lifecycle.exits import ExitClass, Reaction, explain
from pai_backend.model.job import Causer, ExitKind, JobExit, TaskExit

_BEHAVIORS = {
    ExitKind.SUCCESS: "SUCCEED",
    ExitKind.TRANSIENT: "TRANSIENT",
    ExitKind.TRANSIENT_CONFLICT: "TRANSIENT_CONFLICT",
    ExitKind.PERMANENT: "PERMANENT",
    ExitKind.UNKNOWN: "UNKNOWN",
}
_REACTIONS = {
    Reaction.NONE: "NEVER_RETRY",
    Reaction.RETRY_FREE: "ALWAYS_RETRY",
    Reaction.RETRY_LATER: "ALWAYS_BACKOFF_RETRY",
    Reaction.RETRY_TO_LIMIT: "RETRY_TO_MAX",
    Reaction.NEVER: "NEVER_RETRY",
}
_STOPPED = "stopped"


def exit_spec(exit_: TaskExit) -> ExitSpec:
    """What is known of a task's exit."""
    return _shown(explain(exit_), stopped=exit_.reason == _STOPPED)


def job_exit_spec(exit_: JobExit, deciding: TaskExit | None, *, stopped: bool, at: datetime) -> ExitSpec:
    """What is known of a job's exit: that of the task which decided it, where one did."""
    if deciding is not None:
        return exit_spec(deciding)
    return exit_spec(TaskExit(code=exit_.status, reason=_STOPPED if stopped else "exited", at=at))


def _shown(meaning: ExitClass, *, stopped: bool) -> ExitSpec:
    return ExitSpec(
        code=meaning.openpai,
        phrase=meaning.phrase,
        causer=meaning.causer.value.upper(),
        type=_type(meaning, stopped),
        behavior=_BEHAVIORS[meaning.kind],
        reaction=_REACTIONS[meaning.reaction],
        reason=meaning.explanation,
        solution=(meaning.remedy,) if meaning.remedy else (),
    )


def _type(meaning: ExitClass, stopped: bool) -> str:
    if meaning.kind is ExitKind.SUCCESS:
        return "USER_SUCCESS"
    if stopped:
        return "USER_STOP"
    return "USER_FAILURE" if meaning.causer is Causer.USER else "PLATFORM_FAILURE"
