"""Who used the processors between two moments."""

from __future__ import annotations

import os

import psutil

from bench.kubernetes.cpu import Moment, Spent, moment, table, told


def made(at: float, busy: float, **spent: tuple[int, float, float]) -> Moment:
    """A moment with processes: name -> pid, its own seconds, those of what it has seen end."""
    found = {(pid, 0.0): (name, Spent(own, ended)) for name, (pid, own, ended) in spent.items()}
    return Moment(at, busy, found)


def test_what_was_used_is_told_by_name_the_greatest_first() -> None:
    before = made(10.0, 100.0, kubelet=(1, 5.0, 1.0), idle=(3, 2.0, 0.0), gone=(4, 9.0, 0.0))
    after = made(12.0, 104.0, kubelet=(1, 5.5, 1.25), launch=(2, 1.5, 0.0), idle=(3, 2.0, 0.0))
    assert table(before, after) == [("launch", Spent(1.5, 0.0)), ("kubelet", Spent(0.5, 0.25))]
    text = told("twenty", before, after)
    assert text.splitlines()[0] == "twenty: 2.0 s, CPU 4.0 s"
    assert text.splitlines()[-1].split() == ["1.75", "not", "seen"]


def test_a_pid_that_was_given_to_another_begins_at_nothing() -> None:
    before = Moment(0.0, 0.0, {(7, 1.0): ("old", Spent(50.0, 0.0))})
    after = Moment(1.0, 2.0, {(7, 2.0): ("new", Spent(0.5, 0.0))})
    assert table(before, after) == [("new", Spent(0.5, 0.0))]


def test_a_moment_has_every_process_that_runs_this_one_too() -> None:
    found = moment()
    key = (os.getpid(), psutil.Process().create_time())
    assert found.spent[key][1].own > 0
