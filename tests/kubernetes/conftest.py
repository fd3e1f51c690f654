"""Tests on a real Kubernetes: in a few workers, each with its own cluster; logs of all parts are kept for a failure.

The first test that needs the cluster waits until its programs are built, which takes minutes on a new machine.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.kubernetes.backend_image import backend_image
from tests.kubernetes.cluster import programs
from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.cluster.simulation import Simulation
from tests.kubernetes.fixtures import keep_logs, kubernetes, namespace, scale, testbed
from tests.kubernetes.runtime_image import runtime_image
from tests.support.api_world import api_server, worlds

pytest.register_assert_rewrite("pai_backend.testing.engine_contract")

__all__ = ["api_server", "backend_image", "kubernetes", "namespace", "runtime_image", "scale", "testbed", "worlds"]

LOGS = Path(__file__).resolve().parents[2] / "build" / "kubernetes-logs"
TEST_S, FAULT_S, BUILD_S = 300, 900, 2400
GROUPS = {
    "faults": "kubernetes-faults",
    "deploy": "kubernetes-deploy",
    "devices": "kubernetes-deploy",
    "policies": "kubernetes-policies",
    "routes": "kubernetes-routes",
}


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests in the worker that has their cluster, and give them time for real nodes, or until these are built."""
    ours = [item for item in items if Path(__file__).parent in item.path.parents]
    limit_s = BUILD_S if ours and programs.unbuilt() else TEST_S
    for item in ours:
        group = next((name for part, name in GROUPS.items() if part in item.path.parts), "kubernetes")
        item.add_marker(pytest.mark.xdist_group(group))
        # Faults wait for whole backends to start.
        item.add_marker(pytest.mark.timeout(max(limit_s, FAULT_S) if "faults" in item.path.parts else limit_s))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep the logs of the clusters that a failed test used."""
    report = yield
    if report.failed:
        for name, value in getattr(item, "funcargs", {}).items():
            cluster = value.cluster if isinstance(value, Simulation) else value
            if isinstance(cluster, Cluster) and cluster.directory.exists():
                place = LOGS / f"{item.name}-{name}"
                keep_logs(cluster, place)
                report.sections.append(("cluster", f"logs of all parts: {place}"))
    return report
