"""Answers about logs: lines that were found, when output came, and where OpenPAI's clients find the bytes."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from pai_backend.model.base import Model


class LogTimeWire(Model):
    """When output came, within a second."""

    offset: int = Field(description="Of the first byte that came then; what follows came then, too, up to the next.")
    at: datetime


class LogTimes(Model):
    """When the bytes of a part of a log came."""

    times: tuple[LogTimeWire, ...]


class LogMatch(Model):
    """A line of a log that was looked for."""

    offset: int = Field(description="Of its first byte in the log.")
    text: str = Field(description="The line without colours, shortened around the match.")


class LogMatches(Model):
    """Lines in a part of a log; ask again from ``next`` on until it is complete."""

    matches: tuple[LogMatch, ...]
    next: int = Field(description="Where to go on.")
    complete: bool = Field(description="Whether the end of the log was reached.")


class LogLocation(Model):
    """One log of a task."""

    name: str
    uri: str


class LogLocations(Model):
    """OpenPAI's list of the logs of one task attempt."""

    locations: tuple[LogLocation, ...]
