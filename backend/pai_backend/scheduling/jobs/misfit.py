"""What is told of a job that can never be right."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Misfit:
    """Something that can never be right, with its place in a v2 document and the remedy."""

    path: tuple[str, ...]
    message: str
    hint: str
