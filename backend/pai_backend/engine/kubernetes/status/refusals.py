"""What it means for a task when the API server refuses one of its objects: later perhaps, or never as it is.

Source: Kubernetes documentation, "Resource Quotas", "Limit Ranges", "Pod Security Admission", "Dynamic Admission
Control", "Validating Admission Policy"; the words of an API server v1.34, which ``tests/kubernetes/test_pods.py`` and
``tests/kubernetes/faults`` hold against a real one.
"""

from __future__ import annotations

import re

from pai_backend.engine.base import EngineError, StartRefused
from pai_backend.engine.kubernetes.failures import AlreadyExists, Conflict, Forbidden, Invalid, NotFound, Refused
from pai_backend.engine.kubernetes.status.view import words

_LIMIT = re.compile(r"(maximum|minimum) .* usage per|limit to request ratio")
_RULE = re.compile(r"admission webhook .* denied the request|ValidatingAdmissionPolicy .* denied request")


def start_error(refused: Refused) -> EngineError:
    """What starting a task raises when the creation of one of its objects was refused.

    A quota that is used up, a missing right, a server that is busy: another try may succeed, and the message says what
    it waits for. What the namespace forbids whatever room there is: StartRefused, since only another document or
    another configuration helps.
    """
    said = str(refused)
    if isinstance(refused, Forbidden):
        return _forbidden(said)
    if isinstance(refused, NotFound):
        return EngineError(f"the namespace of its task is not there; the administrator must make it ({words(said)})")
    if isinstance(refused, Conflict | AlreadyExists):
        return EngineError(f"an object of its task is in the way or on its way out ({words(said)})")
    if isinstance(refused, Invalid):
        return StartRefused(f"the cluster does not take its pod as it is ({words(said)})")
    return EngineError(f"the cluster cannot start it now ({words(said)})")


def _forbidden(said: str) -> EngineError:
    if "exceeded quota" in said:
        return EngineError(f"the quota of its namespace is used up; it starts when there is room ({words(said)})")
    if "violates PodSecurity" in said:
        return StartRefused(
            "the namespace does not allow what the administrator has set for pods; "
            f"change the settings, or the namespace's Pod Security Standard ({words(said)})"
        )
    if _LIMIT.search(said):
        return StartRefused(f"it asks for more or less than its namespace allows one task ({words(said)})")
    if _RULE.search(said):
        return StartRefused(f"a rule of the cluster forbids its pod ({words(said)})")
    if "is being terminated" in said:
        return EngineError(f"its namespace is being removed ({words(said)})")
    return EngineError(f"the backend may not make pods; the administrator must allow it ({words(said)})")
