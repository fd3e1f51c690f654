"""Regular expressions of users over what tasks print, in a process of its own that is ended when it takes too long.

An expression may take exponential time in Python's ``re``, which holds the interpreter meanwhile. A process with a
limit of processor time holds up no other request. At most two run at a time.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pai_backend.model.errors import InvalidParameters
from pai_backend.model.text import Text

_PROCESSES = ThreadPoolExecutor(2, "searches")
_PROGRAM = Path(__file__).with_name("line_search_program.py")
CPU_S = 3
MEMORY_BYTES = 512 * 2**20


@dataclass(frozen=True)
class Match:
    """A line that matches; ``offset`` is that of its first byte in what was searched."""

    offset: int
    end: int
    text: str


async def matching_lines(pattern: str, ignore_case: bool, data: bytes, most: int) -> list[Match]:
    """The first lines that match, ``most`` at most. Raises InvalidParameters for an invalid or too slow expression."""
    work = partial(_run, pattern, ignore_case, data, most)
    return await asyncio.get_running_loop().run_in_executor(_PROCESSES, work)


def _run(pattern: str, ignore_case: bool, data: bytes, most: int) -> list[Match]:
    asked = {"pattern": pattern, "ignoreCase": ignore_case, "most": most, "cpuS": CPU_S, "memoryBytes": MEMORY_BYTES}
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(_PROGRAM)],
        input=json.dumps(asked).encode() + b"\n" + data,
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        raise InvalidParameters(
            Text("The regular expression takes too long."),
            hint=Text("Write it without nested repetitions such as (a+)+."),
        )
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise InvalidParameters(
            Text("The regular expression is invalid: {answer}.", answer=answer["error"]),
            hint=Text("Put a backslash before . * + ? ( ) [ ] { } ^ $ | where the character itself is meant."),
        )
    return [Match(*each) for each in answer["matches"]]
