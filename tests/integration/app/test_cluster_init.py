"""``cluster init`` prints a configuration that a backend takes; a wrong one keeps a backend from starting."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pai_backend.scheduling.config.read import read_config

NODES = """\
data_dir: {data}
engine:
  nodes:
    - {{name: carol, gpus: {{type: TITANX, count: 2}}}}
    - {{name: dan, gpus: {{type: V100, count: 4}}, taints: [{{key: gpu, effect: NoSchedule}}]}}
"""


def backend(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pai_backend", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def settings(path: Path, more: str = "") -> str:
    file = path / "backend.yaml"
    file.write_text(NODES.format(data=path / "data") + more, encoding="utf-8")
    return str(file)


@pytest.mark.timeout(90)
def test_the_printed_configuration_has_every_gpu_and_can_be_read(tmp_path: Path) -> None:
    done = backend("cluster", "init", "--config", settings(tmp_path))
    assert done.returncode == 0, done.stderr
    config = read_config(done.stdout)
    assert config.nodes() == ("carol", "dan")
    assert [(quota.type, quota.number) for quota in config.virtual_clusters["default"].quotas] == [
        ("TITANX-NODE-2", 1),
        ("V100-NODE-4", 1),
    ]
    assert done.stdout.startswith("# Made from the nodes of local.")
    assert "\n# V100: gpu:NoSchedule on dan. Nothing starts there unless" in done.stdout


@pytest.mark.timeout(90)
def test_a_wrong_configuration_is_named_with_its_place(tmp_path: Path) -> None:
    wrong = tmp_path / "cluster.yaml"
    wrong.write_text("physicalCluster:\n  cellTypes: {}\n  physicalCells:\n    - {cellType: NODE}\n", encoding="utf-8")
    file = settings(tmp_path, f"cluster: {{config: {wrong}}}\n")
    done = backend("serve", "--config", file, "--role", "controller")
    assert done.returncode == 2
    assert f"cluster.config: {wrong}:4:" in done.stderr
    assert "cell type NODE is not defined" in done.stderr
