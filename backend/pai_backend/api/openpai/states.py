"""OpenPAI's words for what a job or task is doing, and for how it ended.

Source: FrameworkController's attempt states, as the rest-server of microsoft/pai v1.8 shows them. There a job between
two attempts is RUNNING and one whose images are fetched is WAITING; here states are the lifecycle's own and the
sub-state says more.
"""

from __future__ import annotations

from datetime import datetime

from pai_backend.api.openpai.wire import ExitSpec
from pai_backend.lifecycle.exits import BY_ITSELF, ExitClass, Reaction, explain
from pai_backend.model.job import Causer, Desired, ExitKind, Job, JobExit, Phase, State, Task, TaskExit

PENDING, PREPARING, RUNNING = "AttemptCreationPending", "AttemptPreparing", "AttemptRunning"
DELETING, ATTEMPT_COMPLETED, COMPLETED = "AttemptDeletionRequested", "AttemptCompleted", "Completed"

_OF_PHASE = {
    Phase.QUEUED: PENDING,
    Phase.BACKING_OFF: PENDING,
    Phase.PULLING: PREPARING,
    Phase.STARTING: PREPARING,
    Phase.RUNNING: RUNNING,
    Phase.KEPT: ATTEMPT_COMPLETED,
    Phase.STOPPING: DELETING,
    Phase.ENDED: COMPLETED,
}
STATES_V1 = {State.STOPPING.value: State.RUNNING.value}
"""REST v1 has no word for a job that is being stopped: it runs until it has ended."""

STOPPED_EXIT, NOT_NEEDED_EXIT = -210, -220
"""Exit codes of what was stopped on request, and of tasks that the end of their attempt stopped."""


def sub_state(phase: str) -> str:
    """The sub-state of a job or task in this phase."""
    return _OF_PHASE[Phase(phase)]


def job_state(state: str, version: int) -> str:
    """A job's state in the words of REST v1 or v2."""
    return STATES_V1.get(state, state) if version == 1 else state


def task_exit_code(job: Job, task: Task) -> int | None:
    """A task's exit code; one that did not end by itself has OpenPAI's code for why."""
    if task.exit is None:
        return None
    if task.state is State.STOPPED:
        return STOPPED_EXIT if job.desired is Desired.STOP else NOT_NEEDED_EXIT
    return platform_code(task.exit) or task.exit.status


def platform_code(exit_: TaskExit) -> int | None:
    """OpenPAI's code for what the platform did to a task, which is negative; None when its command ended by itself.

    The status of a command that was ended is that of a signal, and says nothing of why.
    """
    if exit_.reason in BY_ITSELF:
        return None
    code = explain(exit_).openpai
    return code if code is not None and code < 0 else None


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
