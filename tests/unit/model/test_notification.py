"""Which events of a job are news, for whom, and in which words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pai_backend.model.mail_address import is_mail_address
from pai_backend.model.notification import USUAL, JobNews, News, NotifiedEvent, Wish, notices

T0 = datetime(2026, 11, 28, 9, tzinfo=UTC)
RUNS: dict[str, Any] = {"state": "RUNNING", "phase": "running", "why": ""}
ALL = Wish("all", frozenset(News), 3600)


def event(type_: str, payload: dict[str, Any], seq: int = 9, after_s: float = 60) -> NotifiedEvent:
    return NotifiedEvent("j1", seq, T0 + timedelta(seconds=after_s), type_, payload)


def told(
    found: NotifiedEvent, *earlier: NotifiedEvent, notify: tuple[str, ...] = (), wish: Wish = ALL
) -> list[tuple[News, str]]:
    news = JobNews(found, "train", T0, notify, earlier)
    return [(each.news, each.text) for each in notices(news, [wish])]


@pytest.mark.parametrize(
    ("type_", "payload", "news", "text"),
    [
        ("job.state", RUNS, News.STARTED, "train runs."),
        ("job.exit", {"state": "SUCCEEDED", "message": "all tasks are done"}, News.SUCCEEDED, "train has succeeded."),
        (
            "job.exit",
            {"state": "FAILED", "message": "worker-0: exit 1", "remedy": "Read its log."},
            News.FAILED,
            "train has failed: worker-0: exit 1. Read its log.",
        ),
        ("job.exit", {"state": "STOPPED", "message": "by ann"}, News.STOPPED, "train was stopped: by ann."),
        ("job.retry", {"reason": "exit 1", "charged": "user"}, News.RETRIED, "train runs again: exit 1."),
        (
            "job.retry",
            {"reason": "preempted by x", "charged": "preempted"},
            News.PREEMPTED,
            "train was preempted and waits again: preempted by x.",
        ),
        (
            "task.retry",
            {"role": "worker", "index": 2, "reason": "exit 1", "charged": "user"},
            News.RETRIED,
            "Task worker-2 of train runs again: exit 1.",
        ),
        (
            "task.kept",
            {"role": "worker", "index": 0, "until": "2026-11-29T09:00:00+00:00"},
            News.KEPT,
            "Task worker-0 of train has failed and is kept for debugging until 2026-11-29T09:00:00+00:00.",
        ),
        (
            "job.budget",
            {"budget": "a", "text": "9 of 10 GPU hours are used."},
            News.BUDGET,
            "train: 9 of 10 GPU hours are used.",
        ),
        ("job.gpus-idle", {"text": "2 GPUs have done nothing."}, News.GPUS_IDLE, "train: 2 GPUs have done nothing."),
        ("job.idle-warning", {"text": "It is stopped soon."}, News.IDLE, "train: It is stopped soon."),
    ],
)
def test_each_event_is_told_in_words(type_: str, payload: dict[str, Any], news: News, text: str) -> None:
    assert told(event(type_, payload)) == [(news, text)]


def test_what_changes_nothing_for_its_user_is_no_news() -> None:
    for phase in ("starting", "kept", "stopping"):
        assert told(event("job.state", {**RUNS, "phase": phase})) == []
    assert told(event("job.state", {"state": "WAITING", "phase": "queued", "why": "no GPU"})) == []
    assert told(event("job.moved", {})) == []


def test_a_job_begins_once_in_each_attempt() -> None:
    first, again = event("job.state", RUNS, 3), event("job.state", RUNS, 5)
    assert told(again, first) == []
    retry = event("job.retry", {"reason": "", "charged": "user"}, 4)
    assert told(again, first, retry) == [(News.STARTED, "train runs.")]


def test_waiting_counts_from_the_submission_or_the_last_retry() -> None:
    late = event("job.state", RUNS, after_s=9000)
    assert told(late) == [(News.WAITED, "train runs now. It waited for 2h30m.")]
    retry = event("job.retry", {"reason": "", "charged": "user"}, 4, after_s=8000)
    assert told(late, retry) == [(News.STARTED, "train runs.")]
    patient = Wish("patient", frozenset({News.WAITED}), 9001)
    assert told(late, wish=patient) == []


def test_a_wish_is_told_what_it_is_for_and_what_the_document_asks_for() -> None:
    usual = Wish("usual", frozenset(USUAL))
    assert told(event("job.state", RUNS), wish=usual) == []
    assert told(event("job.state", RUNS), notify=("running",), wish=usual) == [(News.STARTED, "train runs.")]
    stopped = event("job.exit", {"state": "STOPPED", "message": "by ann"})
    nothing = Wish("nothing", frozenset())
    assert told(stopped, wish=nothing) == []
    assert [news for news, _ in told(stopped, notify=("stopped", "unknown"), wish=nothing)] == [News.STOPPED]


def test_a_long_message_is_cut_and_is_one_line() -> None:
    ((_, text),) = told(event("job.exit", {"state": "FAILED", "message": "a\r\nb " * 500, "remedy": ""}))
    assert len(text) == 300
    assert text.isprintable()


@pytest.mark.parametrize("good", ["ann@example.org", "a.b+c@x", "李@例子.中国"])
def test_an_address_is_one(good: str) -> None:
    assert is_mail_address(good)


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "ann",
        "@x",
        "a@",
        "a@b@c",
        "a b@c",
        "a@b\r\nBcc: x@y",
        "Ann <a@b>",
        "a@b,c@d",
        "a@b;c@d",
        "a@b" * 200,
        "a@b\u2028",
    ],
)
def test_what_could_be_more_than_an_address_is_none(bad: str) -> None:
    assert not is_mail_address(bad)
