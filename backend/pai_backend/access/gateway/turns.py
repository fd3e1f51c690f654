"""Long looks in short turns: what looks at thousands of logins must not hold up the key press of one. No I/O."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

MOST = 50  # looked at in one turn of the event loop: well below a millisecond

_T = TypeVar("_T")


async def in_turns(items: Iterable[_T]) -> AsyncIterator[_T]:
    """The items as they are now, ``MOST`` at a time. Some may be gone when it is their turn."""
    for number, item in enumerate(tuple(items), 1):
        yield item
        if number % MOST == 0:
            await asyncio.sleep(0)  # gives way to whatever is ready; nothing is awaited by it
