"""Answers of a kubelet to a question for output, made from the lines as its container runtime has written them.

After k8s.io/cri-client v0.34, pkg/logs, ``ReadLogs``: what it prefixes with a time, and what it leaves out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True)
class Written:
    """A part of a line, as the runtime takes it; the line's last part ends with a newline."""

    at: datetime
    nanoseconds: int  # on top, below a microsecond
    text: bytes

    @property
    def stamp(self) -> bytes:
        """The time as a kubelet prints it."""
        fraction = self.at.microsecond * 1000 + self.nanoseconds
        return f"{self.at:%Y-%m-%dT%H:%M:%S}.{fraction:09d}Z".encode()


def answer(file: Iterable[Written], since: str = "") -> bytes:
    """What is answered with ``timestamps=true`` for a log file with these parts, from a time on."""
    first = datetime.fromisoformat(since) if since else datetime.min.replace(tzinfo=UTC)
    said, begins = b"", True
    for part in file:
        if part.at >= first:
            said += (part.stamp + b" " if begins else b"") + part.text
        begins = part.text.endswith(b"\n")
    return said


def lines(*texts: bytes, begin: datetime, apart: timedelta = timedelta(seconds=1)) -> list[Written]:
    """One part for each text, some time apart."""
    return [Written(begin + number * apart, number, text) for number, text in enumerate(texts)]
