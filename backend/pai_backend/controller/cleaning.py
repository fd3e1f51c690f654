"""Taking secrets out of an engine's words before they become part of a job, its events and its rows."""

from __future__ import annotations

from collections.abc import Sequence

from pai_backend.access.secrecy import JobSecrets
from pai_backend.lifecycle.events import JobEvent, TaskDelayed, TaskExited, Waiting
from pai_backend.model.job import Job
from pai_backend.model.scrub import Scrubber


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
