"""The table of task phases: (phase, what happened) -> phase, total, and nothing else assigns a phase.

``Happening`` names events by what they do to a task. An entry of ``None`` is an explicit refusal:
it cannot happen, and :func:`advance` raises instead of guessing. Late or repeated news about a task
that has ended changes nothing, because an engine may report an exit more than once. A run of a task begins as queued,
or as backing off when it is run again after a pause.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pai_backend.model.errors import Bug
from pai_backend.model.job import Phase


class Happening(StrEnum):
    """What can happen to one task."""

    PLACED = "placed"
    PULLING = "pulling"
    RUNNING = "running"
    EXITED = "exited"
    KEPT = "failed and kept"
    RELEASED = "released"
    DUE = "pause over"
    STOP = "stop"
    FORGOTTEN = "forgotten"


class IllegalTransition(Bug):
    """The table has no such transition; the job is left as it was."""


TASK_PHASES: Final = (
    Phase.QUEUED,
    Phase.BACKING_OFF,
    Phase.STARTING,
    Phase.PULLING,
    Phase.RUNNING,
    Phase.KEPT,
    Phase.STOPPING,
    Phase.ENDED,
)

_H = Happening
TRANSITIONS: Final[dict[Phase, dict[Happening, Phase | None]]] = {
    Phase.QUEUED: {
        _H.PLACED: Phase.STARTING,
        _H.PULLING: None,
        _H.RUNNING: None,
        _H.EXITED: None,
        _H.KEPT: None,
        _H.RELEASED: None,
        _H.DUE: None,
        _H.STOP: Phase.ENDED,
        _H.FORGOTTEN: None,
    },
    Phase.BACKING_OFF: {
        _H.PLACED: None,
        _H.PULLING: None,
        _H.RUNNING: None,
        _H.EXITED: None,
        _H.KEPT: None,
        _H.RELEASED: None,
        _H.DUE: Phase.QUEUED,
        _H.STOP: Phase.ENDED,
        _H.FORGOTTEN: None,
    },
    Phase.STARTING: {
        _H.PLACED: None,
        _H.PULLING: Phase.PULLING,
        _H.RUNNING: Phase.RUNNING,
        _H.EXITED: Phase.ENDED,
        _H.KEPT: None,
        _H.RELEASED: None,
        _H.DUE: None,
        _H.STOP: Phase.STOPPING,
        _H.FORGOTTEN: None,
    },
    Phase.PULLING: {
        _H.PLACED: None,
        _H.PULLING: Phase.PULLING,
        _H.RUNNING: Phase.RUNNING,
        _H.EXITED: Phase.ENDED,
        _H.KEPT: None,
        _H.RELEASED: None,
        _H.DUE: None,
        _H.STOP: Phase.STOPPING,
        _H.FORGOTTEN: None,
    },
    Phase.RUNNING: {
        _H.PLACED: None,
        _H.PULLING: Phase.RUNNING,
        _H.RUNNING: Phase.RUNNING,
        _H.EXITED: Phase.ENDED,
        _H.KEPT: Phase.KEPT,
        _H.RELEASED: None,
        _H.DUE: None,
        _H.STOP: Phase.STOPPING,
        _H.FORGOTTEN: None,
    },
    Phase.KEPT: {
        _H.PLACED: None,
        _H.PULLING: Phase.KEPT,
        _H.RUNNING: Phase.KEPT,
        _H.EXITED: Phase.KEPT,
        _H.KEPT: None,
        _H.RELEASED: Phase.ENDED,
        _H.DUE: None,
        _H.STOP: Phase.ENDED,
        _H.FORGOTTEN: None,
    },
    Phase.STOPPING: {
        _H.PLACED: None,
        _H.PULLING: Phase.STOPPING,
        _H.RUNNING: Phase.STOPPING,
        _H.EXITED: Phase.ENDED,
        _H.KEPT: None,
        _H.RELEASED: None,
        _H.DUE: None,
        _H.STOP: Phase.STOPPING,
        _H.FORGOTTEN: None,
    },
    Phase.ENDED: {
        _H.PLACED: None,
        _H.PULLING: Phase.ENDED,
        _H.RUNNING: Phase.ENDED,
        _H.EXITED: Phase.ENDED,
        _H.KEPT: None,
        _H.RELEASED: Phase.ENDED,
        _H.DUE: None,
        _H.STOP: Phase.ENDED,
        _H.FORGOTTEN: Phase.ENDED,
    },
}


def advance(phase: Phase, happening: Happening) -> Phase:
    """The phase after ``happening``. Raises IllegalTransition where the table refuses."""
    target = TRANSITIONS.get(phase, {}).get(happening)
    if target is None:
        raise IllegalTransition(f"a task that is {phase.value} cannot be {happening.value}")
    return target
