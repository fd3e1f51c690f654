"""What docs/quick-start-kubernetes.md tells to do, done on a real cluster by a shell."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.kubernetes.cluster import programs
from tests.kubernetes.cluster.kubectl import Kubectl
from tests.kubernetes.fixtures import Kubernetes
from tests.support.backend_process import until
from tests.support.page_shell import LONG_S, PROGRAMS, PageShell, fence

PAGE = "docs/quick-start-kubernetes.md"


@pytest.fixture
def shell(kubernetes: Kubernetes, namespace: Kubectl, runtime_image: str, tmp_path: Path) -> Iterator[PageShell]:
    """With the page's configuration, in the test's namespace and with images that the nodes have."""
    config = yaml.safe_load(fence(PAGE, "# backend.yaml").text)
    config["kubernetes"]["namespace"] = namespace.namespace
    config["kubernetes"]["pods"] |= {"runtime_image": runtime_image, "grace_s": 1}
    (tmp_path / "backend.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    path = os.pathsep.join([str(PROGRAMS), str(programs.build("kubectl")), os.environ["PATH"]])
    own = {"KUBECONFIG": str(kubernetes.kubeconfig), "PAI_BACKEND_CONFIG": str(tmp_path / "backend.yaml")}
    made = PageShell(tmp_path, {**own, "PATH": path})
    a_volume(made, namespace.namespace, tmp_path / "jobs")
    made(fence(PAGE, "kubectl -n jupyter-pai apply").text.replace("-n jupyter-pai", f"-n {namespace.namespace}"))
    assert fence(PAGE, "export PAI_BACKEND_CONFIG").text.splitlines() == [
        "export PAI_BACKEND_CONFIG=$PWD/backend.yaml",
        "pai backend start",
    ]
    until(lambda: made.attempt("pai backend start").returncode == 0, LONG_S)  # it gives up after a minute
    yield made
    made("pai backend stop")
    made(f"kubectl delete persistentvolume {namespace.namespace} --wait=false")


def a_volume(shell: PageShell, name: str, place: Path) -> None:
    """What a StorageClass would make for the page's claim: a directory of this machine, which all nodes see."""
    place.mkdir()
    claim = {"kind": "PersistentVolumeClaim", "namespace": name, "name": "jobs"}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "capacity": {"storage": "10Gi"}}
    about = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}}
    text = json.dumps({**about, "spec": {**spec, "hostPath": {"path": str(place)}, "claimRef": claim}})
    shell(f"kubectl create -f - <<'END'\n{text}\nEND\n")


def test_the_first_job_runs_as_the_page_says(kubernetes: Kubernetes, shell: PageShell) -> None:
    whole = fence(PAGE, "cat >hello.yaml").text.replace("python:3.12-slim", kubernetes.python)
    written, commands = whole.split("\nEND\n")
    submit, why, logs, ssh, stop = commands.splitlines()
    assert shell(f"{written}\nEND\n{submit}")
    assert "hello" in shell(why)
    until(lambda: shell.attempt(logs).stdout == "hello from worker-0\n", LONG_S)
    until(lambda: shell.attempt(ssh).returncode == 0, LONG_S)
    assert shell(ssh.replace("ls -a", "hostname")) == "worker-0\n"
    shell(stop)
    until(lambda: "STOPPED" in shell("pai list"), LONG_S)


def test_the_first_configuration_is_made_as_the_page_says(shell: PageShell, tmp_path: Path) -> None:
    init, plan = fence(PAGE, "python -m pai_backend cluster init --config").text.splitlines()
    shell(init)
    assert "vision:" in (tmp_path / "cells.yaml").read_text(encoding="utf-8")
    assert "vision" in shell(plan)
    layout = "{machine-sku: {G: {mem: 220Gi, cpu: {vcore: 24}, computing-device: {model: K80, count: 4}}}, "
    layout += "machine-list: [{hostname: carol, machine-type: G, pai-worker: 'true'}]}"
    (tmp_path / "layout.yaml").write_text(layout, encoding="utf-8")
    shell(fence(PAGE, "python -m pai_backend cluster init --layout").text.replace("cells.yaml", "other.yaml"))
    assert "K80-NODE-4" in (tmp_path / "other.yaml").read_text(encoding="utf-8")


def test_what_a_job_leaves_in_its_output_directory_outlives_its_pod(
    kubernetes: Kubernetes, shell: PageShell, tmp_path: Path
) -> None:
    whole = fence(PAGE, "cat >hello.yaml").text.replace("python:3.12-slim", kubernetes.python)
    document = whole.split("\nEND\n")[0].split("\n", 1)[1]
    document = document.replace("name: hello", "name: leaves", 1)
    document = document.replace("echo hello from $(hostname)", 'echo kept >"$PAI_OUTPUT_DIR/result"').replace(
        "      - sleep 600\n", ""
    )
    (tmp_path / "leaves.yaml").write_text(document.replace("      - sleep 600", ""))
    shell("pai submit leaves.yaml")
    until(lambda: json.loads(shell("pai show leaves --json"))["state"] == "SUCCEEDED", LONG_S)
    (result,) = (tmp_path / "jobs").rglob("result")
    assert result.read_text() == "kept\n"
