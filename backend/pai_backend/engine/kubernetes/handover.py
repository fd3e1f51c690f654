"""Between reflectors and the one who acts on what they see: the latest news of each object, never more than that.

The reader puts and goes on; it never waits here. The consumer takes all news. News of one object replace its
earlier news in their place, by uid: an object made again under the same name has another uid, so that both its end
and its new life are told, in that order.

How much can wait is bounded: when ``full``, a reflector stops watching until the consumer has taken, then goes on
from where it was. What happens meanwhile waits in the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from pai_backend.engine.kubernetes.objects import Object, uid_of

LIMIT = 20_000  # objects whose news were not taken; a slim pod is 4 to 6 KiB


@dataclass(frozen=True)
class Seen:
    """An object is there, in this state."""

    resource: str
    object: Object


@dataclass(frozen=True)
class ObjectGone:
    """An object is no longer there.

    ``last`` is its last state when ``witnessed``; else it vanished while it was not watched, and ``last`` is what was
    known before. A caller that must not miss the last state holds the object by a finalizer.
    """

    resource: str
    last: Object
    witnessed: bool


@dataclass(frozen=True)
class ResourceListed:
    """The first list of this resource is complete: what has not been seen is not there. Comes once."""

    resource: str


Change: TypeAlias = Seen | ObjectGone | ResourceListed


class Handover:
    """The news of any number of reflectors for one consumer."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._waiting: dict[tuple[str, str], Change] = {}
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def full(self) -> bool:
        """Whether reflectors should stop watching until the consumer has taken."""
        return len(self._waiting) >= self._limit

    def put(self, changes: Iterable[Change]) -> None:
        """Add news; never waits and never refuses."""
        for change in changes:
            self._waiting[_key(change)] = change
        if self._waiting:
            self._news.set()
        if self.full:
            self._room.clear()

    async def take(self) -> list[Change]:
        """All news, in the order in which their objects first had some; waits until there are any."""
        await self._news.wait()
        return self.take_nowait()

    def take_nowait(self) -> list[Change]:
        """As :meth:`take`, without waiting; empty when there are none."""
        taken, self._waiting = list(self._waiting.values()), {}
        self._news.clear()
        self._room.set()
        return taken

    async def room(self) -> None:
        """Return once it is not full."""
        await self._room.wait()


def _key(change: Change) -> tuple[str, str]:
    match change:
        case Seen(resource, obj) | ObjectGone(resource, obj):
            return resource, uid_of(obj)
        case ResourceListed(resource):
            return resource, ""
