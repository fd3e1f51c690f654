"""What it means for a task when the API server refuses one of its objects: later perhaps, or never as it is.

Source: Kubernetes documentation, "Resource Quotas", "Limit Ranges", "Pod Security Admission", "Dynamic Admission
Control", "Validating Admission Policy"; the words of an API server v1.34, which ``tests/kubernetes/test_pods.py`` and
``tests/kubernetes/faults`` hold against a real one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pai_backend.engine.base import EngineError, StartForbidden
from pai_backend.engine.kubernetes.failures import (
    AlreadyExists,
    ApiConflict,
    ApiForbidden,
    ApiNotFound,
    Invalid,
    NotAdmitted,
    RequestRefused,
)
from pai_backend.engine.kubernetes.status.view import words

_LIMIT = re.compile(r"(maximum|minimum) .* usage per|limit to request ratio")
_RULE = re.compile(r"admission webhook .* denied the request|ValidatingAdmissionPolicy .* denied request")
_MISSING = re.compile(r"no PriorityClass with name|error looking up service account|RuntimeClass .* not found")


def missing_choice(said: str) -> StartForbidden:
    """What a document names of the cluster is not there."""
    return StartForbidden(
        f"the cluster does not have what its document asks for in extras.jupyterPai.kubernetes ({said}); choose "
        "another name, or ask the administrator to make it"
    )


def start_error(refused: RequestRefused, chosen: Sequence[str] = ()) -> EngineError:
    """What starting a task raises when the creation of one of its objects was refused.

    A quota that is used up, a missing right, a server that is busy, settings that the namespace does not allow: another
    try may succeed, and the message says what it waits for. What is forbidden to the document, whatever room there is:
    StartForbidden, since only another document helps. ``chosen``: names of objects that the document asks for.
    """
    said = str(refused)
    if isinstance(refused, ApiForbidden):
        return _forbidden(said, chosen)
    if isinstance(refused, ApiNotFound):
        return EngineError(f"the namespace of its task is not there; the administrator must make it ({words(said)})")
    if isinstance(refused, ApiConflict | AlreadyExists):
        return EngineError(f"an object with the name of its task exists or is being deleted ({words(said)})")
    if isinstance(refused, Invalid):
        return StartForbidden(f"the cluster rejects its pod ({words(said)})")
    if isinstance(refused, NotAdmitted):
        return EngineError(
            "a webhook that the cluster asks about pods does not answer; it starts when the administrator has "
            f"repaired or removed that webhook ({words(said)})"
        )
    return EngineError(f"the cluster cannot start it now ({words(said)})")


def _forbidden(said: str, chosen: Sequence[str]) -> EngineError:
    if "exceeded quota" in said:
        return EngineError(f"the quota of its namespace is used up; it starts when there is room ({words(said)})")
    if "failed quota" in said:
        return EngineError(
            "a quota of its namespace counts something that pods do not state; it starts when the administrator has "
            f"given them a default by a LimitRange, or changed the quota ({words(said)})"
        )
    if "violates PodSecurity" in said:
        return EngineError(
            "the namespace does not allow what the administrator has set for pods; it starts when the administrator "
            f"has changed kubernetes.pods, or the namespace's Pod Security Standard ({words(said)})"
        )
    if _MISSING.search(said) and any(re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", said) for name in chosen):
        return missing_choice(words(said))
    if _MISSING.search(said):
        return EngineError(
            "the cluster does not have what the administrator has set for pods; it starts when the administrator has "
            f"made it, or changed kubernetes.pods ({words(said)})"
        )
    if _LIMIT.search(said):
        return StartForbidden(f"it asks for more or less than its namespace allows one task ({words(said)})")
    if _RULE.search(said):
        return StartForbidden(f"a rule of the cluster forbids its pod ({words(said)})")
    if "is being terminated" in said:
        return EngineError(f"its namespace is being removed ({words(said)})")
    return EngineError(f"the backend may not make pods; the administrator must allow it ({words(said)})")
