"""The laws of ``step``: what holds of every step and of every life."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from pai_backend.lifecycle.effects import Effect, Forget, Refresh, Start, open_effects
from pai_backend.lifecycle.events import JobEvent, Preempted, TaskGone
from pai_backend.lifecycle.step import to_place
from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Desired, ExitKind, Job, Phase, Retries, State, Task

ALWAYS = -2


@dataclass
class Seen:
    """All runs of tasks in one life."""

    slot_of: dict[TaskUid, tuple[str, int, int]] = field(default_factory=dict)

    def check(self, job: Job, story: str) -> None:
        """No uid ever means two runs."""
        for task in job.tasks:
            run = (task.role, task.index, task.attempt)
            assert self.slot_of.setdefault(task.uid, run) == run, f"a uid is used twice\n{story}"
        assert len(set(self.slot_of.values())) == len(self.slot_of), f"a run has two uids\n{story}"


def check(
    copy: Job, before: Job, event: JobEvent, after: Job, effects: tuple[Effect, ...], now: datetime, story: str
) -> None:
    """The laws of one step."""
    assert before == copy, f"a step changes its input\n{story}"
    _check_final(before, after, story)
    _check_attempts(before, after, story)
    for old, new in _slots(before, after, story):
        _check_task(before, event, old, new, now, story)
        _check_task_retry(after, old, new, story)
    _check_effects(before, after, effects, story)
    if after.desired is Desired.STOP and not before.state.final and after.verdict is not None:
        assert not to_place(after, now), f"a stopped job asks for a place\n{story}"


def _slots(before: Job, after: Job, story: str) -> list[tuple[Task, Task]]:
    """Each instance before and after."""
    old = {(task.role, task.index): task for task in before.tasks}
    new = {(task.role, task.index): task for task in after.tasks}
    assert list(old) == list(new), f"a task is lost or made up\n{story}"
    return [(old[slot], new[slot]) for slot in old]


def _check_final(before: Job, after: Job, story: str) -> None:
    if before.state.final:
        assert (after.state, after.exit, after.attempt) == (before.state, before.exit, before.attempt), (
            f"a final job changed\n{story}"
        )
    if after.state.final:
        assert all(task.phase is Phase.ENDED for task in after.tasks), f"a job ended while a task lives\n{story}"
        assert not any(isinstance(effect, Start) for effect in open_effects(after)), f"a final job starts\n{story}"


def _check_attempts(before: Job, after: Job, story: str) -> None:
    assert after.attempt - before.attempt in (0, 1), f"an attempt was skipped or taken back\n{story}"
    if after.attempt == before.attempt:
        assert after.retries == before.retries, f"a retry was counted that is none\n{story}"
        return
    assert all(task.phase is Phase.ENDED for task in before.tasks), f"a retry began while a task lived\n{story}"
    assert sum(not task.forgotten for task in before.tasks) <= 1, f"a retry began before cleaning up\n{story}"
    assert before.verdict is not None, f"a retry began without a verdict\n{story}"
    if before.restarting:
        assert before.desired is Desired.START, f"a job was restarted that its user stopped\n{story}"
        assert after.retries == Retries(), f"a restarted job has not all retries before it\n{story}"
        return
    kind = before.verdict.kind if before.verdict.outcome is State.FAILED else ExitKind.SUCCESS
    _check_counted(before.spec.retry_count, kind, before.retries, after.retries, story)


def _check_counted(limit: int, kind: ExitKind, before: Retries, after: Retries, story: str) -> None:
    """A retry is counted once, charged unless it is free, and within its limit."""
    assert after.total == before.total + 1, f"a retry was not counted\n{story}"
    charged = after.charged - before.charged
    assert charged == (0 if kind.free else 1), f"a free retry was charged, or another was not\n{story}"
    assert limit == ALWAYS or kind is not ExitKind.PERMANENT, f"a permanent failure was retried\n{story}"
    assert limit == ALWAYS or kind is not ExitKind.SUCCESS, f"a success was retried\n{story}"
    assert limit < 0 or after.charged <= limit, f"more retries than the document allows\n{story}"


def _check_task(before: Job, event: JobEvent, old: Task, new: Task, now: datetime, story: str) -> None:
    assert (new.exit is not None) == new.is_over, f"an exit without an end\n{story}"
    assert (new.phase is Phase.BACKING_OFF) == (new.backoff_until is not None), f"a pause without an end\n{story}"
    assert new.reserved is None or new.phase is Phase.QUEUED, f"a place is kept for what does not wait\n{story}"
    if old.exit is not None and new.uid == old.uid:
        assert new.exit == old.exit, f"an exit was rewritten\n{story}"
    if old.phase is not Phase.KEPT or new.phase is Phase.KEPT:
        return
    reasons = {
        "user": old.uid in before.released,
        "clock": old.kept_until is not None and now >= old.kept_until,
        "stop": before.desired is Desired.STOP,
        "lost": isinstance(event, TaskGone) and event.uid == old.uid,
        "preempted": isinstance(event, Preempted) and old.uid in event.uids,
    }
    assert new.uid == old.uid, f"a kept task was run again before it was let go\n{story}"
    assert reasons.get(new.released_by, False), f"a kept task was let go without a reason\n{story}"


def _check_task_retry(after: Job, old: Task, new: Task, story: str) -> None:
    assert new.attempt - old.attempt in (0, 1), f"a run was skipped or taken back\n{story}"
    assert (new.uid == old.uid) == (new.attempt == old.attempt), f"a run without a uid of its own\n{story}"
    if new.uid == old.uid or new.job_attempt != old.job_attempt:
        return
    assert not after.spec.scheduling.gang_allocation, f"a task of a gang was run again alone\n{story}"
    assert old.phase is Phase.ENDED, f"a task was run again before its end\n{story}"
    assert old.exit is not None, f"a task ended without an exit\n{story}"
    kinds = {
        "lost": ExitKind.TRANSIENT,
        "preempted": ExitKind.TRANSIENT,
        "port-conflict": ExitKind.TRANSIENT,
        "evicted": ExitKind.TRANSIENT_CONFLICT,
        "out-of-memory": ExitKind.PERMANENT,
    }
    by_status = {0: ExitKind.SUCCESS, 127: ExitKind.PERMANENT}.get(old.exit.status, ExitKind.UNKNOWN)
    kind = kinds.get(old.exit.reason, by_status)
    _check_counted(after.spec.role(new.role).task_retry_count, kind, old.retries, new.retries, story)


def _check_effects(before: Job, after: Job, effects: tuple[Effect, ...], story: str) -> None:
    now_open = open_effects(after)
    assert set(effects) == set(now_open) - set(open_effects(before)), f"effects are not those opened\n{story}"
    stored = Job.model_validate_json(after.model_dump_json())
    assert open_effects(stored) == now_open, f"what is to be done cannot be read off the stored job\n{story}"
    forgets = {effect.uid for effect in now_open if isinstance(effect, Forget)}
    waiting = {task.uid for task in after.tasks if task.phase is Phase.ENDED and not task.forgotten}
    assert forgets == waiting, f"an ended task is not cleaned up\n{story}"
    told = {effect.uid for effect in now_open if isinstance(effect, Refresh)}
    moves = not after.spec.scheduling.gang_allocation and len(after.tasks) > 1
    assert told == {task.uid for task in after.tasks if moves and task.phase is Phase.RUNNING}, f"peers\n{story}"
