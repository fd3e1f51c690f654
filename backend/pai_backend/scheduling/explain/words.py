"""What a language has to say about waiting: sentence and remedy for every cause, and for changes and estimates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pai_backend.model.waiting import Cause, Change, Holder, Waiting

MOST_NAMED = 3
"""Names in a sentence; the others are counted."""

Say = Callable[[Waiting], str]


@dataclass(frozen=True, slots=True)
class Words:
    """One language."""

    sentences: Mapping[Cause, Say]
    remedies: Mapping[Cause, Say]
    change: Callable[[Change], str]
    estimate: Say
    put_off: Say
    """Follows the sentence of a group whose turn is put off."""


def named(names: Sequence[str], more: Callable[[int], str], comma: str) -> str:
    """The first few names, then how many more there are."""
    shown = comma.join(names[:MOST_NAMED])
    return shown + (more(len(names) - MOST_NAMED) if len(names) > MOST_NAMED else "")


def unique(holders: Sequence[Holder]) -> list[str]:
    """Names of groups, each once."""
    return list(dict.fromkeys(holder.group for holder in holders))
