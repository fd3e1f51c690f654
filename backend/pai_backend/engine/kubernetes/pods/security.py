"""As whom the containers of a task run, and what the kernel lets them do."""

from __future__ import annotations

from typing import Final

from pai_backend.engine.kubernetes.objects import Object
from pai_backend.model.plan import TaskPlan
from pai_backend.model.pod_settings import PodSettings

RUNTIME_USER: Final = 64000  # as in the backend's image: of no account, and not root


def pod_security(settings: PodSettings) -> Object:
    """For all containers of the pod: its user, when the administrator names one, and its system calls."""
    chosen = settings.security
    found: Object = {"seccompProfile": {"type": chosen.seccomp}}
    for field, number in (("runAsUser", chosen.user), ("runAsGroup", chosen.group), ("fsGroup", chosen.fs_group)):
        if number is not None:
            found[field] = number
    if chosen.restricted:
        found["runAsNonRoot"] = True
    return found


def task_security(plan: TaskPlan, settings: PodSettings) -> Object:
    """For the task's container. Nothing by default: it may do what the container runtime lets any do."""
    found = init_security(settings)
    wanted = set(settings.security.capabilities)
    if plan.infiniband and settings.infiniband is not None:
        wanted |= set(settings.infiniband.capabilities)
    if wanted:
        found["capabilities"] = {**found.get("capabilities", {}), "add": sorted(wanted)}
    return found


def init_security(settings: PodSettings) -> Object:
    """For what runs before it."""
    if not settings.security.restricted:
        return {}
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def runtime_security(settings: PodSettings) -> Object:
    """For what copies the runtime bundle: its image names no user, which would be root and refused by the kubelet.

    The task's user, with any uid, may read what it writes.
    """
    found = init_security(settings)
    if settings.security.restricted and settings.security.user is None:
        found |= {"runAsUser": RUNTIME_USER, "runAsGroup": RUNTIME_USER}
    return found
