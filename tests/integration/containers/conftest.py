"""Podman for the tests of this folder, which one worker has together."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.podman_site import CONTAINERS, site

__all__ = ["site"]

HERE = f"{Path(__file__).parent}{os.sep}"


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep them in one worker: they share images, and Podman's locks."""
    for item in items:
        if str(item.path).startswith(HERE):
            item.add_marker(pytest.mark.xdist_group(CONTAINERS))
            item.add_marker(pytest.mark.timeout(600))
