"""A page's fences as what somebody types, and outputs made comparable: times, ports and homes differ."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import Fence

LOOKS = ("pai show ", "pai status ", "pai backend status", "ssh ")
"""Commands that change nothing: what they print is right once the job has come as far as the page shows."""

_PASSING = re.compile(r"^\w+: (WAITING|RUNNING)( \([a-z ]+\))?\n", re.MULTILINE)
_DIFFERENT = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "<time>"),
    (re.compile(r"(?<=[=:])\d{4,5}\b"), "<port>"),
    (re.compile(r"(?<=-p )\d{4,5}\b"), "<port>"),
    (re.compile(r"(?<=process )\d+"), "<pid>"),
)


@dataclass(frozen=True)
class Step:
    """One command and what the page says that it prints."""

    fence: Fence
    command: str
    output: str

    @property
    def only_looks(self) -> bool:
        return self.command.startswith(LOOKS)

    def normal(self, text: str, home: Path) -> str:
        """What must be equal. Whether a waiting command sees a state that passes quickly is left to chance."""
        text = "".join(f"{line.rstrip()}\n" for line in text.splitlines()).replace(str(home), "/home/ada")
        for pattern, word in _DIFFERENT:
            text = pattern.sub(word, text)
        return _PASSING.sub("", text) if "--wait" in self.command else text


def steps(fence: Fence) -> Iterator[Step]:
    """Commands of a ``console`` fence, each behind ``$``; a ``sh`` fence is one command that may print anything."""
    if fence.language == "sh":
        yield Step(fence, fence.text, "")
        return
    parts = re.split(r"^\$ ", fence.text, flags=re.MULTILINE)
    assert parts[0] == "", f"{fence} does not begin with a command"
    for part in parts[1:]:
        command, _, output = part.partition("\n")
        yield Step(fence, command, output)
