"""The course of a simulation as an SVG: who used the GPUs, and how many were asked for by those who waited.

Of two configurations both courses are drawn, on the same scales, one below the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pai_backend.simulation.drawing import LEFT, RIGHT, WIDTH, Chart, text
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
