"""Where no cluster can run, its tests say what is missing: skipped on a desk, failed in CI."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def run(programs: Path, **environment: str) -> str:
    """The summary of a test that needs nodes, on a machine whose only programs are in a directory."""
    kept = {name: value for name, value in os.environ.items() if name not in ("CI", "PAI_TEST_KUBECONFIG")}
    test = "tests/kubernetes/test_cluster.py::test_both_nodes_are_ready_and_count_one_gpu_each"
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    told = {**kept, "PATH": str(programs), **environment}
    return subprocess.run(words, env=told, cwd=ROOT, capture_output=True, text=True, timeout=280).stdout


def test_at_a_desk_they_are_skipped_with_what_is_missing(tmp_path: Path) -> None:
    summary = run(tmp_path)
    assert "1 skipped" in summary
    assert "no Kubernetes cluster can run here; missing: " in summary
    assert "containerd" in summary or sys.platform != "linux"


def test_in_ci_they_fail(tmp_path: Path) -> None:
    summary = run(tmp_path, CI="true")
    assert "1 error" in summary
    assert "no Kubernetes cluster can run here; missing: " in summary
