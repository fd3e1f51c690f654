"""Labels and taints of nodes in the configuration, and which nodes the tasks of a SKU may use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from pai_backend.config.files import ConfigError
from pai_backend.config.load import load
from pai_backend.config.settings import Settings
from pai_backend.engine.local.nodes import detect_machine, marked, simulated_node
from pai_backend.model.labels import Effect, NodeRule, Operator, Taint, Toleration
from pai_backend.processes.components import local_nodes

FILE = """\
engine:
  nodes:
    - name: carol
      labels: {zone: a}
      taints:
        - {key: gpu, value: v100, effect: NoSchedule}
    - {name: dan, schedulable: false}
cluster:
  sku_scheduling:
    V100:
      nodeSelector: {zone: a}
      tolerations:
        - {key: gpu, operator: Exists, effect: NoSchedule}
        - {operator: Exists, effect: NoExecute, tolerationSeconds: 60}
  cpu_scheduling:
    nodeSelector: {zone: b}
"""
V100 = NodeRule(
    node_selector={"zone": "a"},
    tolerations=(
        Toleration(key="gpu", operator=Operator.EXISTS, effect=Effect.NO_SCHEDULE),
        Toleration(operator=Operator.EXISTS, effect=Effect.NO_EXECUTE, toleration_seconds=60),
    ),
)


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "backend.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_rules_are_written_as_in_a_manifest_of_kubernetes(tmp_path: Path) -> None:
    cluster = load(["--config", write(tmp_path, FILE)]).settings.cluster
    assert cluster.sku_scheduling == {"V100": V100}
    assert cluster.cpu_scheduling == NodeRule(node_selector={"zone": "b"})


def test_rules_are_json_in_flags_and_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAI_BACKEND_CLUSTER__CPU_SCHEDULING__NODE_SELECTOR", '{"zone": "b"}')
    rules = json.dumps({"V100": {"nodeSelector": {"zone": "a"}}})
    flag = '[{"key": "cpu", "operator": "Exists"}]'
    cluster = load(["--cluster-sku-scheduling", rules, "--cluster-cpu-scheduling-tolerations", flag]).settings.cluster
    assert cluster.sku_scheduling == {"V100": NodeRule(node_selector={"zone": "a"})}
    assert cluster.cpu_scheduling == NodeRule(
        node_selector={"zone": "b"}, tolerations=(Toleration(key="cpu", operator=Operator.EXISTS),)
    )


def test_processes_that_we_start_read_the_same(tmp_path: Path) -> None:
    settings = load(["--config", write(tmp_path, FILE)]).settings
    told = json.loads(settings.reveal("1"))
    told.pop("version")
    assert Settings.model_validate(told) == settings


def test_local_nodes_have_their_labels_and_those_of_every_kubernetes_node(tmp_path: Path) -> None:
    carol, dan = local_nodes(load(["--config", write(tmp_path, FILE)]).settings.engine.nodes)
    assert carol.labels.keys() == {"zone", "kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch"}
    assert (carol.labels["zone"], carol.labels["kubernetes.io/hostname"]) == ("a", "carol")
    assert (carol.taints, carol.schedulable) == ((Taint(key="gpu", value="v100", effect=Effect.NO_SCHEDULE),), True)
    assert (dan.taints, dan.schedulable) == ((), False)
    (here,) = local_nodes(())
    assert here.labels["kubernetes.io/os"] in ("linux", "darwin")
    assert here.schedulable


def test_a_name_that_is_no_label_is_left_out_and_what_is_written_wins() -> None:
    odd = marked(simulated_node("Anna's laptop", "T4", 1, 1, 1), {"kubernetes.io/arch": "mine"}, (), schedulable=True)
    assert "kubernetes.io/hostname" not in odd.labels
    assert odd.labels["kubernetes.io/arch"] == "mine"
    assert type(odd).model_validate(odd.model_dump()) == odd
    assert detect_machine().labels == {}


NODES = "engine:\n  nodes:\n    - {{name: a, {0}}}\n"
RULES = "cluster:\n  sku_scheduling:\n    V100: {0}\n"
MISTAKES = [
    (NODES.format("labels: {gpu: true}"), 3, "engine.nodes[0].labels.gpu must be text."),
    (NODES.format("labels: {a b: c}"), 3, "engine.nodes[0].labels has an invalid label key: 'a b' must be 1 to 63"),
    (
        NODES.format("labels: {a: b/c}"),
        3,
        "engine.nodes[0].labels has an invalid label value: that of a must be at most",
    ),
    (NODES.format("taints: [{key: a}]"), 3, "engine.nodes[0].taints[0].effect is required."),
    (
        NODES.format("taints: [{key: a, effect: Never}]"),
        3,
        "engine.nodes[0].taints[0].effect must be one of 'NoSchedule', 'PreferNoSchedule' or 'NoExecute'.",
    ),
    (
        RULES.format("{tolerations: [{value: x}]}"),
        3,
        "cluster.sku_scheduling.V100.tolerations[0] without a key needs the operator Exists.",
    ),
    (RULES.format("{selector: {}}"), 3, "cluster.sku_scheduling.V100.selector is not known."),
]


@pytest.mark.parametrize(("text", "line", "said"), MISTAKES, ids=[said[:50] for _, _, said in MISTAKES])
def test_a_mistake_names_key_and_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load(["--config", file])
    (told,) = caught.value.lines
    assert told.startswith(f"{file}:{line}: {said}")


def test_the_example_of_the_page_on_scheduling_is_valid() -> None:
    page = (Path(__file__).parents[3] / "docs" / "scheduling.md").read_text(encoding="utf-8")
    section = page.partition("## Nodes: selectors, taints, health")[2]
    example = section.partition("```yaml\n")[2].partition("```")[0]
    settings = Settings.model_validate(yaml.safe_load(example))
    (rule,) = settings.cluster.sku_scheduling.values()
    assert rule.untolerated(settings.engine.nodes[0].taints) == ()
    assert not settings.engine.nodes[1].schedulable
