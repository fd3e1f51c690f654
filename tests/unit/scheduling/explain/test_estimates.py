"""When a group will start: an estimate from known run times, and what it rests on."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pai_backend.model.waiting import Basis, Waiting
from pai_backend.scheduling.explain import LANGUAGES, estimate, explain
from pai_backend.scheduling.request import Member
from tests.unit.scheduling.queue.line import START, Line

HOUR = timedelta(hours=1)


def full(*hours: int) -> Line:
    """Three nodes of four GPUs, each held by a group that ends in so many hours."""
    line = Line()
    for number, count in enumerate(hours):
        line.submit(f"full{number}", (1, 4))
        line.ends[f"full{number}"] = START + count * HOUR
    return line


def why(line: Line, name: str, **bases: Basis) -> Waiting:
    return explain(line.queue, name, line.now, run_time=lambda _: HOUR, rests_on=bases.get)


def test_it_rests_on_the_ends_that_came_before() -> None:
    line = full(3, 1, 2)
    line.submit("g", (2, 4))
    found = why(line, "g", full0=Basis.DECLARED, full1=Basis.HISTORY, full2=Basis.HISTORY)
    assert (found.starts_at, found.rests_on) == (START + 2 * HOUR, (Basis.HISTORY,))
    both = why(line, "g", full1=Basis.HISTORY, full2=Basis.DECLARED)
    assert both.rests_on == (Basis.DECLARED, Basis.HISTORY)


def test_those_that_wait_ahead_run_first() -> None:
    line = full(1, 5, 5)
    line.submit("first", (1, 4))
    line.submit("g", (1, 4))
    found = why(line, "g", full0=Basis.DECLARED, first=Basis.HISTORY)
    assert (found.starts_at, found.rests_on) == (START + 2 * HOUR, (Basis.DECLARED, Basis.HISTORY))


def test_the_end_of_what_runs_elsewhere_tells_nothing() -> None:
    line = full(2, 4, 4)
    for name, kind in (("theirs", "GPU"), ("old", "OLD")):
        line.submit(name, (1, 1), vc="b", kind=kind)
        line.ends[name] = START + HOUR
    line.submit("g", (1, 4))
    assert estimate(line.queue, line.queue.waiting["g"].entry, line.now) == (START + 2 * HOUR, ("full0",))


def test_without_a_guarantee_it_waits_for_whoever_runs() -> None:
    line = full(2, 4, 4)
    line.submit("theirs", (1, 4), vc="b")
    line.ends["theirs"] = START + HOUR
    line.submit("g", (1, 4), priority=-1)
    assert estimate(line.queue, line.queue.waiting["g"].entry, line.now) == (START + HOUR, ("theirs",))


def test_of_what_has_outlasted_its_time_no_end_is_known() -> None:
    line = full(1, 1, 1)
    line.submit("g", (1, 4))
    before = why(line, "g")
    assert before.starts_at == START + HOUR
    assert {holder.until for holder in before.holders} == {START + HOUR}
    line.now = START + HOUR + timedelta(seconds=1)
    found = why(line, "g", full0=Basis.DECLARED)
    assert (found.starts_at, found.rests_on) == (None, ())
    assert {holder.until for holder in found.holders} == {None}
    assert [told.estimate for told in found.texts.values()] == ["", ""]


WORDS = {
    "en": {Basis.DECLARED: "run times that jobs declare", Basis.HISTORY: "how long earlier jobs of the same users ran"},
    "zh_CN": {Basis.DECLARED: "作业声明的运行时间", Basis.HISTORY: "同一用户以往同类作业的运行时间"},
}
CALLED = {"en": "estimate", "zh_CN": "估计值"}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("bases", [(Basis.DECLARED,), (Basis.HISTORY,), (Basis.DECLARED, Basis.HISTORY), ()])
def test_it_is_called_an_estimate_and_says_on_what_it_rests(language: str, bases: tuple[Basis, ...]) -> None:
    line = full(1, 1, 1)
    line.submit("g", (1, 4))
    found = why(line, "g", **dict(zip(("full0", "full1"), bases, strict=False)))
    told = found.texts[language].estimate
    assert CALLED[language] in told
    assert {basis for basis in Basis if WORDS[language][basis] in told} == set(bases)


def test_the_cell_type_of_a_role_is_told_as_that_of_a_group() -> None:
    line = Line()
    line.submit("g", Member(4, 4, within="NODE"))
    assert why(line, "g").within == "NODE"
