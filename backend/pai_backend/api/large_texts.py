"""Reading large texts of users: off the event loop, and one at a time.

Threads share the interpreter. Eight texts of 1 MB that were read at once made a page of the list take 24 times as long;
one takes at most half of the interpreter, and the others wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

LARGE_BYTES = 16_384
"""Above this, reading a document takes long enough (over 5 ms) to keep it off the event loop."""

_THREAD = ThreadPoolExecutor(1, "texts")


async def in_turn(read: Callable[[], T]) -> T:
    """What ``read`` gives, or raises, once it is its turn."""
    return await asyncio.get_running_loop().run_in_executor(_THREAD, read)
