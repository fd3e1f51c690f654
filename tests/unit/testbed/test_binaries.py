"""tools/kubernetes-binaries with a Go that writes what it is told: what is built, when again, and what never is."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

BUILDER = Path(__file__).resolve().parents[3] / "tools" / "kubernetes-binaries"
GO = """#!/bin/sh
echo "$@" >>"$CALLS"
case "$*" in
*'mod download'*) echo '{"GoMod": "kubernetes.mod", "Zip": "'"$CALLS.zip"'"}' ;;
*'mod edit'*) echo '{"Replace": [{"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}}]}' ;;
*etcdctl*) [ -z "$BROKEN" ] || { echo "etcdctl: no such module" >&2; exit 1; } ;;
esac
[ "$1" = build ] || exit 0
cp go.mod "$CALLS.mod"
find . -type f >"$CALLS.tree"
while [ "$1" != -o ]; do shift; done
directory=$2
shift 2
for path; do
    case $path in */v[0-9]) path=${path%/*} ;; esac
    echo program >"$directory${path##*/}"
done
"""


@pytest.fixture
def world(tmp_path: Path) -> dict[str, str]:
    """An environment with a Go of our own and an empty cache."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "go").write_text(GO)
    (programs / "go").chmod(0o755)
    calls = tmp_path / "calls"
    calls.touch()
    path = f"{programs}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "XDG_CACHE_HOME": str(tmp_path / "cache"), "CALLS": str(calls), "BROKEN": ""}


def build(world: dict[str, str], *words: str, by: Path = BUILDER) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, by, *words], env=world, capture_output=True, text=True, timeout=60)


def built(world: dict[str, str]) -> int:
    return sum(line.startswith("build ") for line in Path(world["CALLS"]).read_text().splitlines())


def place(world: dict[str, str]) -> Path:
    (version,) = (Path(world["XDG_CACHE_HOME"]) / "jupyter-pai" / "kubernetes").iterdir()
    return version


def test_programs_are_built_once_and_together_and_the_directory_is_printed(world: dict[str, str]) -> None:
    first = build(world, "etcd", "kubectl")
    assert first.returncode == 0, first.stderr
    assert Path(first.stdout.strip()) == place(world)
    assert (place(world) / "etcd").read_text() == "program\n"
    assert not (place(world) / "kubelet").exists()
    assert built(world) == 1
    assert build(world, "etcd", "kubectl").stdout == first.stdout
    assert built(world) == 1


def test_parts_of_kubernetes_come_at_the_version_that_belongs_to_it(world: dict[str, str]) -> None:
    assert build(world, "kubelet").returncode == 0
    module = Path(world["CALLS"] + ".mod").read_text()
    version = place(world).name
    assert f"require k8s.io/kubernetes {version}\n" in module
    assert "require helm.sh/helm/v3 " in module
    assert f"replace k8s.io/api => k8s.io/api v0.{version.split('.', 1)[1]}\n" in module
    assert f"-X k8s.io/component-base/version.gitVersion={version}" in Path(world["CALLS"]).read_text()


def test_a_failure_says_what_go_said_and_leaves_what_was_built(world: dict[str, str]) -> None:
    assert build(world, "etcd").returncode == 0
    failed = build({**world, "BROKEN": "yes"}, "etcd", "etcdctl")
    assert failed.returncode == 1
    assert "etcdctl: no such module" in failed.stderr
    assert sorted(path.name for path in place(world).iterdir()) == [".etcd.recipe", ".lock", "etcd"]
    assert build(world, "--missing", "etcd", "etcdctl").stdout == "etcdctl\n"


def test_what_was_interrupted_before_its_note_is_built_again(world: dict[str, str]) -> None:
    build(world, "etcd")
    (place(world) / ".etcd.recipe").unlink()
    (place(world) / ".draft-killed").mkdir()
    assert build(world, "etcd").returncode == 0
    assert built(world) == 2
    assert not (place(world) / ".draft-killed").exists()


def test_another_recipe_is_another_program(world: dict[str, str]) -> None:
    build(world, "etcd")
    (place(world) / ".etcd.recipe").write_text("go.etcd.io/etcd/server/v3@v3.5.0\n")
    assert build(world, "--missing", "etcd").stdout == "etcd\n"


