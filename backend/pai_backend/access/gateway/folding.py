"""Few events for many logins: the first at once, those that follow soon as one. Pure, the clock's reading comes in.

An IDE logs in a dozen times a minute. Of one user with one key at one address, at one task, the first login within
``FOLD_S`` is written at once; the others are one event at the end of that time that has their number. Likewise refusals
and ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pai_backend.model.ids import JobUid
from pai_backend.model.job import NewEvent

FOLD_S = 60.0
MOST_OPEN = 4096  # folds at a time: of what is beyond, logins and ends are not folded, and refusals are in the log only
_TOLD_APART = ("task", "key")  # words that the one event for several facts can say once only


class What(StrEnum):
    """The types of these events."""

    LOGIN = "access.login"
    REFUSED = "access.refused"
    END = "access.end"


@dataclass(frozen=True)
class Fact:
    """One thing that happened at the door of a job. ``figures`` are summed when facts are folded."""

    what: What
    job: JobUid
    user: str
    source: str
    """The address, without its port: two connections of one client are alike."""
    words: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)

    def event(self, count: int, figures: Mapping[str, float]) -> NewEvent:
        """The event for ``count`` facts of which this is the last."""
        numbers = {name: round(value, 1) if isinstance(value, float) else value for name, value in figures.items()}
        return NewEvent(
            self.what.value, {"user": self.user, "source": self.source, **self.words, **numbers, "count": count}
        )


@dataclass
class _Fold:
    """Facts that wait for their common event; none at first, for the one that began it is written already."""

    until: float
    last: Fact | None = None
    count: int = 0
    figures: dict[str, float] = field(default_factory=dict)

    def add(self, fact: Fact) -> None:
        self.last, self.count = fact, self.count + 1
        for name, value in fact.figures.items():
            self.figures[name] = self.figures.get(name, 0) + value


class Folding:
    """The facts of one gateway process."""

    def __init__(self) -> None:
        self._folds: dict[tuple[object, ...], _Fold] = {}

    def add(self, fact: Fact, now: float) -> NewEvent | None:
        """The event to write now, if any; otherwise the fact comes with :meth:`due` later."""
        key = (fact.what, fact.job, fact.user, fact.source, tuple(fact.words.get(word) for word in _TOLD_APART))
        fold = self._folds.get(key)
        if fold is not None:
            fold.add(fact)
            return None
        if len(self._folds) >= MOST_OPEN:
            return None if fact.what is What.REFUSED else fact.event(1, fact.figures)
        self._folds[key] = _Fold(now + FOLD_S)
        return fact.event(1, fact.figures)

    def due(self, now: float) -> list[tuple[JobUid, NewEvent]]:
        """Events whose time has come. With ``now`` at infinity all of them."""
        events = []
        for key, fold in list(self._folds.items()):
            if fold.until > now:
                continue
            del self._folds[key]
            if fold.last is not None:
                events.append((fold.last.job, fold.last.event(fold.count, fold.figures)))
                self._folds[key] = _Fold(fold.until + FOLD_S)
        return events

    @property
    def next_due(self) -> float | None:
        """When :meth:`due` has to be asked again; None while there is nothing."""
        return min((fold.until for fold in self._folds.values()), default=None)
