"""``expectedRunTime``: how long its author expects a job to run, as ``2h30m``.

It is an expectation, which estimates of others' waiting rest on; it never ends a job.
"""

from __future__ import annotations

from typing import Final

from pai_backend.model.duration import duration_text
from pai_backend.protocol.durations import Span, read_duration
from pai_backend.protocol.fields import Path, Reader
from pai_backend.protocol.locate import Node

NAME: Final = "expectedRunTime"
"""The field, in ``extras.jupyterPai`` of v1 and v2."""

_SPAN: Final = Span(NAME, 1, "1 second", "Leave it out when it is not known.")


def read_run_time(node: Node, path: Path, reader: Reader) -> int | None:
    """Seconds of the value at ``path``; None, with a fault, when it is no such time."""
    return read_duration(node, path, _SPAN, reader)


def run_time_text(seconds: int) -> str:
    """The time as a document has it: 9000 is ``2h30m``."""
    return duration_text(seconds)
