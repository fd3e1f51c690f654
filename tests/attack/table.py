"""The table that a run of attacks ends with: row by row, what was tried and whether it is closed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import pytest

ROW = "attack"


def mark_rows(items: Iterable[pytest.Item]) -> None:
    """Let each attack's report tell its row and its title, also from a worker of xdist."""
    for item in items:
        for marker in item.iter_markers(ROW):
            item.user_properties.append((ROW, f"{marker.args[0]:02d} {marker.args[1]}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table, when an attack was among the tests."""
    rows: dict[str, set[str]] = defaultdict(set)
    for outcome in ("passed", "failed", "error"):
        for report in terminalreporter.getreports(outcome):
            if isinstance(report, pytest.TestReport) and (outcome != "passed" or report.when == "call"):
                for title in _titles(report):
                    rows[title].add(outcome)
    if rows:
        terminalreporter.write_sep("=", "attacks")
        for title, outcomes in sorted(rows.items()):
            terminalreporter.write_line(f"{'closed' if outcomes == {'passed'} else 'OPEN':7s} {title}")


def _titles(report: pytest.TestReport) -> Iterator[str]:
    for name, value in report.user_properties:
        if name == ROW:
            yield str(value)
