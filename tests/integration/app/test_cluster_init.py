"""``cluster init`` prints a configuration that a backend takes; a wrong one keeps a backend from starting."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pai_backend.scheduling.config.read import read_config
from tests.support.warm_start import run_backend

NODES = """\
data_dir: {data}
engine:
  nodes:
    - {{name: carol, gpus: {{type: TITANX, count: 2}}}}
    - {{name: dan, gpus: {{type: V100, count: 4}}, taints: [{{key: gpu, effect: NoSchedule}}]}}
"""


def backend(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_backend(*arguments, timeout=60)


def settings(path: Path, more: str = "") -> str:
    file = path / "backend.yaml"
    file.write_text(NODES.format(data=path / "data") + more, encoding="utf-8")
    return str(file)


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


def test_a_wrong_configuration_is_named_with_its_place(tmp_path: Path) -> None:
    wrong = tmp_path / "cluster.yaml"
    wrong.write_text("physicalCluster:\n  cellTypes: {}\n  physicalCells:\n    - {cellType: NODE}\n", encoding="utf-8")
    file = settings(tmp_path, f"cluster: {{config: {wrong}}}\n")
    done = backend("serve", "--config", file, "--role", "controller")
    assert done.returncode == 2
    assert f"cluster.config: {wrong}:4:" in done.stderr
    assert "cell type NODE is not defined" in done.stderr


def test_a_file_is_written_once_unless_it_may_be_replaced(tmp_path: Path) -> None:
    file, config = tmp_path / "cells.yaml", settings(tmp_path)
    asked = ("cluster", "init", "--config", config, "--output", str(file))
    assert backend(*asked, "--vc", "vision=50").returncode == 0
    written = file.read_text(encoding="utf-8")
    assert list(read_config(written).virtual_clusters) == ["default", "vision"]
    again = backend(*asked)
    assert (again.returncode, file.read_text(encoding="utf-8")) == (2, written)
    assert again.stderr == f"pai_backend: --output: {file} is there already; --force replaces it\n"
    assert backend(*asked, "--force").returncode == 0
    assert list(read_config(file.read_text(encoding="utf-8")).virtual_clusters) == ["default"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backend.yaml", "cells.yaml"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--vc", "vision"], "--vc: 'vision' is not a share; write NAME=PERCENT"),
        (["--vc", "a=60", "--vc", "b=50"], "--vc: the shares are 110 percent"),
        (["--vc", "a=60", "--vc", "a=10"], "--vc: a has two shares"),
        (["--output", "no/such/place.yaml"], "--output: no/such/place.yaml cannot be written: No such file"),
        (["--layout", "no-such.yaml"], "--layout: no-such.yaml cannot be read: No such file"),
        (["--force"], "--force: there is no --output to replace"),
        (["--kubernets-context", "x"], "--kubernets-context: is not known. Did you mean --kubernetes-context?"),
    ],
)
def test_what_cannot_be_done_is_one_line(tmp_path: Path, words: list[str], said: str) -> None:
    done = backend("cluster", "init", "--config", settings(tmp_path), *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"pai_backend: {said}"), done.stderr
    assert done.stderr.count("\n") == 1


def test_a_layout_of_openpai_becomes_cells(tmp_path: Path) -> None:
    layout = tmp_path / "layout.yaml"
    layout.write_text(
        "machine-sku:\n"
        "  gpus: {mem: 220Gi, cpu: {vcore: 24}, computing-device: {type: nvidia.com/gpu, model: K80, count: 4}}\n"
        'machine-list: [{hostname: hostname-carol, machine-type: gpus, pai-worker: "true"}]\n',
        encoding="utf-8",
    )
    done = backend("cluster", "init", "--config", settings(tmp_path), "--layout", str(layout))
    assert done.returncode == 0, done.stderr
    assert read_config(done.stdout).nodes() == ("hostname-carol",)
    layout.write_text("machine-list: 3\n", encoding="utf-8")
    wrong = backend("cluster", "init", "--config", settings(tmp_path), "--layout", str(layout))
    assert wrong.returncode == 2
    assert wrong.stderr.startswith(f"pai_backend: {layout}:1:15: a list is expected here. ")
