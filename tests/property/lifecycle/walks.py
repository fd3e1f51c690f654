"""Random lives of jobs: whatever an engine, a user or the clock can do next, in any order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hypothesis import strategies as st

from pai_backend.lifecycle.effects import Effect
from pai_backend.lifecycle.events import (
    Displaced,
    JobEvent,
    Look,
    Placed,
    Preempted,
    TaskExited,
    TaskForgotten,
    TaskGone,
    TaskRunning,
    Waiting,
)
from pai_backend.lifecycle.restart import restarted
from pai_backend.lifecycle.step import to_place
from pai_backend.model.ids import TaskUid
from pai_backend.model.job import Desired, Job, Phase, TaskExit
from pai_backend.model.node import Placement
from pai_backend.model.spec import Completion
from pai_backend.testing.builders import T0, make_job, make_role, make_spec
from tests.property.lifecycle.laws import Seen, check

HERE = Placement(node="carol", address="127.0.0.1", machine="laptop")
Step = Callable[[Job, JobEvent, datetime], tuple[Job, tuple[Effect, ...]]]

fails_at = st.sampled_from([1, 1, 2, None])
succeeds_at = st.sampled_from([None, None, 1, 2])
retry_counts = st.integers(-2, 2)
roles = st.builds(
    lambda name, count, failed, succeeded, retries: make_role(
        name,
        instances=count,
        completion=Completion(min_failed=failed, min_succeeded=succeeded),
        task_retry_count=retries,
    ),
    st.sampled_from(["ps", "worker"]),
    st.integers(1, 2),
    fails_at,
    succeeds_at,
    retry_counts,
)
jobs = st.builds(
    lambda chosen, retries, gang, debug: make_job(
        spec=make_spec(roles=chosen, retry_count=retries, gang=gang, debug=debug)
    ),
    st.lists(roles, min_size=1, max_size=2, unique_by=lambda role: role.name),
    retry_counts,
    st.booleans(),
    st.booleans(),
)


@dataclass
class Story:
    """A walk so far; its text is what a failing test shows."""

    job: Job
    now: datetime = T0
    lines: list[str] = field(default_factory=list)
    seen: Seen = field(default_factory=Seen)

    def take(self, step: Step, data: st.DataObject) -> None:
        """One random step, checked against the laws."""
        self.now += timedelta(seconds=data.draw(st.sampled_from([0, 1, 2, 60, 400, 90_000, 700_000])))
        self._intend(data)
        event = data.draw(st.sampled_from(self._choices(data)))
        self.lines.append(f"{self.now}: {event}")
        copy = self.job.model_copy(deep=True)
        after, effects = step(self.job, event, self.now)
        check(copy, self.job, event, after, effects, self.now, "\n".join(self.lines))
        self.seen.check(after, "\n".join(self.lines))
        self.job = after

    def _intend(self, data: st.DataObject) -> None:
        """Now and then the user wants something; the step that comes next finds it on the job."""
        wish = data.draw(st.sampled_from(range(100)))  # ends of an integer range would be drawn too often
        if wish == 50:
            self.job = self.job.model_copy(update={"desired": Desired.STOP})
            self.lines.append("the user asks to stop")
        elif 70 <= wish < 80 and self.job.state.final:
            self.job = restarted(self.job, self.now)
            self.lines.append("the user restarts the job")
        elif 60 <= wish < 70 and not self.job.state.final:
            chosen = data.draw(st.lists(st.sampled_from(self.job.tasks), unique_by=lambda task: task.uid))
            self.job = self.job.model_copy(update={"released": tuple(task.uid for task in chosen)})
            self.lines.append(f"the user lets go of {self.job.released}")

    def _choices(self, data: st.DataObject) -> list[JobEvent]:
        """Everything that could happen next to this job."""
        events: list[JobEvent] = [Look(), Waiting("all is in use")]
        end = data.draw(st.sampled_from(self._exits()))
        waiting = [task.uid for task in to_place(self.job, self.now)]
        if waiting:
            gang = self.job.spec.scheduling.gang_allocation
            some = waiting if gang else data.draw(st.lists(st.sampled_from(waiting), min_size=1, unique=True))
            events += [Placed(dict.fromkeys(some, HERE))] * 3
            events.append(Waiting("others are stopped there", dict.fromkeys(some, HERE)))
        everyone = tuple(task.uid for task in self.job.tasks)
        events += [Preempted(everyone, "bob~first", 100), Displaced(everyone, data.draw(st.booleans()))]
        for task in self.job.tasks:
            if task.phase in (Phase.STARTING, Phase.RUNNING, Phase.STOPPING, Phase.KEPT):
                events.append(TaskRunning(task.uid, self.now))
            if task.phase not in (Phase.QUEUED, Phase.BACKING_OFF):
                events.append(TaskExited(task.uid, end))
            if task.phase is Phase.ENDED:
                events += [TaskForgotten(task.uid)] * (1 if task.forgotten else 3)
            if task.phase is Phase.KEPT:
                events.append(TaskGone(task.uid))
        return events

    def _exits(self) -> list[TaskExit]:
        reasons = ["lost", "preempted", "evicted", "out-of-memory", "start-failed", "port-conflict"]
        return [
            TaskExit(code=0, at=self.now),
            TaskExit(code=3, at=self.now),
            TaskExit(code=127, at=self.now),
            TaskExit(signal=9, reason="signalled", at=self.now),
            *(TaskExit(reason=reason, at=self.now) for reason in reasons),
        ]


def drain(story: Story, step: Step) -> Job:
    """Let every task end and be forgotten after a stop request: the job must come to an end."""
    story.job = story.job.model_copy(update={"desired": Desired.STOP})
    for _ in range(3):
        story.job, _ = step(story.job, Look(), story.now)
        for task in story.job.tasks:
            if not task.is_over:
                story.job, _ = step(
                    story.job, TaskExited(task.uid, TaskExit(code=143, reason="stopped", at=story.now)), story.now
                )
            current = story.job.task(TaskUid(task.uid))
            if current is not None and current.phase is Phase.ENDED and not current.forgotten:
                story.job, _ = step(story.job, TaskForgotten(task.uid), story.now)
    return story.job
