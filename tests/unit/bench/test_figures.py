"""Floors are read strictly and compared the right way round."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.figures import FLOORS, Figure, Floor, compare, load_floors, percentile, row

FAST = Floor(limit=50.0, sense="max", unit="ms", why="a page feels immediate")
MANY = Floor(limit=200.0, sense="min", unit="1/s", why="a class submits at once")
FLOOR_TEXT = '[api.list_p95]\nlimit = 50.0\nsense = "max"\nunit = "ms"\nwhy = "feels immediate"\n'


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "floors.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_floors_are_read_by_benchmark_and_figure(tmp_path: Path) -> None:
    floors = load_floors(written(tmp_path, FLOOR_TEXT))
    assert floors == {"api": {"list_p95": Floor(50.0, "max", "ms", "feels immediate")}}


@pytest.mark.parametrize("key", ["limit", "sense", "unit", "why"])
def test_a_missing_key_is_refused(tmp_path: Path, key: str) -> None:
    lines = [line for line in FLOOR_TEXT.splitlines(keepends=True) if not line.startswith(key)]
    with pytest.raises(TypeError, match=key):
        load_floors(written(tmp_path, "".join(lines)))


def test_an_unknown_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="margin"):
        load_floors(written(tmp_path, FLOOR_TEXT + "margin = 1.0\n"))


@pytest.mark.parametrize("sense", ["", "MAX", "less"])
def test_a_wrong_sense_is_refused_with_its_place(tmp_path: Path, sense: str) -> None:
    with pytest.raises(ValueError, match=r"api\.list_p95"):
        load_floors(written(tmp_path, FLOOR_TEXT.replace('"max"', f'"{sense}"')))


def test_the_floors_of_the_project_are_valid_and_say_why() -> None:
    floors = load_floors(FLOORS)
    assert {"api", "local"} <= floors.keys()
    assert all(floor.why and floor.limit > 0 for group in floors.values() for floor in group.values())


@pytest.mark.parametrize(
    ("floor", "value", "holds"),
    [
        (FAST, 49.9, True),
        (FAST, 50.0, True),
        (FAST, 50.1, False),
        (MANY, 200.1, True),
        (MANY, 200.0, True),
        (MANY, 199.9, False),
    ],
)
def test_the_sense_says_which_side_is_right(floor: Floor, value: float, holds: bool) -> None:
    assert floor.holds(value) is holds


def test_the_margin_is_a_share_of_the_limit_and_negative_when_missed() -> None:
    assert FAST.margin(40.0) == pytest.approx(0.2)
    assert FAST.margin(60.0) == pytest.approx(-0.2)
    assert MANY.margin(300.0) == pytest.approx(0.5)
    assert MANY.margin(100.0) == pytest.approx(-0.5)


def test_a_miss_is_told_with_figure_floor_and_sense() -> None:
    figures = [Figure("list_p95", 61.24), Figure("submissions", 350.0)]
    floors = {"list_p95": FAST, "submissions": MANY}
    assert compare("api", figures, floors) == ["api.list_p95: 61.2 ms, floor 50 (max)"]
    assert compare("api", [Figure("list_p95", 1.0), figures[1]], floors) == []


@pytest.mark.parametrize("names", [["list_p95"], ["list_p95", "submissions", "another"], []])
def test_figures_and_floors_must_name_the_same_things(names: list[str]) -> None:
    floors = {"list_p95": FAST, "submissions": MANY}
    with pytest.raises(KeyError, match="differ in"):
        compare("api", [Figure(name, 1.0) for name in names], floors)


def test_a_row_shows_what_was_missed() -> None:
    shown = " ".join(row("api", Figure("list_p95", 61.24, "sqlite alone 2 ms"), FAST).split())
    assert shown == "MISS api.list_p95 61.2 ms <= 50 -22 % sqlite alone 2 ms"
    assert row("api", Figure("submissions", 350.0), MANY).startswith("ok  ")


def test_percentiles_are_values_that_were_measured() -> None:
    values = [float(number) for number in range(100, 0, -1)]
    assert percentile(values, 0.5) == 50.0
    assert percentile(values, 0.95) == 95.0
    assert percentile([7.0], 0.95) == 7.0
    assert percentile([3.0, 1.0, 2.0], 1.0) == 3.0
