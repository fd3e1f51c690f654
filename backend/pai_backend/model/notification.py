"""Notifications: which news of a job a user gets, in which words, by which channel. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from pai_backend.model.duration import duration_text


class Channel(StrEnum):
    """A way to tell someone."""

    MAIL = "mail"
    WEBHOOK = "webhook"
    SLACK = "slack"
    TEAMS = "teams"
    FEISHU = "feishu"
    DINGTALK = "dingtalk"


class News(StrEnum):
    """What can happen to a job that its user wants to know."""

    STARTED = "started"
    """All its tasks run."""
    WAITED = "waited"
    """It runs, and had waited for longer than its user wants to look."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    RETRIED = "retried"
    PREEMPTED = "preempted"
    """A job that comes first has taken its place."""
    KEPT = "kept"
    """A task has failed and is kept for debugging."""
    IDLE = "idle"
    """It is not used, and will be stopped soon."""
    GPUS_IDLE = "gpus-idle"
    BUDGET = "budget"
    """A budget that concerns it is nearly used, or used up."""
    TEST = "test"
    """Its user asked for a message to see that it arrives."""


USUAL: Final = (News.SUCCEEDED, News.FAILED, News.PREEMPTED, News.KEPT, News.IDLE, News.GPUS_IDLE, News.BUDGET)
"""What is told where its user has chosen nothing."""

OF_DOCUMENT: Final = {
    "running": News.STARTED,
    "succeeded": News.SUCCEEDED,
    "stopped": News.STOPPED,
    "failed": News.FAILED,
    "retried": News.RETRIED,
}
"""What the names of ``jobStatusChangeNotification`` mean. Source: OpenPAI protocol v2, ``extras``."""

TELLING: Final = (
    "job.state",
    "job.exit",
    "job.retry",
    "job.gpus-idle",
    "job.idle-warning",
    "job.budget",
    "task.kept",
    "task.retry",
)
"""Types of events that can be news."""

TEST_SENTENCE: Final = "This is a test. News of your jobs arrive here."
_LONGEST: Final = 300
"""Characters of a sentence: many of them fit into a message of every channel."""
_ENDS: Final = {"SUCCEEDED": News.SUCCEEDED, "FAILED": News.FAILED, "STOPPED": News.STOPPED}


@dataclass(frozen=True)
class NotifiedEvent:
    """An event of a job: all that news are made of. ``payload`` is what docs/events.md says."""

    job: str
    seq: int
    at: datetime
    type: str
    payload: Mapping[str, Any]


@dataclass(frozen=True)
class JobNews:
    """An event that may be news. ``earlier``: the job's states and retries before it, in their order."""

    event: NotifiedEvent
    name: str
    submitted_at: datetime
    notify: Sequence[str] = ()
    """The names that the document's ``jobStatusChangeNotification`` sets."""
    earlier: Sequence[NotifiedEvent] = ()


@dataclass(frozen=True)
class Wish:
    """What a user wants to be told by one channel. ``waited_s``: from how many seconds of waiting on."""

    id: str
    news: frozenset[News]
    waited_s: int = 0


@dataclass(frozen=True)
class Notice:
    """One piece of news for one wish. ``(wish, job, seq)`` is never used twice."""

    wish: str
    job: str
    seq: int
    at: datetime
    news: News
    name: str
    """The job's."""
    text: str
    """Sentences."""


def notices(found: JobNews, wishes: Iterable[Wish]) -> list[Notice]:
    """What is told to whom of one event; a wish gets one notice of it at most."""
    news = _news(found)
    asked = {OF_DOCUMENT[name] for name in found.notify if name in OF_DOCUMENT}
    return [
        Notice(wish.id, found.event.job, found.event.seq, found.event.at, kind, found.name, sentence(kind, found))
        for wish in wishes
        if (kind := _wanted(wish, news, asked, found)) is not None
    ]


def _wanted(wish: Wish, news: Sequence[News], asked: set[News], found: JobNews) -> News | None:
    for kind in news:
        wanted = kind in wish.news or kind in asked
        if wanted and (kind is not News.WAITED or waited(found) >= timedelta(seconds=wish.waited_s)):
            return kind
    return None


def _news(found: JobNews) -> tuple[News, ...]:
    """What the event can be told as, the more telling first; nothing for one that tells nothing new."""
    payload = found.event.payload
    match found.event.type:
        case "job.state":
            begins = _runs(found.event) and not any(map(_runs, _of_attempt(found.earlier)))
            return (News.WAITED, News.STARTED) if begins else ()
        case "job.exit":
            return (_ENDS[payload["state"]],)
        case "job.retry" | "task.retry":
            return (News.PREEMPTED, News.RETRIED) if payload["charged"] == "preempted" else (News.RETRIED,)
        case "job.gpus-idle":
            return (News.GPUS_IDLE,)
        case "job.idle-warning":
            return (News.IDLE,)
        case "job.budget":
            return (News.BUDGET,)
        case "task.kept":
            return (News.KEPT,)
    return ()


def _runs(event: NotifiedEvent) -> bool:
    return event.type == "job.state" and (event.payload["state"], event.payload["phase"]) == ("RUNNING", "running")


def _of_attempt(earlier: Sequence[NotifiedEvent]) -> Sequence[NotifiedEvent]:
    """Those since the last retry."""
    retries = [number for number, event in enumerate(earlier, 1) if event.type == "job.retry"]
    return earlier[retries[-1] :] if retries else earlier


def waited(found: JobNews) -> timedelta:
    """How long a job that runs now has waited: since it was submitted, or its last attempt ended."""
    retries = [event.at for event in found.earlier if event.type == "job.retry"]
    return found.event.at - (retries[-1] if retries else found.submitted_at)


def sentence(news: News, found: JobNews) -> str:
    """The news in words."""
    name, payload = found.name, found.event.payload
    match news:
        case News.STARTED:
            return f"{name} runs."
        case News.WAITED:
            return f"{name} runs now. It waited for {duration_text(round(waited(found).total_seconds()))}."
        case News.SUCCEEDED:
            return f"{name} has succeeded."
        case News.FAILED:
            return _joined(f"{name} has failed: {payload['message']}", payload.get("remedy"))
        case News.STOPPED:
            return _joined(f"{name} was stopped: {payload['message']}")
        case News.RETRIED:
            return _joined(f"{_what(found)} runs again: {payload['reason']}")
        case News.PREEMPTED:
            return _joined(f"{_what(found)} was preempted and waits again: {payload['reason']}")
        case News.KEPT:
            return f"{_what(found)} has failed and is kept for debugging until {payload['until']}."
        case News.IDLE | News.GPUS_IDLE | News.BUDGET:
            return _joined(f"{name}: {payload['text']}")
    return TEST_SENTENCE


def _what(found: JobNews) -> str:
    payload = found.event.payload
    return f"Task {payload['role']}-{payload['index']} of {found.name}" if "role" in payload else found.name


def _joined(*sentences: object) -> str:
    """Sentences in one line that is not too long, each with its full stop."""
    texts = (" ".join(str(each or "").split()) for each in sentences)
    line = " ".join(text if text.endswith((".", "!", "?")) else f"{text}." for text in texts if text)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
