"""A backend with a job in which kernels run, and a user of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jupyter_client.provisioning.factory import KernelProvisionerFactory

from jupyter_pai.sync import Client
from tests.support.entry_points import declared_entry_points
from tests.support.private_backend import private_backend

BOB = "a-token-of-bob-alone"
CONFIG = f"""\
user: alice
cluster_name: lab
api:
  tokens: [{{user: bob, token: {BOB}}}]
engine:
  trust_all_users: true
  grace_s: 1
  nodes:
    - {{name: carol, simulated: true, gpus: {{type: TITANX, count: 4}}, cpus: 16, memory_mb: 65536}}
"""


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let one worker have these tests, with one backend."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.xdist_group("kernels"))


@pytest.fixture(scope="session")
def entry_points(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Lets this process and its children find the provisioner."""
    directory = declared_entry_points(tmp_path_factory.mktemp("declared"))
    sys.path.insert(0, str(directory))
    KernelProvisionerFactory.clear_instance()
    yield directory
    sys.path.remove(str(directory))
    KernelProvisionerFactory.clear_instance()


@pytest.fixture(scope="session")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A backend of alice's."""
    place = tmp_path_factory.mktemp("kernels")
    (place / "backend.yaml").write_text(CONFIG)
    (place / "backend.yaml").chmod(0o600)
    with private_backend(place / "data", place / "backend.yaml") as client:
        yield client


@pytest.fixture
def alice(backend: Client, entry_points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    """This process is alice's, with a home of its own."""
    endpoint = backend.api.endpoint
    for name, value in {
        "PAI_URL": endpoint.url,
        "PAI_TOKEN": endpoint.token,
        "PAI_SSH_DIR": str(tmp_path / "ssh"),
        "JUPYTER_DATA_DIR": str(tmp_path / "data"),
        "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"),
        "IPYTHONDIR": str(tmp_path / "ipython"),
    }.items():
        monkeypatch.setenv(name, value)
    return backend
