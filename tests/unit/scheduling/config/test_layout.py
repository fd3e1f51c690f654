"""Machines of an OpenPAI cluster as its layout lists them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pai_backend.commands.openpai_layout import read_layout
from pai_backend.model.errors import DocumentError

LAB = """\
machine-sku:
  master-machine:
    mem: 60GB
    cpu: {vcore: 24}
  gpu-machine:
    computing-device: {type: nvidia.com/gpu, model: TITANX, count: 1}
    mem: 220Gi
    cpu: {vcore: 24}
machine-list:
  - {hostname: hostname-bob, hostip: 10.0.1.2, machine-type: master-machine, pai-master: "true"}
  - {hostname: hostname-carol, hostip: 10.0.1.3, machine-type: gpu-machine, pai-worker: "true"}
  - {hostname: hostname-dan, hostip: 10.0.1.4, machine-type: gpu-machine, pai-worker: "true"}
"""


def test_the_lab_of_three_machines() -> None:
    nodes, remarks = read_layout(LAB)
    assert [(node.name, node.address, node.cpus, node.memory_mb) for node in nodes] == [
        ("hostname-carol", "10.0.1.3", 24, 225280),
        ("hostname-dan", "10.0.1.4", 24, 225280),
    ]
    assert [gpu.type for node in nodes for gpu in node.gpus] == ["TITANX", "TITANX"]
    assert remarks == [
        "No workers, hence without cells: hostname-bob.",
        "On Kubernetes, say their GPUs' type: "
        "kubectl label node hostname-carol hostname-dan jupyter-pai/gpu-type=TITANX",
    ]


def test_workers_without_gpus_are_told() -> None:
    nodes, remarks = read_layout(LAB.replace('pai-master: "true"', "pai-worker: true"))
    assert (nodes[0].name, nodes[0].gpus, nodes[0].memory_mb) == ("hostname-bob", (), 57220)
    assert remarks[-1].endswith("run there: hostname-bob.")


def test_the_older_form() -> None:
    text = "{machine-sku: {K: {mem: 224, gpu: {type: teslak80, count: 4}, cpu: {vcore: 24}}}, machine-list: "
    ((node,), _) = read_layout(text + "[{hostname: w, machine-type: K, pai-worker: 'true'}]}")
    assert (len(node.gpus), node.gpus[0].type, node.memory_mb, node.address) == (4, "teslak80", 213623, "w")


@pytest.mark.parametrize(
    ("before", "after", "said", "line"),
    [
        ("machine-type: gpu-machine", "machine-type: gpus", "no SKU gpus", 11),
        ("hostname: hostname-dan", "hostname: hostname-carol", "hostname-carol is listed twice", 12),
        ("mem: 220Gi", "mem: much", "much is not an amount of memory", 7),
        ("model: TITANX", "model: TITAN.X", "TITAN.X cannot be a type of GPUs", 6),
        ("count: 1", "count: 1000", "1000 GPUs in a node", 6),
        ("count: 1", "count: none", "count must be a whole number", 6),
        ('pai-worker: "true"', "pai-worker: no", "no machine is a worker", 1),
    ],
)
def test_what_is_wrong_is_named_with_its_line(before: str, after: str, said: str, line: int) -> None:
    with pytest.raises(DocumentError) as caught:
        read_layout(LAB.replace(before, after))
    fault = caught.value.errors[0]
    assert said in fault.message
    assert (fault.line, bool(fault.hint)) == (line, True)


@settings(deadline=None)
@given(st.text(max_size=60), st.integers(0, len(LAB)))
def test_any_text_is_a_layout_or_its_faults(text: str, place: int) -> None:
    try:
        nodes, _ = read_layout(LAB[:place] + text + LAB[place:])
    except DocumentError as error:
        told = [fault.message for fault in error.errors]
    else:
        told = [node.name for node in nodes]
    assert told
