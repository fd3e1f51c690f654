"""Without a configuration there is one: what the nodes have, all owned by ``default``."""

from __future__ import annotations

from dataclasses import replace

from pai_backend.model.node import Gpu, Node
from pai_backend.scheduling import Bound, Group, Ledger, Member, derive, read_config, to_yaml
from pai_backend.scheduling.config.derive import DEFAULT_VC


def node(name: str, *types: str, cpus: int = 8, memory_mb: int = 16_384) -> Node:
    gpus = tuple(Gpu(index=index, type=kind) for index, kind in enumerate(types))
    return Node(name=name, address="127.0.0.1", machine=name, cpus=cpus, memory_mb=memory_mb, gpus=gpus)


NODES = [
    node("b", "A100", "A100"),
    node("a", "A100", "A100", cpus=4),
    node("c", "T4"),
    node("m", "T4", "A100"),
    node("z"),
]


def test_one_chain_a_shape_and_all_of_it_default() -> None:
    config = derive(NODES)
    assert config.chains() == ("A100-NODE-1", "A100-NODE-2", "T4-NODE-1")
    assert [cell.address for cell in config.physical] == ["m", "a", "b", "c", "m"]
    quotas = config.virtual_clusters[DEFAULT_VC].quotas
    assert [(quota.type, quota.number) for quota in quotas] == [
        ("A100-NODE-1", 1),
        ("A100-NODE-2", 2),
        ("T4-NODE-1", 2),
    ]
    assert config.skus["A100"].cpu == 2


def test_the_order_of_nodes_does_not_matter() -> None:
    assert derive(NODES) == derive(list(reversed(NODES)))


def test_devices_keep_their_numbers() -> None:
    config = derive([node("m", "T4", "A100")])
    cluster = Ledger(config)
    answer = cluster.decide(Group("g", DEFAULT_VC, (Member(1, 1),), leaf_type="A100"))
    assert isinstance(answer, Bound)
    assert answer.placement.pods[0].cells == (1,)


def test_what_is_written_is_read_back_equal() -> None:
    config = derive(NODES)
    assert replace(read_config(to_yaml(config)), warnings=()) == config


def test_no_nodes_make_an_empty_configuration() -> None:
    config = derive([])
    assert config.chains() == ()
    assert config.virtual_clusters[DEFAULT_VC].quotas == ()
