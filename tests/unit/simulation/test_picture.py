"""The picture: well-formed, and as high as what was used."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from pai_backend.scheduling import read_config
from pai_backend.simulation import Arrival, Comparison, Report, Trace, picture, replay
from pai_backend.simulation.course import MOST_MOMENTS
from pai_backend.simulation.picture import LEFT, TOP, USED_HEIGHT, WIDTH, duration
from tests.unit.simulation.test_replay import PAIR, arrival

SVG = "{http://www.w3.org/2000/svg}"


def played(*arrivals: Arrival) -> Report:
    return replay(read_config(PAIR), Trace.of(arrivals))


def outlines(report: Report | Comparison) -> list[list[tuple[float, float]]]:
    tree = ElementTree.fromstring(picture(report))
    return [
        [(float(x), float(y)) for x, y in (pair.split(",") for pair in polygon.attrib["points"].split())]
        for polygon in tree.iter(f"{SVG}polygon")
    ]


def test_used_gpus_are_stacked_by_virtual_cluster() -> None:
    a, b = outlines(played(arrival("one", 0, 100, gpus=4), arrival("two", 0, 100, vc="b", gpus=2)))
    assert min(y for _, y in a) == TOP + USED_HEIGHT / 2
    assert min(y for _, y in b) == TOP + USED_HEIGHT / 4
    assert max(y for x, y in b if x < LEFT + WIDTH) == TOP + USED_HEIGHT / 2


def test_who_waits_is_drawn_only_when_somebody_does() -> None:
    alone = played(arrival("one", 0, 100, gpus=4))
    queued = played(arrival("one", 0, 100, gpus=4), arrival("two", 0, 100, gpus=4))
    assert len(outlines(alone)) == 1
    assert len(outlines(queued)) == 2


def test_nothing_that_ran_is_a_picture_too() -> None:
    assert outlines(played(arrival("huge", 0, 10, tasks=9))) == []


def test_two_courses_are_drawn_below_each_other_on_the_same_scales() -> None:
    short, long = played(arrival("one", 0, 50, gpus=4)), played(arrival("one", 0, 100, gpus=4))
    above, below = outlines(Comparison(configs=("old", "new"), reports=(short, long)))
    assert max(x for x, _ in above) == LEFT + WIDTH / 2
    assert max(x for x, _ in below) == LEFT + WIDTH
    assert min(y for _, y in below) > max(y for _, y in above)


def test_names_cannot_break_out_of_their_text() -> None:
    config = read_config(PAIR.replace("  b:", '  "<b>\\u0007&":'))
    tree = ElementTree.fromstring(picture(replay(config, Trace.of([arrival("one", 0, 10)]))))
    assert "<b>&" in [text.text for text in tree.iter(f"{SVG}text")]


def test_a_long_course_is_averaged_without_losing_gpu_time() -> None:
    report = played(*(arrival(f"g{number}", number * 7, 5, gpus=1 + number % 4) for number in range(1000)))
    assert len(report.course) == MOST_MOMENTS
    width = report.span_s / MOST_MOMENTS
    assert sum(point.used[0] for point in report.course) * width == pytest.approx(3600 * report.total.gpu_hours)


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (59.6, "1 min"), (90, "1 min 30 s"), (12_000, "3 h 20 min"), (86_400, "1 d")]
)
def test_durations_read_as_people_say_them(seconds: float, words: str) -> None:
    assert duration(seconds) == words
