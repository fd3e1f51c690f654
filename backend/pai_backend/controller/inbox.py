"""Where news waits for the loop: kept by what it is about, so that it stays small however fast it comes.

Secrets are taken out of an engine's words before they become part of a job, its events and its rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from pai_backend.access.secrecy import JobSecrets
from pai_backend.controller.admission import Admission
from pai_backend.engine.base import EngineEvent, Listed, NodeGone, NodeSeen, TaskSeen, TaskState
from pai_backend.lifecycle.events import JobEvent, TaskDelayed, TaskExited, TaskPulling, TaskRunning, Waiting
from pai_backend.model.ids import JobUid, TaskUid, job_of
from pai_backend.model.job import Job
from pai_backend.model.node import Node
from pai_backend.model.scrub import Scrubber
from pai_backend.scheduling.config.model import ClusterConfig


@dataclass(frozen=True)
class Configured:
    """A version of the cluster configuration that has been read; without a configuration: derived from the nodes."""

    version: int
    config: ClusterConfig | None


@dataclass
class Batch:
    """What has come in since the last one. ``nodes`` maps a name to its node, or None when it is gone."""

    nodes: dict[str, Node | None] = field(default_factory=dict)
    tasks: dict[TaskUid, TaskSeen] = field(default_factory=dict)
    events: dict[JobUid, list[JobEvent]] = field(default_factory=dict)
    listed: bool = False
    store_changed: bool = False
    configured: Configured | None = None
    admission: Admission | None = None


class Inbox:
    """Collects news from the same event loop; one consumer."""

    def __init__(self) -> None:
        self._batch = Batch()
        self._arrived = asyncio.Event()

    def engine(self, event: EngineEvent) -> None:
        """News from the engine; of one task only the latest counts."""
        match event:
            case NodeSeen(node=node):
                self._batch.nodes[node.name] = node
            case NodeGone(name=name):
                self._batch.nodes[name] = None
            case TaskSeen(uid=uid):
                self._batch.tasks[uid] = event
            case Listed():
                self._batch.listed = True
        self._arrived.set()

    def report(self, uid: JobUid, event: JobEvent) -> None:
        """What came of an effect."""
        self._batch.events.setdefault(uid, []).append(event)
        self._arrived.set()

    def configured(self, found: Configured) -> None:
        """A newer cluster configuration; only the newest counts."""
        self._batch.configured = found
        self._arrived.set()

    def admitted(self, found: Admission) -> None:
        """Who may start; only the newest counts."""
        self._batch.admission = found
        self._arrived.set()

    def store_changed(self) -> None:
        """Something was committed; there may be intents."""
        self._batch.store_changed = True
        self._arrived.set()

    async def take(self, timeout_s: float | None) -> Batch:
        """All that has come in, waiting for the first of it or until the time-out."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._arrived.wait()
        except TimeoutError:
            pass
        self._arrived.clear()
        batch, self._batch = self._batch, Batch()
        return batch


def job_events(seen: TaskSeen) -> list[JobEvent]:
    """What an engine's word about a task means to its job; nothing when it says nothing new.

    A short task may be over before it was seen running: its start time still counts. What an engine says of a task that
    has not begun yet, such as that its image cannot be fetched, is why its job waits.
    """
    events: list[JobEvent] = []
    if seen.message and seen.state in (TaskState.STARTING, TaskState.PULLING):
        events.append(TaskDelayed(seen.uid, seen.message))
    if seen.state is TaskState.PULLING:
        events.append(TaskPulling(seen.uid))
    if seen.state in (TaskState.RUNNING, TaskState.EXITED) and seen.since is not None:
        events.append(TaskRunning(seen.uid, seen.since))
    if seen.exit is not None:
        events.append(TaskExited(seen.uid, seen.exit))
    return events


def by_job(tasks: dict[TaskUid, TaskSeen]) -> dict[JobUid, list[JobEvent]]:
    """Task news as events of their jobs."""
    events: dict[JobUid, list[JobEvent]] = {}
    for seen in tasks.values():
        events.setdefault(job_of(seen.uid), []).extend(job_events(seen))
    return events


async def cleaned(job: Job, news: Sequence[JobEvent], secrets: JobSecrets) -> Sequence[JobEvent]:
    """The news with every secret of the job covered. Raises Unavailable."""
    if not any(_words(event) for event in news):
        return news
    scrubber = await secrets.scrubber(job)
    return [without_secrets(event, scrubber) for event in news]


def without_secrets(event: JobEvent, scrubber: Scrubber) -> JobEvent:
    """The event with the words of an engine scrubbed; pure."""
    match event:
        case TaskExited(uid=uid, exit=exit_):
            return TaskExited(uid, exit_.model_copy(update={"message": scrubber.text(exit_.message)}))
        case TaskDelayed(uid=uid, why=why):
            return TaskDelayed(uid, scrubber.text(why))
        case Waiting(why=why):
            return Waiting(scrubber.text(why))
        case _:
            return event


def _words(event: JobEvent) -> str:
    match event:
        case TaskExited(exit=exit_):
            return exit_.message
        case TaskDelayed(why=why) | Waiting(why=why):
            return why
        case _:
            return ""
