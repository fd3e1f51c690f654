"""``idleTimeout``: how long a job may be unused before it is stopped, as ``8h``.

It is followed in ``extras`` of v1 and v2, where people look for it first, and beside our other fields in
``extras.jupyterPai``; in one of the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pai_backend.protocol.durations import Span, read_duration
from pai_backend.protocol.fields import Members, Path, Reader
from pai_backend.protocol.locate import Node

NAME: Final = "idleTimeout"
"""The field, in ``extras`` or ``extras.jupyterPai``."""
LEAST_S: Final = 10
"""Shorter ones are over before anybody could read the warning; sensible ones are hours."""

_SPAN: Final = Span(NAME, LEAST_S, "10 seconds", "Leave it out for a job that is never stopped for being idle.")


def read_idle_timeout(extras: Mapping[str, Node], own: Members | None, reader: Reader) -> int | None:
    """Seconds of the field in ``extras``, or in ``own``, the members of ``extras.jupyterPai``; None without it.

    A null counts as left out. What is no such time, and the field in both places, is a fault.
    """
    places: list[tuple[Path, Node]] = []
    outer = extras.get(NAME)
    if outer is not None and outer.value is not None:
        places.append((("extras", NAME), outer))
    inner = own.values[NAME] if own is not None else None
    if own is not None and isinstance(inner, Node) and inner.value is not None:
        places.append(((*own.path, NAME), inner))
    if len(places) > 1:
        path, node = places[1]
        reader.fault(path, node.at, f"{NAME} is also given in extras", "Keep one of the two.")
    return read_duration(places[0][1], places[0][0], _SPAN, reader) if places else None
