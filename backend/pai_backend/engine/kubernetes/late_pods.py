"""Pods that appear though this process asked for none: a controller that slept through its lease makes its last.

By then the task may have been stopped, and forgotten, for want of a pod. The watching process asks the task's Secret,
and ends what must not run. Of pods that this process makes itself no Secret is asked.
"""

from __future__ import annotations

from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.ending import KEPT_GRACE_S, end_pod, find, remove_pod
from pai_backend.engine.kubernetes.marks import marks_of
from pai_backend.engine.kubernetes.objects import Object, name_of, uid_of
from pai_backend.engine.kubernetes.places import ResourceKind, places_of
from pai_backend.model.ids import TaskUid


class LatePods:
    """Knows which pods are expected, and settles the others."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._expected: set[TaskUid] = set()

    def expect(self, uid: TaskUid) -> None:
        """Know that this process is about to make the task's pod."""
        self._expected.add(uid)

    def came(self, uid: TaskUid) -> bool:
        """A pod of the task has come, or never will: whether it was expected, which it no longer is."""
        expected = uid in self._expected
        self._expected.discard(uid)
        return expected

    async def settle(self, uid: TaskUid, pod: Object) -> bool:
        """End the pod when its task was asked to end, remove it when the task is forgotten. False in the latter case.

        Raises EngineError.
        """
        places = places_of(pod)
        secret = await find(self._calls, places.one(ResourceKind.SECRET, naming.task_name(uid)))
        marks = marks_of(secret) if secret is not None else None
        if marks is not None and marks.forgotten is not None:
            await remove_pod(self._calls, places, name_of(pod), uid_of(pod))
            return False
        if marks is not None and marks.stop:
            await end_pod(self._calls, places, pod, marks.stop, KEPT_GRACE_S)
        return True
