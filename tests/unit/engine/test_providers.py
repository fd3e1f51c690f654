"""Kinds of engines and their entry points."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from pai_backend.engine.providers import GROUP, SHIPPED, names, provider

ROOT = Path(__file__).parents[3]


def test_the_shipped_engines_are_entry_points_of_the_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"][GROUP].items() >= SHIPPED.items()
    assert names()[: len(SHIPPED)] == tuple(SHIPPED)


def test_processes_and_containers_run_here() -> None:
    here = {name: provider(name).runs_here for name in SHIPPED}
    assert here == {"local": True, "containers": True, "kubernetes": False}


def test_an_engine_that_is_not_installed_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"engine\.kind: there is no engine nothing; installed: local, containers, kubernetes"
    ):
        provider("nothing")
