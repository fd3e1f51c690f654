"""Undo: while a journal is open, every change to the trees notes how to take it back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

_Entry = tuple[Callable[..., object], tuple[object, ...]]
_Entries = list[_Entry]
K = TypeVar("K")
V = TypeVar("V")


class Journal:
    """Shared by everything that belongs to one cluster. ``entries`` is None while nothing needs undoing.

    A change appends its inverse *after* the fact; undoing calls them last first, so that each inverse meets the state
    right after its change.
    """

    __slots__ = ("entries", "lasting")

    def __init__(self) -> None:
        self.entries: _Entries | None = None
        self.lasting = False
        """What is noted may be undone later, when rankings have been settled meanwhile: see ``Ranking.touch``."""

    def note(self, undo: Callable[..., object], *arguments: object) -> None:
        """Remember how to take a change back; does nothing while no trial is open."""
        if self.entries is not None:
            self.entries.append((undo, arguments))

    def set(self, owner: object, name: str, value: object) -> None:
        """Change an attribute."""
        if self.entries is not None:
            self.entries.append((setattr, (owner, name, getattr(owner, name))))
        setattr(owner, name, value)

    def put(self, table: dict[K, V], key: K, value: V) -> None:
        """Change or add an item of a table whose order does not matter."""
        if self.entries is not None:
            known = key in table
            self.entries.append((table.__setitem__, (key, table[key])) if known else (table.pop, (key,)))
        table[key] = value

    def drop(self, table: dict[K, V], key: K) -> None:
        """Take an item out of a table whose order does not matter. Idempotent."""
        if key in table:
            self.note(table.__setitem__, key, table.pop(key))

    @contextmanager
    def trial(self) -> Iterator[Journal]:
        """Everything done inside is undone at the end, also when it raises. Trials nest."""
        outer, self.entries = self.entries, []
        try:
            yield self
        finally:
            self.rewind(0)
            self.entries = outer

    def mark(self) -> int:
        """A point inside an open trial to rewind to."""
        return 0 if self.entries is None else len(self.entries)

    def rewind(self, mark: int) -> None:
        """Undo down to ``mark``."""
        entries = self.entries
        while entries is not None and len(entries) > mark:
            undo, arguments = entries.pop()
            # An inverse may itself be a noting change; what it notes is dropped again.
            self.entries = None
            undo(*arguments)
            self.entries = entries

    def begin(self) -> _Entries | None:
        """Note what follows in a list of its own, which lasts beyond :meth:`end`; answers what that has to be given."""
        outer, self.entries, self.lasting = self.entries, [], True
        return outer

    def end(self, outer: _Entries | None) -> _Entries:
        """What was noted since :meth:`begin`, for :meth:`undo`. An open trial undoes it as well."""
        own, self.entries = self.entries, outer
        assert own is not None
        self.lasting = False
        if outer is not None:
            outer.extend(own)
        return own

    def undo(self, entries: _Entries) -> None:
        """Take back what was noted last; an open trial has it off its list."""
        outer, self.entries = self.entries, entries
        if outer is not None and entries:
            first = next(at for at in range(len(outer) - 1, -1, -1) if outer[at] is entries[0])
            del outer[first : first + len(entries)]
        self.rewind(0)
        self.entries = outer
