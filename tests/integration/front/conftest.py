"""A fake backend of its own for each test that asks for one, and a real one with the settings of the examples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_pai.sync import Client
from tests.support.private_backend import delete_jobs, private_backend
from tests.support.running_fake import RunningFake

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let one worker have the tests that share the real backend."""
    for item in items:
        if isinstance(item, pytest.Function) and "shared_backend" in item.fixturenames:
            item.add_marker(pytest.mark.xdist_group("front-examples"))


@pytest.fixture
def fake() -> Iterator[RunningFake]:
    with RunningFake() as running:
        yield running


@pytest.fixture
def client(fake: RunningFake) -> Iterator[Client]:
    with Client(fake.endpoint) as made:
        yield made


@pytest.fixture(scope="session")
def backend_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of the real backend."""
    return tmp_path_factory.mktemp("examples") / "data"


@pytest.fixture(scope="session")
def shared_backend(backend_data: Path) -> Iterator[Client]:
    with private_backend(backend_data, EXAMPLES / "backend.yaml") as made:
        yield made


@pytest.fixture
def backend(shared_backend: Client) -> Iterator[Client]:
    """The real backend, which has no jobs yet."""
    yield shared_backend
    delete_jobs(shared_backend)
