"""Plans and versions of the cluster configuration in words."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_pai.cluster_text import MOST_JOBS, faults_of, history_text, plan_text, shown_text, warnings_text
from jupyter_pai.wire_types import ClusterChange, ClusterPlan, ConfigShown, ConfigVersionShown, JobEffect

EMPTY: ClusterChange = {
    "lost": [],
    "regained": [],
    "dropped": [],
    "missing": [],
    "impossible": [],
    "starts": [],
    "virtualClusters": [],
    "addedNodes": [],
    "removedNodes": [],
}


def effect(number: int, message: str = "", *, already: bool = False) -> JobEffect:
    return {"job": f"ann~j{number}", "vc": "vc", "gpus": 4, "groups": [], "message": message, "already": already}


def plan(**changes: Any) -> ClusterPlan:
    return {
        "valid": True,
        "errors": [],
        "warnings": [],
        "inForceVersion": 1,
        "newestVersion": 1,
        "concerns": True,
        "change": {**EMPTY, **changes},  # type: ignore[typeddict-item]
        "appliedVersion": None,
        "inForce": False,
    }


def jobs_told(**changes: Any) -> list[str]:
    return plan_text(plan(**changes)).split("\n\n")[1].splitlines()


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("lost", "keeps running outside its quota: it may be preempted"),
        ("regained", "is within its quota again"),
        ("dropped", "loses its reservation and is scheduled again"),
        ("missing", "runs on cells that are no longer configured"),
        ("impossible", "waits, and can never start: no such virtual cluster"),
        ("starts", "waits, and would start now"),
    ],
)
def test_each_effect_has_its_words(kind: str, said: str) -> None:
    message = "no such virtual cluster" if kind == "impossible" else ""
    head, row = jobs_told(**{kind: [effect(1, message)]})
    assert head.split(maxsplit=3) == ["JOB", "VC", "GPUS", "WHAT HAPPENS"]
    assert row.split(maxsplit=3) == ["ann~j1", "vc", "4", said]


def test_who_could_not_start_before_either_is_only_counted() -> None:
    assert jobs_told(impossible=[effect(1, "why", already=True)]) == [
        "No job is affected.",
        "1 waiting job can never start with this configuration, as with the present one.",
    ]


def test_long_lists_are_cut_and_say_so() -> None:
    lines = jobs_told(lost=[effect(number) for number in range(MOST_JOBS + 7)])
    assert len(lines) == 1 + MOST_JOBS + 1
    assert lines[-1].startswith("And 7 more of this kind")


def test_virtual_clusters_that_come_and_go_are_marked_and_nodes_named() -> None:
    vc = {"vc": "new", "existsBefore": False, "existsAfter": True, "gpusBefore": 0, "gpusAfter": 8, "cells": []}
    gone = {**vc, "vc": "old", "existsBefore": True, "existsAfter": False}
    text = plan_text(plan(virtualClusters=[vc, gone], addedNodes=["a"], removedNodes=["b\x1b[2J"]))
    lines = text.split("\n\n")[0].splitlines()
    assert lines[1].split() == ["new", "GPUs", "in", "all", "0", "8", "is", "new"]
    assert lines[2].endswith("goes")
    assert lines[3:] == ["Nodes newly configured: a", "Nodes no longer configured: b[2J"]


def test_faults_and_warnings_have_their_places() -> None:
    fault = {"path": "$.x", "message": "wrong", "line": 3, "column": 5, "hint": "Mend it."}
    error = faults_of([fault, fault])  # type: ignore[list-item]
    assert error.message == "The cluster configuration has 2 faults; nothing was changed."
    assert [(each.line, each.column) for each in error.faults] == [(3, 5)] * 2
    assert warnings_text([fault]) == "! 3:5: wrong Mend it."  # type: ignore[list-item]


def version(**changes: Any) -> ConfigVersionShown:
    found = {"version": 2, "state": "in force", "origin": "rest", "by": "root", "change": None}
    times = {"recordedAt": "2026-11-21T10:00:00Z", "since": "2026-11-21T10:00:01Z"}
    return {**found, **times, **changes}  # type: ignore[typeddict-item]


def test_a_version_says_where_it_came_from_and_what_waits() -> None:
    more = {"text": "a: 1\n", "derived": "", "newestVersion": 3, "fixed": False, "precedence": "The last one."}
    shown: ConfigShown = {**version(), **more}  # type: ignore[typeddict-item]
    first, second, *rest = shown_text(shown).splitlines()
    assert first.startswith("# version 2, in force since 2026-11-21 ")
    assert first.endswith(": applied by root")
    assert second == "# version 3 is recorded and waits for the controller"
    assert rest == ["# The last one.", "a: 1"]
    derived: ConfigShown = {**shown, "version": 0, "newestVersion": 0, "origin": "derived", "since": None}
    assert shown_text(derived).startswith("# version 0, in force: derived from the nodes\n")


def test_the_history_counts_whom_each_version_concerned() -> None:
    change: ClusterChange = {**EMPTY, "lost": [effect(1), effect(2)], "dropped": [effect(3)]}
    rows = history_text([version(change=change), version(version=1, origin="setting", by="", change=None)]).splitlines()
    assert rows[1].endswith("2 lost quota, 1 reservation dropped")
    assert "cluster.config" in rows[2]
    assert history_text([]).startswith("There is no version yet")