def test_two_builders_build_once(world: dict[str, str]) -> None:
    command = [sys.executable, str(BUILDER), "etcd", "kubectl", "helm"]
    both = [subprocess.Popen(command, env=world, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in "ab"]
    assert [process.wait(60) for process in both] == [0, 0]
    assert built(world) == 1


def test_an_unknown_name_is_refused_with_the_known_ones(world: dict[str, str]) -> None:
    refused = build(world, "docker")
    assert refused.returncode == 2
    assert "unknown: docker" in refused.stderr
    assert "kube-apiserver" in refused.stderr


def test_what_is_built_alone_is_built_only_when_it_is_asked_for(world: dict[str, str]) -> None:
    assert build(world).returncode == 0
    assert (place(world) / "kube-apiserver").exists()
    assert not (place(world) / "kwok").exists()
    assert build(world, "--missing").stdout == ""
    assert build(world, "kwok").returncode == 0
    assert "k8s.io/kubernetes" not in Path(world["CALLS"] + ".mod").read_text()


def module_of(world: dict[str, str], name: str, files: dict[str, str]) -> None:
    """Let Go say that the module of a program in the table has these files."""
    table = tomllib.loads((BUILDER.parents[1] / "tests/kubernetes/cluster/versions.toml").read_text())
    (row,) = (row for row in table["program"] if row["name"] == name)
    with zipfile.ZipFile(world["CALLS"] + ".zip", "w") as packed:
        for path, text in files.items():
            packed.writestr(f"{row['module']}@{row['version']}/{path}", text)


def test_what_is_rooted_is_built_in_its_own_module_with_what_that_replaces(world: dict[str, str]) -> None:
    own = "module github.com/traefik/traefik/v3\n\nreplace a => b v1.0.0\n"
    module_of(world, "traefik", {"go.mod": own, "webui/embed.go": "package webui\n"})
    assert build(world, "--missing", "traefik").stdout == "traefik\n"
    assert build(world, "traefik").returncode == 0
    assert (place(world) / "traefik").read_text() == "program\n"
    assert Path(world["CALLS"] + ".mod").read_text() == own
    assert "./webui/static/index.html" in Path(world["CALLS"] + ".tree").read_text().splitlines()
    assert build(world, "--missing", "traefik").stdout == ""
    assert [path.name for path in place(world).iterdir() if path.name.startswith(".draft")] == []


def test_nobody_waits_for_what_is_built_in_its_own_tree(world: dict[str, str]) -> None:
    module_of(world, "traefik", {"go.mod": "module github.com/traefik/traefik/v3\n"})
    assert build(world, "etcd").returncode == 0
    with (place(world) / ".lock.traefik").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        draft = place(world) / ".draft.traefik-of-its-builder"
        draft.mkdir()
        waiting = subprocess.Popen([sys.executable, BUILDER, "traefik"], env=world, stdout=subprocess.DEVNULL)
        assert build(world, "kubectl").returncode == 0
        assert draft.exists()
        assert waiting.poll() is None
    assert waiting.wait(60) == 0
    assert (place(world) / "traefik").exists()
    assert not draft.exists()


def test_files_of_a_module_are_a_directory_which_is_replaced_whole(world: dict[str, str]) -> None:
    where = "config/crd/experimental"
    module_of(world, "gateway-api", {f"{where}/gateways.yaml": "kind: Gateway\n", "README.md": "not this\n"})
    assert build(world, "gateway-api").returncode == 0
    assert built(world) == 0
    assert [path.name for path in (place(world) / "gateway-api").iterdir()] == ["gateways.yaml"]
    (place(world) / ".gateway-api.recipe").unlink()
    module_of(world, "gateway-api", {f"{where}/tcproutes.yaml": "kind: TCPRoute\n"})
    assert build(world, "gateway-api").returncode == 0
    assert [path.name for path in (place(world) / "gateway-api").iterdir()] == ["tcproutes.yaml"]


def test_what_is_ours_is_built_with_the_modules_of_the_others_and_anew_when_its_source_changes(
    world: dict[str, str], tmp_path: Path
) -> None:
    """And the others are not: a change of ours costs seconds."""
    theirs, copy = (
        BUILDER.parents[1] / "tests" / "kubernetes" / "cluster",
        tmp_path / "tests" / "kubernetes" / "cluster",
    )
    shutil.copytree(theirs / "enforcer", copy / "enforcer")
    shutil.copy(theirs / "versions.toml", copy)
    (tmp_path / "tools").mkdir()
    builder = Path(shutil.copy(BUILDER, tmp_path / "tools"))
    assert build(world, by=builder).returncode == 0
    assert built(world) == 2
    assert (place(world) / "policy-enforcer").read_text() == "program\n"
    module = Path(world["CALLS"] + ".mod").read_text()
    assert "require github.com/mattfenwick/cyclonus " in module
    assert f"require k8s.io/kubernetes {place(world).name}\n" in module
    with (copy / "enforcer" / "main.go").open("a") as source:
        source.write("// changed\n")
    assert build(world, "--missing", by=builder).stdout == "policy-enforcer\n"
    assert build(world, by=builder).returncode == 0
    assert built(world) == 3
