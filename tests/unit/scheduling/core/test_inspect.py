"""Trees and groups as HiveD's inspect API shows them."""

from __future__ import annotations

import json

import pytest

from pai_backend.scheduling import cluster_status, group_status, physical_status, virtual_status
from tests.unit.scheduling.core.clusters import POOL, RACKS, cluster, group, place, preempt


def find(status: object, address: str) -> dict[str, object]:
    """The cell of that address."""
    stack = [status]
    while stack:
        at = stack.pop()
        if isinstance(at, list):
            stack.extend(at)
        elif isinstance(at, dict):
            if at.get("cellAddress") == address:
                return at
            stack.append(at.get("cellChildren", []))
    raise KeyError(address)


def test_physical_cells_show_state_health_priority_and_owner() -> None:
    racks = cluster(RACKS)
    place(racks, group("job", "a", (1, 3)))
    racks.set_node_health("n4", healthy=True, bad_devices=[7])
    trees = physical_status(racks)
    node = find(trees, "0/n0")
    assert node["isNodeLevel"] is True
    assert (node["cellState"], node["cellHealthiness"], node["cellPriority"], node["vc"]) == (
        "Used",
        "Healthy",
        10,
        "a",
    )
    assert node["virtualCell"] == {"cellType": "NODE", "cellAddress": "a/0"}
    assert find(trees, "0/n0/0/0/1")["cellState"] == "Used"
    assert find(trees, "0/n0/1")["cellState"] == "Free"
    assert find(trees, "2/n4/1/3/7")["cellHealthiness"] == "Bad"
    assert find(trees, "2")["cellHealthiness"] == "Bad"
    assert find(trees, "1")["cellPriority"] == -2
    assert [tree["leafCellType"] for tree in trees] == ["GPU"] * 3


def test_virtual_cells_show_where_they_stand() -> None:
    racks = cluster(RACKS)
    place(racks, group("job", "a", (1, 3)))
    place(racks, group("extra", "a", (1, 1), priority=-1))
    trees = virtual_status(racks, "a")
    root = find(trees, "a/0")
    assert root["physicalCell"] == {"cellType": "NODE", "cellAddress": "0/n0"}
    assert (root["cellState"], root["cellPriority"]) == ("Used", 10)
    assert find(trees, "a/0/0/1/0")["physicalCell"] == {"cellType": "GPU", "cellAddress": "0/n0/0/1/2"}
    assert find(trees, "a/1")["cellState"] == "Free"
    extra = [tree for tree in trees if str(tree["cellAddress"]).endswith("-opp")]
    assert [tree["cellPriority"] for tree in extra] == [-1]
    assert virtual_status(racks, "b")[0]["cellAddress"] == "b/0"


def test_reserving_and_reserved() -> None:
    pool = cluster(POOL)
    place(pool, group("low", "a", (3, 4), priority=0))
    preempt(pool, group("high", "a", (1, 4)))
    states = {str(find(physical_status(pool), f"0/n{number}")["cellState"]) for number in range(4)}
    assert states == {"Used", "Reserving", "Free"}
    pool.release("low")
    assert "Reserved" in {str(find(physical_status(pool), f"0/n{number}")["cellState"]) for number in range(4)}


def test_groups() -> None:
    pool = cluster(POOL)
    place(pool, group("job", "a", (2, 3)))
    status = group_status(pool.groups["job"])
    assert status == {
        "metadata": {"name": "job"},
        "status": {
            "vc": "a",
            "priority": 10,
            "state": "Allocated",
            "physicalPlacement": {"n0": [0, 1, 2], "n3": [0, 1, 2]},
            "virtualPlacement": {"a/0": ["a/0/0", "a/0/1", "a/0/2"], "a/1": ["a/1/0", "a/1/1", "a/1/2"]},
            "lazyPreemptionStatus": None,
        },
    }


def test_the_whole_is_plain_json_and_making_it_changes_nothing() -> None:
    racks = cluster(RACKS)
    place(racks, group("job", "a", (3, 8)))
    cells = len(racks.chains["RACK"].cells)
    status = cluster_status(racks)
    assert json.loads(json.dumps(status)) == status
    assert set(status) == {"physicalCluster", "virtualClusters"}
    assert len(racks.chains["RACK"].cells) == cells


def test_an_unknown_virtual_cluster_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        virtual_status(cluster(POOL), "nobody")
