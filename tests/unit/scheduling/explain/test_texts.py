"""Reasons in words: every cause and every change in every language, with its numbers and names."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from pai_backend.model.waiting import BookedFor, CapReached, Cause, Change, ChangeKind, Holder, Lack, LackOf, Waiting
from pai_backend.scheduling.explain import LANGUAGES, render

FRIDAY = datetime(2026, 12, 4, 9, tzinfo=UTC)
HOLDERS = tuple(Holder(group=f"ann~job{number}") for number in range(5))


def reason(cause: Cause, **more: object) -> Waiting:
    values: dict[str, object] = {
        "group": "bob~train",
        "cause": cause,
        "vc": "vision",
        "priority": 10,
        "leaf_type": "V100",
        "needed": 17,
        "largest_task": 8,
        "owned": 24,
        "free": 19,
        "largest_free": 3,
        "holders": HOLDERS,
        "nodes": ("carol", "dan"),
        "lacks": (Lack(node="carol", what=LackOf.MEMORY, needed=9000, available=512),),
        "cap": CapReached(vc="vision", user="bob", gpus=12, running_tasks=2, running_gpus=11),
        "booked": BookedFor(name="course", gpus=4, gpu_type="V100", begins=FRIDAY, ends=FRIDAY + timedelta(hours=9)),
        "position": 6,
        "waiting": 41,
    }
    return Waiting.model_validate(values | more)


FACTS = {
    Cause.TYPE: ("vision", "V100"),
    Cause.QUOTA: ("17", "24", "V100"),
    Cause.SHAPE: ("8", "24"),
    Cause.CAP: ("bob", "12", "11", "vision"),
    Cause.BAD_NODES: ("carol", "dan"),
    Cause.LINEAR: ("carol", "9000", "512"),
    Cause.PORT: ("carol", "9000"),
    Cause.PREEMPTING: ("ann~job0",),
    Cause.KEPT: ("ann~job0",),
    Cause.RESERVED: ("ann~job0",),
    Cause.BOOKED: ("4", "V100", "vision", "course", "2026-12-04 09:00", "2026-12-04 18:00"),
    Cause.FRAGMENTED: ("19", "17", "3", "8", "vision"),
    Cause.PRIORITY: ("17", "19", "10", "ann~job0", "ann~job2", "2"),
    Cause.AHEAD: ("6", "41"),
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("cause", Cause)
def test_every_cause_is_told_with_its_facts(cause: Cause, language: str) -> None:
    lacks = (Lack(node="carol", what=LackOf.PORT, needed=9000),) if cause is Cause.PORT else None
    told = render(reason(cause, **({"lacks": lacks} if lacks else {})), language)
    for fact in FACTS[cause]:
        assert fact in told.sentence
    end = "." if language == "en" else "。"
    assert told.sentence.endswith(end)
    assert told.remedy.endswith(end)
    assert "ann~job3" not in told.sentence, "at most three names"


@pytest.mark.parametrize("cause", Cause)
def test_chinese_is_chinese(cause: Cause) -> None:
    told = render(reason(cause), "zh_CN")
    assert re.search(r"[\u4e00-\u9fff]", told.sentence)
    assert re.search(r"[\u4e00-\u9fff]", told.remedy)
    assert "  " not in told.sentence


CHANGES = [
    (Change(kind=ChangeKind.TYPE, leaf_type="A100"), ("A100",)),
    (Change(kind=ChangeKind.VC, vc="speech"), ("speech",)),
    (Change(kind=ChangeKind.FEWER, before=16, after=9), ("16", "9")),
    (Change(kind=ChangeKind.SMALLER, before=8, after=5), ("8", "5")),
    (Change(kind=ChangeKind.OPPORTUNISTIC), ("oppo",)),
    (Change(kind=ChangeKind.SHORTER, after=5400), ("1h30m",)),
    (Change(kind=ChangeKind.ANYWHERE, detail="RACK"), ("RACK",)),
    (Change(kind=ChangeKind.DROP_LABEL, nodes=("carol",), detail="zone=a"), ("zone=a",)),
    (Change(kind=ChangeKind.TOLERATE, nodes=("carol",), detail="gpu=a:NoSchedule"), ("carol", "gpu=a:NoSchedule")),
    (Change(kind=ChangeKind.UNCORDON, nodes=("carol", "dan")), ("carol", "dan")),
]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("change", "facts"), CHANGES, ids=[change.kind for change, _ in CHANGES])
def test_a_change_that_works_is_the_remedy(change: Change, facts: tuple[str, ...], language: str) -> None:
    remedy = render(reason(Cause.PRIORITY, changes=(change,)), language).remedy
    assert all(fact in remedy for fact in facts)


def test_every_kind_of_change_is_told() -> None:
    assert {change.kind for change, _ in CHANGES} == set(ChangeKind)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("what", LackOf)
def test_every_lack_is_told(what: LackOf, language: str) -> None:
    lack = Lack(node="carol", what=what, needed=7, available=5, detail="zone=a")
    told = render(reason(Cause.LINEAR, lacks=(lack,)), language)
    assert "carol" in told.sentence
    if what in (LackOf.SELECTOR, LackOf.TAINT):
        assert "zone=a" in told.sentence
    without = render(reason(Cause.LINEAR, lacks=()), language)
    assert "dan" in without.sentence


def test_names_keep_their_case() -> None:
    told = render(reason(Cause.CAP, cap=CapReached(vc="Vision", user="Bob", tasks=1, running_tasks=1)), "en")
    assert told.sentence == (
        "User Bob may run at most 1 task at once in virtual cluster Vision; running now: 1 task, 0 GPUs."
    )


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(KeyError):
        render(reason(Cause.QUOTA), "fr")
