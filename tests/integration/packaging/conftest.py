"""The distributions, built once for all tests here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.distributions import build_sdist, build_wheel


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution of this checkout."""
    return build_sdist(tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="session")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source distribution."""
    return build_wheel(sdist, tmp_path_factory.mktemp("wheel"))
