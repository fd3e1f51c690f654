"""Undo: last change first, in nested trials, also after an error."""

from __future__ import annotations

import pytest

from pai_backend.scheduling.cells.journal import Journal


def test_nothing_is_noted_outside_a_trial() -> None:
    journal = Journal()
    journal.note(pytest.fail, "undone without a trial")
    assert journal.entries is None


def test_changes_are_undone_last_first() -> None:
    journal, seen = Journal(), list[str]()
    with journal.trial():
        journal.note(seen.append, "first")
        journal.note(seen.append, "second")
    assert seen == ["second", "first"]


def test_an_inner_trial_undoes_its_own_changes_only() -> None:
    journal, seen = Journal(), list[str]()
    with journal.trial():
        journal.note(seen.append, "outer")
        with journal.trial():
            journal.note(seen.append, "inner")
        assert seen == ["inner"]
    assert seen == ["inner", "outer"]


def test_an_error_undoes_too() -> None:
    journal, seen = Journal(), list[str]()

    def fails() -> None:
        with journal.trial():
            journal.note(seen.append, "undone")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert seen == ["undone"]
    assert journal.entries is None


def test_rewinding_to_a_mark_keeps_what_came_before() -> None:
    journal, seen = Journal(), list[str]()
    with journal.trial():
        journal.note(seen.append, "before")
        mark = journal.mark()
        journal.note(seen.append, "after")
        journal.rewind(mark)
        assert seen == ["after"]


def test_what_an_inverse_notes_is_not_kept() -> None:
    journal = Journal()
    with journal.trial():
        journal.note(lambda: journal.note(pytest.fail, "noted while undoing"))
