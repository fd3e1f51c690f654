"""The course of a simulation as an SVG: who used the GPUs, and how many were asked for by those who waited."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from pai_backend.scheduling.simulate.report import Report

WIDTH, USED_HEIGHT, WAITING_HEIGHT = 800, 240, 100
LEFT, TOP, GAP, BELOW = 60, 48, 40, 60
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
"""Source: Paul Tol's "bright" scheme, which the colour-blind can tell apart; used again from the first one on."""
WAITING_COLOUR = "#555555"
STEPS_S = (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 14_400, 43_200, 86_400, 604_800)
MOST_TICKS = 10
_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def picture(report: Report) -> str:
    """The text of an SVG. Above, used GPUs by virtual cluster; below, GPUs that waiting groups ask for."""
    height = TOP + USED_HEIGHT + GAP + WAITING_HEIGHT + BELOW
    size = f'width="{LEFT + WIDTH + 20}" height="{height}" viewBox="0 0 {LEFT + WIDTH + 20} {height}"'
    body = [*_legend(report), *_used(report), *_waiting(report), *_time_axis(report)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
            '<rect width="100%" height="100%" fill="white"/>',
            *body,
            "</svg>\n",
        ]
    )


def _legend(report: Report) -> Iterator[str]:
    at = LEFT
    for number, share in enumerate(report.vcs):
        yield f'<rect x="{at}" y="12" width="12" height="12" fill="{_colour(number)}"/>'
        yield _text(at + 16, 22, share.vc)
        at += 30 + 8 * len(share.vc)


def _used(report: Report) -> Iterator[str]:
    bottom, most = TOP + USED_HEIGHT, max(report.gpus, 1)
    below = [0.0] * len(report.course)
    for number in range(len(report.vcs)):
        above = [base + point.used[number] for base, point in zip(below, report.course, strict=True)]
        edges = [_stairs(report, values, bottom, USED_HEIGHT / most) for values in (above, below)]
        if any(point.used[number] for point in report.course):
            outline = " ".join([*edges[0], *reversed(edges[1])])
            yield f'<polygon points="{outline}" fill="{_colour(number)}"/>'
        below = above
    yield from _frame(TOP, USED_HEIGHT, report.gpus, f"GPUs in use of {report.gpus}: {100 * report.utilisation:.1f} %")


def _waiting(report: Report) -> Iterator[str]:
    top = TOP + USED_HEIGHT + GAP
    values = [point.waiting for point in report.course]
    most = max([1.0, *values])
    edge = _stairs(report, values, top + WAITING_HEIGHT, WAITING_HEIGHT / most)
    if any(values):
        outline = " ".join([f"{LEFT},{top + WAITING_HEIGHT}", *edge, f"{LEFT + WIDTH},{top + WAITING_HEIGHT}"])
        yield f'<polygon points="{outline}" fill="{WAITING_COLOUR}"/>'
    yield from _frame(top, WAITING_HEIGHT, round(most), "GPUs asked for by groups that wait")


def _frame(top: int, height: int, most: int, title: str) -> Iterator[str]:
    yield f'<rect x="{LEFT}" y="{top}" width="{WIDTH}" height="{height}" fill="none" stroke="black"/>'
    yield _text(LEFT, top - 5, title)
    yield _text(LEFT - 6, top + 10, str(most), "end")
    yield _text(LEFT - 6, top + height, "0", "end")


def _time_axis(report: Report) -> Iterator[str]:
    bottom = TOP + USED_HEIGHT + GAP + WAITING_HEIGHT
    step = _step(report.span_s)
    at = 0.0
    while at <= report.span_s:
        x = LEFT + WIDTH * at / report.span_s if report.span_s else LEFT
        yield f'<line x1="{x:.1f}" y1="{bottom}" x2="{x:.1f}" y2="{bottom + 5}" stroke="black"/>'
        yield _text(x, bottom + 18, duration(at), "middle")
        at += step
    yield _text(LEFT + WIDTH, bottom + 38, "since the first arrival", "end")


def _step(span_s: float) -> float:
    """The distance of marks on the time axis: a round one, with which there are few."""
    for step in STEPS_S:
        if span_s <= step * MOST_TICKS:
            return step
    return STEPS_S[-1] * -(-span_s // (STEPS_S[-1] * MOST_TICKS))


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


def _stairs(report: Report, values: Sequence[float], bottom: int, scale: float) -> list[str]:
    """Corners of a line that keeps each value until the next one."""
    if not report.course:
        return []
    first = report.course[0].at_s
    times = [point.at_s - first for point in report.course]
    corners = []
    for start, end, value in zip(times, [*times[1:], report.span_s], values, strict=True):
        corners += [_corner(report, at, bottom - value * scale) for at in (start, max(start, end))]
    return corners


def _corner(report: Report, at_s: float, y: float) -> str:
    x = LEFT + WIDTH * min(at_s / report.span_s, 1.0) if report.span_s else LEFT
    return f"{x:.1f},{y:.1f}"


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{_printable(text)}</text>'


def _printable(text: str) -> str:
    """Text as XML has it: control characters cannot be said there."""
    return escape("".join(char for char in text if char.isprintable()))


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]
