"""The page of usage: what the ledger has, its cost, its plot and the budgets, at every width and in the dark."""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.axe import faults
from tests.support.lab_site import LabSite

PAGE = ".jp-pai-Usage"
DAY_US = 86_400_000_000
USERS = ("ann", "bob", "carol", "dave", "eve", "frank", "grace", "heidi")
Shoot = Callable[[Page, str], None]


def ask(lab: LabSite, method: str, path: str, **body: object) -> httpx.Response:
    headers = {"Authorization": f"token {lab.token}"}
    given = {"json": body} if body else {}
    answer = httpx.request(method, f"{lab.url}pai/api/v2/{path}", headers=headers, timeout=60, **given)  # type: ignore[arg-type]
    return answer.raise_for_status()


@pytest.fixture
def ledger(lab: LabSite) -> Iterator[None]:
    """Each of these held 2 V100 on the last 30 days, the first for 1 h a day, the second for 2 h, and so on."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    rows = []
    for number, user in enumerate(USERS, 1):
        for day in range(1, 31):
            began = int((today - timedelta(days=day)).timestamp()) * 1_000_000
            end = began + number * DAY_US // 24
            rows.append((f"{user}-{day}", began, end, "j0000000000000001", user, "default", "V100", 2, 4, 0))
    lab.get("info")  # the first answer comes when the private backend is there
    (database,) = lab.root.rglob("pai.sqlite")
    with closing(sqlite3.connect(database, timeout=60)) as conn:
        with conn:
            conn.executemany("INSERT INTO stays VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        ask(lab, "PUT", "prices", type="V100", hourly="2.50", currency="EUR", since="2026-01-01T00:00:00Z")
        since = (today - timedelta(days=40)).isoformat()
        budget = {"virtualCluster": "default", "per": "total", "since": since}
        made = [
            ask(lab, "PUT", "budgets", resource="money", amount="6000", **budget).json(),
            ask(lab, "PUT", "budgets", hours=43200, **budget).json(),
        ]
        yield
        for each in made:
            ask(lab, "DELETE", f"budgets/{each['id']}")
        ask(lab, "PUT", "prices", type="V100", since="2026-01-01T00:00:00Z")
        with conn:
            conn.execute("DELETE FROM stays WHERE job = 'j0000000000000001'")


def names(table: Locator) -> list[str]:
    return table.get_by_role("rowheader").all_inner_texts()


def test_use_is_shown_by_what_is_chosen_at_every_width_and_in_the_dark(
    page: Page, lab: LabSite, ledger: None, tmp_path: Path, shoot: Shoot
) -> None:
    page.evaluate("window.jupyterapp.commands.execute('pai:show-usage')")
    shown = page.locator(f"{PAGE}:visible")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/api/v2/usage" in request.url else None)
    shown.get_by_label("Time", exact=True).select_option("Last 90 days")
    table = shown.get_by_role("table", name="Usage")
    heidi = table.get_by_role("row", name="heidi")
    expect(heidi).to_contain_text("480.0")
    expect(heidi).to_contain_text("1,200.00")
    expect(heidi).to_contain_text("30")
    assert len(asked) == 1, "one request for a choice"
    assert names(table)[:3] == ["heidi", "grace", "frank"]
    table.get_by_role("button", name="User").click()
    assert names(table)[:2] == ["ann", "bob"]
    expect(shown.locator('p[role="status"]')).to_contain_text("5,400.00 EUR")
    plot = shown.get_by_role("slider", name="GPU hours by day")
    plot.focus()
    plot.press("End")
    plot.press("ArrowLeft")
    yesterday = (datetime.now(UTC) - timedelta(days=1)).strftime("%Y-%m-%d")
    expect(shown.locator("output")).to_contain_text(f"{yesterday}: 72.0 GPU hours (heidi 16.0, grace 14.0")
    expect(shown.locator("output")).to_contain_text("Others 6.0")
    shown.get_by_text("Numbers by day").click()
    expect(shown.get_by_role("row", name=yesterday)).to_contain_text("72.0")
    shown.get_by_text("Numbers by day").click()
    shown.get_by_label("Plot", exact=True).select_option("Cost")
    expect(shown.get_by_role("slider", name="Cost by day")).to_be_visible()
    with page.expect_download() as download:
        shown.get_by_role("button", name="Download CSV").click()
    download.value.save_as(tmp_path / "usage.csv")
    lines = list(csv.DictReader((tmp_path / "usage.csv").read_text().splitlines()))
    assert [(line["user"], line["gpuHours"], line["cost"], line["currency"]) for line in lines[:1]] == [
        ("ann", "60.000000", "150.00", "EUR")
    ]
    budgets = shown.get_by_role("table", name="Budgets")
    rows = budgets.get_by_role("row", name="Virtual cluster default")
    expect(rows.filter(has_text="6,000.00 EUR")).to_contain_text("90 %")
    expect(rows.filter(has_text="43,200.0 GPU hours")).to_contain_text("5 %")
    assert len(asked) == 1
    works_at_every_width_and_in_the_dark(page, shown, shoot)
    shown.get_by_label("By", exact=True).select_option("Day")
    expect(table.get_by_role("row", name=yesterday)).to_contain_text("180.00")
    assert names(table) == sorted(names(table)), "in the order of days"
    shown.get_by_label("By", exact=True).select_option("Group")
    expect(table.get_by_role("row", name="In no group")).to_be_visible()
    shown.get_by_label("Time", exact=True).select_option("Days of your choice")
    shown.get_by_label("First day").fill(yesterday)
    shown.get_by_label("Last day").fill(yesterday)
    expect(shown.locator('p[role="status"]')).to_contain_text(
        f"{yesterday} to {yesterday} (UTC). Together 72.0 GPU hours"
    )


def works_at_every_width_and_in_the_dark(page: Page, shown: Locator, shoot: Shoot) -> None:
    page.evaluate("window.jupyterapp.commands.execute('application:toggle-left-area')")
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
        expect(page.locator("body")).to_have_attribute("data-jp-theme-light", str("Light" in theme).lower())
        for width in (320, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            expect(shown.get_by_role("table", name="Usage").get_by_role("button", name="User")).to_be_visible()
            assert faults(page, PAGE) == [], (theme, width)
            assert shown.evaluate("node => node.scrollWidth <= node.clientWidth"), (theme, width)
            shoot(page, f"usage-{width}-{theme.rpartition(' ')[2].lower()}")
