"""Why a login is refused or ended: a word for programs beside the sentence for people. Pure."""

from __future__ import annotations

from enum import StrEnum


class RefusalReason(StrEnum):
    """The word; ``docs/ssh-gateway.md`` explains each."""

    CLOSED = "closed"
    LOST = "lost"
    TIMEOUT = "timeout"
    PROTOCOL = "protocol-error"
    CROWDED = "crowded"
    STOPPING = "gateway-stopping"
    FAULT = "gateway-fault"
    DENIED = "denied"
    RIGHT_ENDED = "right-ended"
    UNKNOWN = "unknown-name"
    WAITING = "not-running"
    ENDED = "job-ended"
    TASK_ENDED = "task-ended"
    MOVED = "task-moved"
    UNREACHABLE = "unreachable"


class LoginRefused(Exception):
    """The login cannot go on to a task now; the message is one sentence or two for the user."""

    def __init__(self, text: str, reason: RefusalReason) -> None:
        super().__init__(text)
        self.reason = reason


class NotYet(LoginRefused):
    """The task does not run yet, and may be waited for."""

    def __init__(self, text: str) -> None:
        super().__init__(text, RefusalReason.WAITING)
