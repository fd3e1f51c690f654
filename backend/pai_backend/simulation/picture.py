"""The course of a simulation as an SVG: who used the GPUs, and how many were asked for by those who waited.

Of two configurations both courses are drawn, on the same scales, one below the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from pai_backend.simulation.report import Comparison, Report

USED_HEIGHT, WAITING_HEIGHT = 240, 100
TOP, GAP, BELOW = 60, 40, 60
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
"""Source: Paul Tol's "bright" scheme, which the colour-blind can tell apart; used again from the first one on."""
WAITING_STYLE = 'fill="#555555"'
BROKEN_STYLE = 'fill="#000000"'
PALE = 0.45
"""Opacity of what is used without a claim."""
LETTER = 8
"""Width that a letter of a legend is given."""


def picture(answer: Report | Comparison) -> str:
    """The text of an SVG. Above, used GPUs by virtual cluster; below, GPUs that waiting groups ask for."""
    reports = answer.reports if isinstance(answer, Comparison) else (answer,)
    names = answer.configs if isinstance(answer, Comparison) else ("",)
    vcs = list(dict.fromkeys(share.vc for report in reports for share in report.vcs))
    panel = USED_HEIGHT + GAP + WAITING_HEIGHT + BELOW
    size = f'width="{LEFT + WIDTH + RIGHT}" height="{TOP + panel * len(reports)}"'
    view = f'viewBox="0 0 {LEFT + WIDTH + RIGHT} {TOP + panel * len(reports)}"'
    body = [*_legend(vcs, reports)]
    for number, (name, report) in enumerate(zip(names, reports, strict=True)):
        body += _panel(name, report, vcs, TOP + panel * number, reports)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view} font-family="sans-serif" font-size="12">',
            '<rect width="100%" height="100%" fill="white"/>',
            *body,
            "</svg>\n",
        ]
    )


def _legend(vcs: Sequence[str], reports: Sequence[Report]) -> Iterator[str]:
    entries = [(_solid(number), vc) for number, vc in enumerate(vcs)]
    if any(report.opportunistic for report in reports):
        entries.append((f'fill="black" fill-opacity="{PALE}"', "pale: opportunistic"))
    if any(report.broken for report in reports):
        entries.append((BROKEN_STYLE, "broken"))
    at = LEFT
    for style, words in entries:
        yield f'<rect x="{at}" y="12" width="12" height="12" {style}/>'
        yield text(at + 16, 22, words)
        at += 30 + LETTER * len(words)


def _panel(name: str, report: Report, vcs: Sequence[str], top: int, reports: Sequence[Report]) -> Iterator[str]:
    """One course, on the scales of all."""
    first = report.fates[0].arrived_s if report.fates else 0.0
    span = max(each.span_s for each in reports)
    most = max(1, *(each.gpus for each in reports))
    wanted = max([1.0, *(point.waiting for each in reports for point in each.course)])
    above = Chart(top, USED_HEIGHT, most, first, span)
    below = Chart(top + USED_HEIGHT + GAP, WAITING_HEIGHT, wanted, first, span)
    times = [*(point.at_s for point in report.course), first + report.span_s]
    yield from _used(above, report, vcs, times)
    prefix = f"{name}: " if name else ""
    yield from above.frame(f"{prefix}GPUs in use of {report.gpus}: {100 * report.utilisation:.1f} %")
    zero = [0.0] * len(report.course)
    yield from below.area(times, [point.waiting for point in report.course], zero, WAITING_STYLE)
    yield from below.frame("GPUs asked for by groups that wait")
    yield from below.time_axis("since the first arrival")


def _used(chart: Chart, report: Report, vcs: Sequence[str], times: Sequence[float]) -> Iterator[str]:
    """Areas stacked by virtual cluster, pale where without a claim; broken ones hang from the top."""
    base = [0.0] * len(report.course)
    for number, share in enumerate(report.vcs):
        solid = _solid(vcs.index(share.vc))
        for pale in (False, True):
            parts = [
                point.opportunistic[number] if pale else point.used[number] - point.opportunistic[number]
                for point in report.course
            ]
            above = [low + part for low, part in zip(base, parts, strict=True)]
            yield from chart.area(times, above, base, f'{solid} fill-opacity="{PALE}"' if pale else solid)
            base = above
    gpus = [point.gpus for point in report.course]
    well = [point.gpus - point.broken for point in report.course]
    yield from chart.area(times, gpus, well, BROKEN_STYLE)
    if any(each != chart.most for each in gpus):
        yield chart.line(times, gpus, 'stroke="black" stroke-dasharray="4 2"')


def _solid(number: int) -> str:
    return f'fill="{COLOURS[number % len(COLOURS)]}"'


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
