"""Which tests one worker has together."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def shared() -> str:
    """What is made once for this file."""
    return "shared"


def group(request: pytest.FixtureRequest) -> str | None:
    marker = request.node.get_closest_marker("xdist_group")
    return None if marker is None else str(marker.args[0])


def test_tests_of_a_file_that_share_a_fixture_have_one_worker(request: pytest.FixtureRequest, shared: str) -> None:
    assert group(request) == "tests/unit/support/test_groups_of_tests.py"


def test_others_go_to_any_worker(request: pytest.FixtureRequest) -> None:
    assert group(request) is None
