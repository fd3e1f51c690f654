"""Pieces of an SVG: text, frames, and areas between lines that keep a value until the next one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 800
LEFT, RIGHT = 60, 20
STEPS_S = (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 14_400, 43_200, 86_400, 604_800)
MOST_TICKS = 10
_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


@dataclass(frozen=True, slots=True)
class Chart:
    """A frame with its scales: ``span_s`` seconds from ``first_s`` on, and up to ``most``, below ``top``."""

    top: int
    height: int
    most: float
    first_s: float
    span_s: float

    def area(self, times: Sequence[float], above: Sequence[float], below: Sequence[float], style: str) -> Iterator[str]:
        """What lies between two lines of values, from each of the times to the next and the last one to ``until``."""
        if all(high == low for high, low in zip(above, below, strict=True)):
            return
        outline = [*self._stairs(times, above), *reversed(self._stairs(times, below))]
        yield f'<polygon points="{" ".join(outline)}" {style}/>'

    def line(self, times: Sequence[float], values: Sequence[float], style: str) -> str:
        """A line that keeps each value until the next time."""
        return f'<polyline points="{" ".join(self._stairs(times, values))}" fill="none" {style}/>'

    def frame(self, title: str) -> Iterator[str]:
        """The frame, its title and its scale."""
        size = f'width="{WIDTH}" height="{self.height}"'
        yield f'<rect x="{LEFT}" y="{self.top}" {size} fill="none" stroke="black"/>'
        yield text(LEFT, self.top - 5, title)
        yield text(LEFT - 6, self.top + 10, str(round(self.most)), "end")
        yield text(LEFT - 6, self.top + self.height, "0", "end")

    def time_axis(self, caption: str) -> Iterator[str]:
        """Marks at round times below the frame."""
        bottom = self.top + self.height
        step, at = _step(self.span_s), 0.0
        while at <= self.span_s:
            x = self._x(self.first_s + at)
            yield f'<line x1="{x:.1f}" y1="{bottom}" x2="{x:.1f}" y2="{bottom + 5}" stroke="black"/>'
            yield text(x, bottom + 18, duration(at), "middle")
            at += step
        yield text(LEFT + WIDTH, bottom + 36, caption, "end")

    def _stairs(self, times: Sequence[float], values: Sequence[float]) -> list[str]:
        """``times`` are where the values begin, and where the last one ends."""
        corners = []
        for start, end, value in zip(times, times[1:], values, strict=False):
            y = self.top + self.height * (1 - value / self.most)
            corners += [f"{self._x(at):.1f},{y:.1f}" for at in (start, max(start, end))]
        return corners

    def _x(self, at_s: float) -> float:
        return LEFT + WIDTH * min((at_s - self.first_s) / self.span_s, 1.0) if self.span_s else LEFT


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    """Words at a place; what cannot be said in XML is left out."""
    said = escape("".join(char for char in words if char.isprintable()))
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{said}</text>'


def duration(seconds: float) -> str:
    """Seconds in the largest unit that they fill, with the next smaller one where there is a rest: ``3 h 20 min``."""
    rest = round(seconds)
    for number, (size, unit) in enumerate(_UNITS):
        if rest >= size:
            words = f"{rest // size} {unit}"
            smaller = _UNITS[number + 1 : number + 2]
            return " ".join(
                [words, *(f"{rest % size // small} {word}" for small, word in smaller if rest % size >= small)]
            )
    return "0 s"


def _step(span_s: float) -> float:
    """The distance of marks on the time axis: a round one, with which there are few."""
    for step in STEPS_S:
        if span_s <= step * MOST_TICKS:
            return step
    return STEPS_S[-1] * -(-span_s // (STEPS_S[-1] * MOST_TICKS))
