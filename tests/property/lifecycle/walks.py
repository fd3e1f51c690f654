"""Random lives of jobs, and the laws that hold at each step of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hypothesis import strategies as st

from pai_backend.lifecycle.effects import Effect, Forget, Start, open_effects
from pai_backend.lifecycle.events import JobEvent, Look, Placed, TaskExited, TaskForgotten, TaskRunning, Waiting
from pai_backend.lifecycle.step import to_place
from pai_backend.model.job import Causer, Desired, Job, Phase, TaskExit
from pai_backend.model.node import Placement
from pai_backend.model.spec import Completion
from pai_backend.testing.builders import T0, make_job, make_role, make_spec

HERE = Placement(node="carol", address="127.0.0.1", machine="laptop")
Step = Callable[[Job, JobEvent, datetime], tuple[Job, tuple[Effect, ...]]]

limits = st.one_of(st.none(), st.integers(1, 3))
roles = st.builds(
    lambda name, count, failed, succeeded: make_role(
        name, instances=count, completion=Completion(min_failed=failed, min_succeeded=succeeded)
    ),
    st.sampled_from(["ps", "worker", "evaluator"]),
    st.integers(1, 3),
    limits,
    limits,
)
jobs = st.builds(
    lambda chosen, retries: make_job(spec=make_spec(roles=chosen, retry_count=retries)),
    st.lists(roles, min_size=1, max_size=3, unique_by=lambda role: role.name),
    st.integers(-2, 2),
)


@dataclass
class Story:
    """A walk so far; its text is what a failing test shows."""

    job: Job
    now: datetime = T0
    lines: list[str] = field(default_factory=list)

    def choices(self) -> list[JobEvent]:
        """Everything an engine or user could do next to this job."""
        events: list[JobEvent] = [Look(), Waiting("all is in use")]
        if to_place(self.job, self.now):
            events.append(Placed({task.uid: HERE for task in self.job.tasks}))
        for task in self.job.tasks:
            if task.phase in (Phase.STARTING, Phase.RUNNING, Phase.STOPPING):
                events.append(TaskRunning(task.uid, self.now))
            if task.phase not in (Phase.QUEUED,):
                events.extend(TaskExited(task.uid, gone) for gone in self._exits())
            if task.phase is Phase.ENDED:
                events.append(TaskForgotten(task.uid))
        return events

    def _exits(self) -> list[TaskExit]:
        return [
            TaskExit(code=0, at=self.now),
            TaskExit(code=3, at=self.now),
            TaskExit(signal=9, reason="signalled", at=self.now),
            TaskExit(reason="lost", causer=Causer.PLATFORM, at=self.now),
        ]

    def take(self, step: Step, data: st.DataObject) -> None:
        """One random step, checked against the laws."""
        self.now += timedelta(seconds=data.draw(st.integers(0, 400)))
        if data.draw(st.integers(0, 9)) == 0:
            self.job = self.job.model_copy(update={"desired": Desired.STOP})
            self.lines.append("user asks to stop")
        event = data.draw(st.sampled_from(self.choices()))
        self.lines.append(f"{event}")
        copy = self.job.model_copy(deep=True)
        after, effects = step(self.job, event, self.now)
        check(copy, self.job, after, effects, self.now, "\n".join(self.lines))
        self.job = after


def check(copy: Job, before: Job, after: Job, effects: tuple[Effect, ...], now: datetime, story: str) -> None:
    """The laws of one step."""
    assert before == copy, f"a step changes its input\n{story}"
    if before.state.final:
        assert (after.state, after.exit, after.attempt) == (before.state, before.exit, before.attempt), (
            f"a final job changed\n{story}"
        )
    assert after.attempt - before.attempt in (0, 1), f"an attempt was skipped or taken back\n{story}"
    if after.attempt != before.attempt:
        assert all(task.phase is Phase.ENDED for task in before.tasks), f"a retry began while a task lived\n{story}"
        assert sum(not task.forgotten for task in before.tasks) <= 1, f"a retry began before cleaning up\n{story}"
        assert after.retries.total == before.retries.total + 1, f"a retry was not counted\n{story}"
    if after.state.final:
        assert all(task.phase is Phase.ENDED for task in after.tasks), f"a job ended while a task lives\n{story}"
        assert not any(isinstance(effect, Start) for effect in open_effects(after)), f"a final job starts\n{story}"
    for task in after.tasks:
        assert (task.exit is not None) == (task.phase is Phase.ENDED), f"an exit without an end\n{story}"
    opened = set(open_effects(after)) - set(open_effects(before))
    assert set(effects) == opened, f"effects returned are not those opened\n{story}"
    forgets = {effect.uid for effect in open_effects(after) if isinstance(effect, Forget)}
    waiting = {task.uid for task in after.tasks if task.phase is Phase.ENDED and not task.forgotten}
    assert forgets == waiting, f"an ended task is not cleaned up\n{story}"
    if after.desired is Desired.STOP and not before.state.final and after.verdict is not None:
        assert not to_place(after, now), f"a stopped job asks for a place\n{story}"


def drain(story: Story, step: Step) -> Job:
    """Let every task end and be forgotten after a stop request: the job must come to an end."""
    story.job = story.job.model_copy(update={"desired": Desired.STOP})
    for _ in range(3):
        story.job, _ = step(story.job, Look(), story.now)
        for task in story.job.tasks:
            if task.phase is not Phase.ENDED:
                story.job, _ = step(
                    story.job, TaskExited(task.uid, TaskExit(code=143, reason="stopped", at=story.now)), story.now
                )
            if (current := story.job.task(task.uid)) is not None and not current.forgotten:
                story.job, _ = step(story.job, TaskForgotten(task.uid), story.now)
    return story.job
