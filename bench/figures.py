"""A measured figure, its floor, and whether it holds."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FLOORS = Path(__file__).with_name("floors.toml")


class CannotRun(Exception):
    """What a benchmark needs is not here; the text says what."""


@dataclass(frozen=True)
class Figure:
    """One measurement. ``peer`` says in words what the same machine did for something comparable in this run."""

    name: str
    value: float
    peer: str = ""


@dataclass(frozen=True)
class Floor:
    """A limit from ``floors.toml``."""

    limit: float
    sense: str
    unit: str
    why: str

    def holds(self, value: float) -> bool:
        """Whether the value is on the right side of the limit."""
        return value <= self.limit if self.sense == "max" else value >= self.limit

    def margin(self, value: float) -> float:
        """How far from the limit, as a share of it; negative when missed."""
        distance = self.limit - value if self.sense == "max" else value - self.limit
        return distance / self.limit


def load_floors(path: Path = FLOORS) -> dict[str, dict[str, Floor]]:
    """Benchmark -> figure -> floor. Raises TypeError for an unknown or missing key, ValueError for a wrong sense."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    floors = {bench: {name: Floor(**entry) for name, entry in group.items()} for bench, group in table.items()}
    for bench, group in floors.items():
        for name, floor in group.items():
            if floor.sense not in ("max", "min"):
                raise ValueError(f"{bench}.{name}: sense is {floor.sense!r}, not max or min")
    return floors


def compare(bench: str, figures: Sequence[Figure], floors: dict[str, Floor]) -> list[str]:
    """Misses in words. Raises KeyError when figures and floors do not name the same things."""
    measured = {figure.name: figure for figure in figures}
    odd = measured.keys() ^ floors.keys()
    if odd:
        raise KeyError(f"{bench}: figures and floors differ in {', '.join(sorted(odd))}")
    return [
        f"{bench}.{name}: {measured[name].value:.1f} {floor.unit}, floor {floor.limit:g} ({floor.sense})"
        for name, floor in floors.items()
        if not floor.holds(measured[name].value)
    ]


def row(bench: str, figure: Figure, floor: Floor) -> str:
    """One line for the reader."""
    sign = "ok  " if floor.holds(figure.value) else "MISS"
    sense = "<=" if floor.sense == "max" else ">="
    name = f"{bench}.{figure.name}"
    margin = f"{100 * floor.margin(figure.value):+.0f} %"
    return f"{sign} {name:22} {figure.value:9.1f} {floor.unit:12} {sense} {floor.limit:<6g} {margin:>7}  {figure.peer}"


def percentile(values: Sequence[float], share: float) -> float:
    """The value that ``share`` of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered)) - 1))]
