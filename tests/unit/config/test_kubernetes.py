"""The keys about the cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pai_backend.config.files import ConfigError
from pai_backend.config.kubernetes import KubernetesSettings
from pai_backend.config.load import load
from pai_backend.config.settings import Settings
from pai_backend.engine.kubernetes.naming import namespace_of
from pai_backend.model.cluster_settings import NamespacePer


def test_a_kubeconfig_is_found_from_wherever_the_backend_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    flags = ["--kubernetes-kubeconfig", "lab.yaml", "--kubernetes-context", "lab", "--kubernetes-namespace", "team-a"]
    kubernetes = load(flags).settings.kubernetes
    assert kubernetes.kubeconfig == tmp_path / "lab.yaml"
    assert (kubernetes.context, kubernetes.namespace, kubernetes.requests_at_once) == ("lab", "team-a", 32)
    assert load([]).settings.kubernetes.kubeconfig is None


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--kubernetes-namespace", "Team"),
        ("--kubernetes-namespace", "a_b"),
        ("--kubernetes-namespace", "-a"),
        ("--kubernetes-namespace", "a" * 64),
        ("--kubernetes-context", ""),
        ("--kubernetes-requests-at-once", "0"),
    ],
)
def test_what_no_cluster_can_have_is_refused_with_its_place(flag: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"^{flag}: kubernetes"):
        load([flag, value] if not value.startswith("-") else [f"{flag}={value}"])


FILE = """\
engine: {kind: kubernetes}
kubernetes:
  namespace: pai
  namespace_per: user
  pods:
    runtime_image: r:1
    gpus: {by: visible-devices}
    infiniband: {resource: rdma/hca}
    volumes:
      - {name: data, claim: data, path: /data}
  patience: {pull_s: 5}
  nodes:
    gpu_types: {NVIDIA-A100-SXM4-80GB: A100}
"""


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "backend.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_what_a_file_says_of_pods_patience_and_nodes_is_taken_as_it_is_meant(tmp_path: Path) -> None:
    kubernetes = load(["--config", write(tmp_path, FILE)]).settings.kubernetes
    assert kubernetes.namespace_per == "user"
    assert kubernetes.pods.gpus.by == "visible-devices"
    assert kubernetes.pods.volumes[0].path == "/data"
    assert (kubernetes.patience.pull_s, kubernetes.patience.node_s) == (5, 300)
    assert kubernetes.nodes.gpu_types == {"NVIDIA-A100-SXM4-80GB": "A100"}


def test_processes_that_we_start_read_the_same(tmp_path: Path) -> None:
    loaded = load(["--config", write(tmp_path, FILE)]).settings
    told = json.loads(loaded.reveal("1"))
    told.pop("version")
    assert Settings.model_validate(told) == loaded


MISTAKES = [
    ("  pods:\n    netwrok: pod\n", 4, "kubernetes.pods.netwrok is not known. Did you mean kubernetes.pods.network?"),
    ("  pods:\n    network: moon\n", 4, "kubernetes.pods.network must be one of 'pod', 'host-port' or 'host'."),
    ("  pods:\n    gpus:\n      by: chance\n", 5, "kubernetes.pods.gpus.by must be one of"),
    ("  pods:\n    infiniband: {resource: hca}\n", 4, "kubernetes.pods.infiniband.resource must be the name of an"),
    ("  pods:\n    volumes:\n    - {name: v, path: /v}\n", 5, "kubernetes.pods.volumes[0] needs exactly one of claim"),
    ("  pods: 5\n", 3, "kubernetes.pods must be an object."),
    ("  patience:\n    pull_s: -1\n", 4, "kubernetes.patience.pull_s must be at least 0."),
    ("  nodes: {spare_cpus: few}\n", 3, "kubernetes.nodes.spare_cpus must be a number."),
    ("  namespace_per: team\n", 3, "kubernetes.namespace_per must be one of"),
]


@pytest.mark.parametrize(("text", "number", "words"), MISTAKES, ids=[words for _, _, words in MISTAKES])
def test_a_mistake_in_a_file_names_key_and_line(tmp_path: Path, text: str, number: int, words: str) -> None:
    file = write(tmp_path, "# a comment\nkubernetes:\n" + text)
    with pytest.raises(ConfigError) as error:
        load(["--config", file])
    (line,) = error.value.lines
    assert line.startswith(f"{file}:{number}: {words}")


def test_a_group_may_be_given_whole_and_what_is_given_of_it_beside_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAI_BACKEND_KUBERNETES__PODS__GPUS__BY", "visible-devices")
    flags = ["--kubernetes-pods", '{"network": "host", "grace_s": 2}', "--kubernetes-pods-network", "host-port"]
    pods = load(flags).settings.kubernetes.pods
    assert (pods.network, pods.grace_s, pods.gpus.by) == ("host-port", 2, "visible-devices")


def test_a_mistake_names_the_flag_or_the_variable_that_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for flags, words in (
        (["--kubernetes-pods", '{"network": "moon"}'], "--kubernetes-pods: kubernetes.pods.network"),
        (["--kubernetes-pods-network", "moon"], "--kubernetes-pods-network: kubernetes.pods.network"),
        (["--kubernetes-pods", "[1]"], "--kubernetes-pods: kubernetes.pods must be an object"),
    ):
        with pytest.raises(ConfigError, match=f"^{words}"):
            load(flags)
    monkeypatch.setenv("PAI_BACKEND_KUBERNETES__PODS__GPUS__BY", "chance")
    with pytest.raises(ConfigError, match=r"^PAI_BACKEND_KUBERNETES__PODS__GPUS__BY: kubernetes.pods.gpus.by"):
        load([])


def test_pods_need_a_launcher() -> None:
    with pytest.raises(ConfigError, match=r"kubernetes\.pods\.runtime_image is required with engine.kind: kubernetes"):
        load(["--engine-kind", "kubernetes"])


@pytest.mark.parametrize("base", [None, "", "9pai", "a" * 41, "a--b"])
def test_namespaces_of_users_begin_with_a_name_that_is_given(base: str | None) -> None:
    flags = ["--kubernetes-namespace-per", "user", *(["--kubernetes-namespace", base] if base is not None else [])]
    with pytest.raises(ConfigError, match="namespace"):
        load(flags)


@settings(deadline=None)
@given(st.from_regex(r"\A[a-z][a-z0-9]{0,5}(-[a-z0-9]{1,10}){0,3}\Z").map(lambda base: base[:40]), st.text(max_size=80))
def test_all_names_of_namespaces_begin_with_it(base: str, user: str) -> None:
    """The backend knows its own namespaces by that."""
    keys = KubernetesSettings(namespace=base.rstrip("-"), namespace_per=NamespacePer.USER)
    name = namespace_of(str(keys.namespace), keys.namespace_per, virtual_cluster="v", user=user or "u")
    assert name.startswith(f"{keys.namespace}-")
