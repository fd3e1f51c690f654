"""A fake backend of its own for each test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jupyter_pai.sync import Client
from tests.support.running_fake import RunningFake


@pytest.fixture
def fake() -> Iterator[RunningFake]:
    with RunningFake() as running:
        yield running


@pytest.fixture
def client(fake: RunningFake) -> Iterator[Client]:
    with Client(fake.endpoint) as made:
        yield made
