"""What each recorded or live case of a pod is read as: the same table for both.

The cases are made by ``tests/kubernetes/pod_cases.py`` on a real cluster; ``python -m tests.kubernetes.record_pods``
records them in ``tests/data/kubernetes``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pai_backend.engine.base import TaskState
from pai_backend.engine.kubernetes.status.task import PodReading
from pai_backend.model.job import Causer

USER, PLATFORM, RESOURCE = Causer.USER, Causer.PLATFORM, Causer.RESOURCE


@dataclass(frozen=True)
class Expected:
    """A reading: the state, and of an exit what it says."""

    state: TaskState
    words: str
    reason: str = ""
    causer: Causer | None = None
    code: int | None = None
    signal: int | None = None
    began: bool = False
    """Whether its command ever started."""
    uncertain: bool = False
    """Whether a busy node may have lost track of how and since when, though it knows why."""


def exited(reason: str, causer: Causer, words: str, *, code: int | None = None, signal: int | None = None) -> Expected:
    """A command that began, and its end."""
    return Expected(TaskState.EXITED, words, reason, causer, code, signal, began=True)


def never(reason: str, causer: Causer, words: str) -> Expected:
    """A task that ended before its command began."""
    return Expected(TaskState.EXITED, words, reason, causer)


READINGS = {
    "succeeded": exited("exited", USER, "status 0", code=0),
    "failed": exited("exited", USER, "status 3", code=3),
    "signalled": exited("signalled", USER, "signal 11", signal=11),
    "running": Expected(TaskState.RUNNING, "", began=True),
    "kept": Expected(TaskState.RUNNING, "", began=True),
    "out-of-memory": exited("out-of-memory", USER, "lack of memory", signal=9),
    "child-out-of-memory": exited("exited", USER, "the kernel killed a process of it", code=3),
    "launcher-killed": exited("signalled", USER, "signal 9", signal=9),
    "stopped": exited("stopped", USER, "stopped on request", signal=15),
    "stopped-deaf": exited("stopped", USER, "stopped on request", signal=9),
    "stopped-unplaced": never("stopped", USER, "stopped on request"),
    "deleted-by-hand": exited("vanished", PLATFORM, "deleted by another client", signal=15),
    "deleted-after-its-end": exited("exited", USER, "status 4", code=4),
    "drained": exited("drained", PLATFORM, "Eviction API", code=0),
    "tainted": exited("drained", PLATFORM, "taint", code=0),
    "preempted": exited("preempted", RESOURCE, "preempted it for another pod", code=0),
    "preempted-by-kubelet": exited("preempted", RESOURCE, "preempted it for another pod .*critical pod", code=0),
    "evicted": exited("evicted", RESOURCE, "low on resource: memory", code=0),
    "shut-down": exited("lost", PLATFORM, "was lost .*shutdown", code=0),
    "node-deleted": exited("lost", PLATFORM, "no longer part of the cluster"),
    "disk-limit": Expected(TaskState.EXITED, "EmptyDir volume|ephemeral", "storage-exceeded", USER, uncertain=True),
    "disk-limit-obeyed": exited("lost", PLATFORM, "the cluster gives no reason", code=0),  # an event does
    "deadline-obeyed": exited("deadline-exceeded", USER, "longer than the specified deadline", code=0),
    "deadline": exited("deadline-exceeded", USER, "longer than the specified deadline", signal=15),
    "power-cut": exited("lost", PLATFORM, "lost track"),
    "image-missing": Expected(TaskState.PULLING, "ImagePullBackOff|ErrImagePull"),
    "image-never-pulled": never("image-pull-failed", USER, "ErrImageNeverPull"),
    "image-name-wrong": never("image-pull-failed", USER, "InvalidImageName"),
    "runtime-image-missing": Expected(TaskState.PULLING, "which is the platform's"),
    "root-forbidden": Expected(TaskState.STARTING, "CreateContainerConfigError.*runAsNonRoot"),
    "no-launcher": never("start-failed", PLATFORM, "container could not be started"),
    "inputs-failed": never("input-failed", USER, "there is no such place"),
    "fetching": Expected(TaskState.PULLING, "fetching code, data"),
    "runtime-failed": never("start-failed", PLATFORM, "no room for it"),
    "node-full": never("refused", RESOURCE, "carol did not take it .OutOfcpu"),
    "node-affinity": never("refused", RESOURCE, "did not take it .(NodeAffinity|Pod)"),
    "unschedulable": Expected(TaskState.STARTING, "does not put it on its node .*Insufficient cpu"),
    "no-volume": Expected(TaskState.STARTING, "network and volumes are being made"),
}
"""Case -> its reading, at the instant it was recorded, with the patience that is the default."""


def assert_reads(reading: PodReading, expected: Expected) -> None:
    """Fail unless the reading is as expected."""
    seen = reading.seen
    assert seen.state is expected.state, seen
    if expected.reason:
        assert seen.exit is not None
        assert (seen.exit.reason, seen.exit.causer) == (expected.reason, expected.causer), seen
    if not expected.uncertain:
        assert (seen.since is not None) == expected.began, seen
        if seen.exit is not None:
            assert (seen.exit.code, seen.exit.signal) == (expected.code, expected.signal), seen
    words = seen.exit.message if seen.exit is not None else seen.message
    assert re.search(expected.words, words), words
