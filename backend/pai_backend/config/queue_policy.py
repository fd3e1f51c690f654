"""The rules of the queue as the settings have them, for all roles that decide or plan."""

from __future__ import annotations

from datetime import timedelta

from pai_backend.config.queue import CapSettings, QueueSettings, VcCapSettings
from pai_backend.model.vc_rules import LongestRun
from pai_backend.scheduling.queue import Cap, Patience, Policy, VcCaps


def policy_of(queue: QueueSettings) -> Policy:
    """The rules of the queue as the settings have them."""
    patience = Patience(queue.patience.overtaken, timedelta(seconds=queue.patience.first_for_s))
    vcs = {name: _vc_caps(caps) for name, caps in queue.vcs.items()}
    return Policy(_cap(queue.user), _caps(queue.users), _vc_caps(queue.vc), vcs, patience, queue.order, queue.orders)


def _vc_caps(caps: VcCapSettings) -> VcCaps:
    longest = LongestRun(timedelta(seconds=caps.longest_run_s)) if caps.longest_run_s is not None else None
    return VcCaps(_cap(caps.total), _cap(caps.user), _caps(caps.users), longest)


def _caps(caps: dict[str, CapSettings]) -> dict[str, Cap]:
    return {user: _cap(cap) for user, cap in caps.items()}


def _cap(cap: CapSettings) -> Cap:
    return Cap(cap.tasks, cap.gpus, cap.jobs)
