"""Chinese tables of names that programs read have the rows of the English ones, which are held to the code."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import read

CELL = re.compile(r"(?<!\\)\|")
WORDS = {"as the engine says": "由引擎说明"}
"""Cells of such columns that are words, in both languages."""


def rows(page: str) -> list[list[str]]:
    """The cells of each row of all tables, without the rows that only draw a line."""
    lines = [line for line in read(page).splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip() for cell in CELL.split(line)[1:-1]] for line in lines]


def names(cell: str) -> list[str]:
    """What is written as code, and the numbers."""
    return re.findall(r"`[^`]+`|-?\d+", cell)


def test_exits_have_the_same_class_causer_kind_and_number() -> None:
    english, chinese = rows("docs/exits.md"), rows("docs/zh-CN/exits.md")
    kept = [[WORDS.get(cell, cell) for cell in (row[1], *row[4:])] for row in english[1:]]
    assert len(kept) > 20
    assert [[row[1], *row[4:]] for row in chinese[1:]] == kept
    assert [names(row[0]) for row in chinese] == [names(row[0]) for row in english]


@pytest.mark.parametrize("page", ["environment", "notifications", "metrics", "connect/doctor"])
def test_first_columns_name_the_same(page: str) -> None:
    english, chinese = (rows(f"docs/{folder}{page}.md") for folder in ("", "zh-CN/"))
    found = [names(row[0]) for row in english]
    assert sum(map(len, found)) > 10
    assert [names(row[0]) for row in chinese] == found
