"""What a recorded trace must say before it can be played: faults of a file, told before anything is compared."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

NEEDS = {
    "submit": ("group", "spec"),
    "retry": ("group",),
    "delete": ("group",),
    "failPod": ("group",),
    "nodeBad": ("node",),
    "nodeHealthy": ("node",),
    "restart": ("config",),
}
"""What each operation names, besides its kind."""
SPEC = ("vc", "priority", "members")
MEMBER = ("podNumber", "leafCellNumber")
POD = ("node", "cells")
OUTCOMES = ("bound", "preempt", "wait", "error", "ok", "skipped", "flipflop", "wouldPreempt")


def fault(data: Any, configs: Collection[str]) -> str | None:
    """Why this is no trace that can be played on one of ``configs``; None when it is one."""
    if not isinstance(data, dict):
        return "a trace is an object"
    for key, kind in (("id", str), ("config", str), ("ops", list), ("outcomes", list)):
        if not isinstance(data.get(key), kind):
            return f"'{key}' is missing or no {'text' if kind is str else 'list'}"
    ops, outcomes, kinds = data["ops"], data["outcomes"], data.get("kindSets")
    if data["config"] not in configs:
        return f"there is no configuration '{data['config']}'; known are {', '.join(sorted(configs))}"
    if len(ops) != len(outcomes) or (kinds and len(kinds) != len(ops)):
        return f"{len(ops)} operations, but {len(outcomes)} outcomes" + (f" and {len(kinds)} kindSets" if kinds else "")
    submitted: set[str] = set()
    for number, (op, outcome) in enumerate(zip(ops, outcomes, strict=True)):
        found = _of_operation(op, submitted, configs) or _of_outcome(outcome)
        if found is not None:
            return f"op {number}: {found}"
    return None


def _of_operation(op: Any, submitted: set[str], configs: Collection[str]) -> str | None:
    """A fault of one operation; notes which groups were submitted so far."""
    kind = op.get("op") if isinstance(op, dict) else None
    if kind not in NEEDS:
        return f"unknown operation {kind!r}; known are {', '.join(NEEDS)}"
    missing = [key for key in NEEDS[kind] if key not in op]
    if missing:
        return f"{kind} without '{missing[0]}'"
    if kind == "restart" and op["config"] not in configs:
        return f"there is no configuration '{op['config']}'"
    if kind == "submit":
        submitted.add(op["group"])
        return _of_spec(op["spec"])
    if kind == "retry" and op["group"] not in submitted:
        return f"group '{op['group']}' was never submitted"
    return None


def _of_spec(spec: Any) -> str | None:
    if not isinstance(spec, dict) or any(key not in spec for key in SPEC):
        return f"a spec has {', '.join(SPEC)}"
    members = spec["members"]
    if not isinstance(members, list) or not members:
        return "a spec has at least one member"
    for member in members:
        if not isinstance(member, dict) or any(not isinstance(member.get(key), int) for key in MEMBER):
            return f"a member has the numbers {', '.join(MEMBER)}"
    return None


def _of_outcome(outcome: Any) -> str | None:
    kind = outcome.get("kind") if isinstance(outcome, dict) else None
    if kind not in OUTCOMES:
        return f"unknown outcome {kind!r}; known are {', '.join(OUTCOMES)}"
    for key in ("placement", "reserved"):
        pods = outcome.get(key) or []
        if not isinstance(pods, list) or any(
            not isinstance(pod, dict) or any(part not in pod for part in POD) for pod in pods
        ):
            return f"'{key}' is a list of pods, each with {', '.join(POD)}"
    return None
