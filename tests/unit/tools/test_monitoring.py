"""The chart's alerts and dashboard ask for figures that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml

from tools import dashboard

ROOT = Path(__file__).resolve().parents[3]
CHART = ROOT / "deploy" / "helm" / "jupyter-pai"
NAME = re.compile(r"\bpai_\w+")


def told() -> set[str]:
    """Names of figures in the sources of the backend."""
    found: set[str] = set()
    for path in (ROOT / "backend" / "pai_backend").rglob("*.py"):
        found |= set(re.findall(r'"(pai_[a-z_]+)"', path.read_text(encoding="utf-8")))
    return found


def asked(expressions: list[str]) -> set[str]:
    """The figures of expressions, without what Prometheus's libraries put behind their names."""
    names = {name for expression in expressions for name in NAME.findall(expression)}
    return {re.sub(r"_(total|bucket|count|sum)$", "", name) for name in names}


def test_alerts_ask_for_figures_that_there_are() -> None:
    (group,) = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    rules = group["rules"]
    assert asked([rule["expr"] for rule in rules]) <= told()
    assert all({"summary", "description"} == rule["annotations"].keys() for rule in rules)
    assert len({rule["alert"] for rule in rules}) == len(rules)


def test_the_dashboard_is_the_one_that_the_script_makes_and_asks_for_figures_that_there_are() -> None:
    made = dashboard.dashboard()
    assert json.loads(dashboard.PLACE.read_text(encoding="utf-8")) == made
    assert asked([target["expr"] for panel in made["panels"] for target in panel["targets"]]) <= told()
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in made["panels"]]
    assert len(set(places)) == len(places)
