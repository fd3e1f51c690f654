"""Pods that a real kubelet, scheduler and API server made, and what they are read as.

``python -m tests.kubernetes.record_pods`` recorded them; ``tests/kubernetes/test_pods.py`` makes them happen again.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pai_backend.engine.base import TaskState
from pai_backend.engine.kubernetes.objects import Object
from pai_backend.engine.kubernetes.status.exits import exit_of
from pai_backend.engine.kubernetes.status.task import EXPLAINED, Around, read_task
from pai_backend.engine.kubernetes.status.view import time_of, view_of
from pai_backend.model.cluster_settings import TroublePatience
from tests.support.pod_readings import READINGS, Expected, assert_reads

PODS = Path(__file__).resolve().parents[4] / "data" / "kubernetes" / "pods"


def recorded(name: str) -> Object:
    pod = json.loads((PODS / f"{name}.json").read_text())
    assert isinstance(pod, dict)
    return pod


def test_every_case_is_recorded() -> None:
    assert {path.stem for path in PODS.glob("*.json")} == set(READINGS)


@pytest.mark.parametrize(("name", "expected"), READINGS.items(), ids=READINGS)
def test_a_recorded_pod_is_read_as_what_happened(name: str, expected: Expected) -> None:
    pod = recorded(name)
    created = time_of(pod["metadata"]["creationTimestamp"])
    assert created is not None
    end = exit_of(view_of(pod))[0].at if view_of(pod).over else None
    now = end + EXPLAINED if end is not None else created
    assert_reads(read_task(pod, Around(now, TroublePatience())), expected)


@pytest.mark.parametrize("name", READINGS)
def test_an_end_reads_the_same_at_any_time(name: str) -> None:
    """A restart of the backend must not find another exit, or another time of it."""
    pod = recorded(name)
    early, late = (read_task(pod, Around(datetime(year, 1, 1, tzinfo=UTC), TroublePatience())) for year in (2026, 2036))
    if early.seen.state is TaskState.EXITED and not early.decided:
        assert early == late


def test_an_event_tells_of_a_full_disk_where_the_pod_does_not() -> None:
    """Nothing else is left when the command exits with 0: the pod says that it has succeeded."""
    pod = recorded("disk-limit-obeyed")
    ended = exit_of(view_of(pod))[0].at
    assert ended is not None
    now = ended + timedelta(seconds=1)
    waits = read_task(pod, Around(now, TroublePatience()))
    assert (waits.seen.state, waits.look_at) == (TaskState.RUNNING, ended + EXPLAINED)
    said = 'Usage of EmptyDir volume "work" exceeds the limit "20Mi". '
    told = read_task(pod, Around(now, TroublePatience(), events=[{"reason": "Evicted", "message": said}]))
    assert told.decided, "an event is gone in an hour, so it is written down"
    assert told.seen.exit is not None
    assert (told.seen.exit.reason, told.seen.exit.code) == ("storage-exceeded", 0)
    assert "20Mi" in told.seen.exit.message
    other = read_task(pod, Around(now, TroublePatience(), events=[{"reason": "Pulled", "message": said}]))
    assert other.seen.state is TaskState.RUNNING


def test_nothing_recorded_tells_of_the_machine_it_was_recorded_on() -> None:
    for path in (*PODS.glob("*.json"), *PODS.with_name("nodes").glob("*.json")):
        text = path.read_text()
        for word in ("machineID", "containerID", "hostIP", "podIP", "/var/", "/root", "/tmp"):
            assert word not in text, (path.name, word)
