"""Whether `make test` has tests on Kubernetes: where nodes can run or a cluster is named, never left out in silence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ABLE = (sys.executable, "-m", "tests.kubernetes.cluster", "able")


def asked(**variables: str) -> subprocess.CompletedProcess[str]:
    """What is said on a machine without any of the programs that nodes are made of."""
    return subprocess.run(
        ABLE, cwd=ROOT, env={"PATH": "/nowhere", **variables}, capture_output=True, text=True, timeout=60
    )


def test_what_is_missing_is_said_where_no_node_can_run() -> None:
    done = asked()
    assert done.returncode == 1
    assert done.stdout.startswith("Tests on Kubernetes are left out: none can run here; missing: ")


def test_a_cluster_that_is_named_needs_no_nodes_here() -> None:
    done = asked(PAI_TEST_KUBECONFIG="lab.kubeconfig")
    assert (done.returncode, done.stderr) == (0, "")
    assert "PAI_TEST_KUBECONFIG=lab.kubeconfig" in done.stdout
