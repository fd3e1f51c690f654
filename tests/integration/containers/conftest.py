"""Podman for the tests of this folder, which one worker has together."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.podman_site import PodmanSite, lacking, podman_site

HERE = f"{Path(__file__).parent}{os.sep}"


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep them in one worker: they share images, and Podman's locks."""
    for item in items:
        if str(item.path).startswith(HERE):
            item.add_marker(pytest.mark.xdist_group("containers"))
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PodmanSite]:
    """Skipped with the reason where no containers can run; in CI that is a failure."""
    if lacks := lacking():
        words = f"no containers here without {', '.join(lacks)}"
        pytest.fail(words) if os.environ.get("CI") else pytest.skip(words)
    with podman_site(tmp_path_factory.mktemp("podman") / "site") as made:
        yield made
