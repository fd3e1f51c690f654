"""Programs that are run to their end: what they print, or an error that quotes them."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

LIMIT_S = 120.0


class CommandFailed(Exception):
    """A program ended with another code than 0."""

    def __init__(self, command: Sequence[str], code: int, said: str) -> None:
        super().__init__(f"`{shlex.join(command)}` ended with {code}: {said[-3000:].strip()}")
        self.code = code


class NotInTime(Exception):
    """What was waited for did not come, such as the end of a program; the text says what."""


@dataclass(frozen=True)
class Ended:
    """How a program ended and what it printed."""

    code: int
    out: str
    err: str


async def attempt(*command: str | Path, given: str | None = None, limit_s: float = LIMIT_S) -> Ended:
    """Run a program, whatever its exit code. Raises NotInTime when it takes longer than the limit.

    It is killed then, and when the caller is cancelled.
    """
    words = [str(word) for word in command]
    process = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.DEVNULL if given is None else asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(None if given is None else given.encode()), limit_s)
    except TimeoutError:
        raise NotInTime(f"`{shlex.join(words)}` did not end within {limit_s:.0f} s") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))


async def run(*command: str | Path, given: str | None = None, limit_s: float = LIMIT_S) -> str:
    """What a program prints. Raises CommandFailed, with what it said, for any exit code but 0."""
    ended = await attempt(*command, given=given, limit_s=limit_s)
    if ended.code != 0:
        raise CommandFailed([str(word) for word in command], ended.code, ended.err or ended.out)
    return ended.out


async def until(holds: Callable[[], Awaitable[bool]], what: str, limit_s: float, every_s: float = 0.1) -> None:
    """Wait until a condition holds. Raises NotInTime."""
    deadline = time.monotonic() + limit_s
    while not await holds():
        if time.monotonic() > deadline:
            raise NotInTime(f"waited {limit_s:.0f} s for {what}")
        await asyncio.sleep(every_s)
