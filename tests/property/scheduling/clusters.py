"""Random small clusters and requests, and a picture of a cluster's whole state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from pai_backend.scheduling import ClusterConfig, Group, Ledger, Member
from pai_backend.scheduling.cells.ranking import Ranking
from pai_backend.scheduling.cells.tree import Held
from pai_backend.scheduling.config.document import Faults
from pai_backend.scheduling.config.model import CellSpec, CellType, Quota, VirtualCluster
from pai_backend.scheduling.config.types import check_safety

VCS = ("a", "b")


@st.composite
def crowded(draw: st.DrawFn) -> ClusterConfig:
    """A few nodes that nearly all belong to one virtual cluster: groups soon get in each other's way."""
    types: dict[str, CellType] = {}
    top = _define(types, "x", draw(st.sampled_from([(4,), (2, 2)])), racks=False)
    count = draw(st.integers(2, 3))
    cells = tuple(_grow(types, top, "x", number) for number in range(count))
    more = draw(st.integers(0, 1))
    owned = {
        "a": VirtualCluster("a", (Quota(top, top, count - more),)),
        "b": VirtualCluster("b", (Quota(top, top, more),)),
    }
    return ClusterConfig(types, cells, owned)


def configs(*, most_nodes: int = 4) -> st.SearchStrategy[ClusterConfig]:
    """Crowded clusters, and clusters with much variety."""
    return st.one_of(crowded(), varied(most_nodes))


@st.composite
def varied(draw: st.DrawFn, most_nodes: int) -> ClusterConfig:
    """One or two chains of small nodes, in racks or not, and quotas that fit."""
    types: dict[str, CellType] = {}
    cells: list[CellSpec] = []
    for chain in draw(st.sampled_from(["x", "xy"])):
        inner = draw(st.sampled_from([(2,), (4,), (2, 2), (3,)]))
        racks = draw(st.booleans())
        count = draw(st.integers(2, most_nodes))
        top = _define(types, chain, inner, racks)
        for number in range(count if not racks else (count + 1) // 2):
            cells.append(_grow(types, top, chain, number, draw(st.sampled_from(["", "", "", f"pin-{chain}-{number}"]))))
    levels = {chain: ClusterConfig(types, tuple(cells), {}).levels(chain) for chain in {cell.type for cell in cells}}
    pins = [cell.pinned_id for cell in cells if cell.pinned_id]
    owned = {vc: VirtualCluster(vc, (), tuple(pins[number::2])) for number, vc in enumerate(VCS)}
    for vc in VCS:
        for chain in sorted(levels):
            for kind in draw(st.lists(st.sampled_from(levels[chain]), min_size=vc == "a", max_size=2, unique=True)):
                quota = Quota(chain, kind, draw(st.integers(1, 3)))
                more = owned | {vc: VirtualCluster(vc, (*owned[vc].quotas, quota), owned[vc].pinned)}
                if is_sound(ClusterConfig(types, tuple(cells), more)):
                    owned = more
    return ClusterConfig(types, tuple(cells), owned)


def is_sound(config: ClusterConfig) -> bool:
    """Whether the quotas can be carved out of the cells."""
    faults = Faults()
    check_safety(config, None, faults)
    return not faults.errors


def _define(types: dict[str, CellType], chain: str, inner: tuple[int, ...], racks: bool) -> str:
    below = f"{chain}-gpu"
    for depth, count in enumerate(reversed(inner)):
        name = f"{chain}-node" if depth == len(inner) - 1 else f"{chain}-switch"
        types[name] = CellType(name, below, count, is_node=depth == len(inner) - 1)
        below = name
    if racks:
        types[f"{chain}-rack"] = CellType(f"{chain}-rack", below, 2)
        below = f"{chain}-rack"
    return below


def _grow(types: dict[str, CellType], kind: str, path: str, number: int, pin: str = "") -> CellSpec:
    """A cell with unique node names and leaves numbered within their node."""
    spec = types.get(kind)
    if spec is None:
        return CellSpec(kind, str(number))
    here = f"{path}{number}"
    start = 0 if spec.is_node else number * spec.count
    children = tuple(_grow(types, spec.child, here, start + index) for index in range(spec.count))
    address = here if spec.is_node else str(number)
    return CellSpec(kind, address, pin, children)


@st.composite
def groups(draw: st.DrawFn, config: ClusterConfig, name: str, *, lazy: bool = True, elastic: bool = True) -> Group:
    """A request that may or may not be right."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=2))
    members = []
    for size in sizes:
        pods = draw(st.integers(1, 3))
        least = draw(st.sampled_from([None, None, max(1, pods - 1)])) if elastic else None
        members.append(Member(pods, size, least))
    vc = draw(st.sampled_from([*VCS, "a"]))
    pinned = config.virtual_clusters[vc].pinned
    priority = draw(st.sampled_from([-1, 0, 10, 10, 100]))
    pin = draw(st.sampled_from(["", "", *pinned])) if priority >= 0 else ""
    kinds = ["", "", *sorted({config.levels(chain)[0] for chain in config.chains()})]
    within = sorted({kind for chain in config.chains() for kind in config.levels(chain)[1:]})
    return Group(
        name,
        vc,
        tuple(members),
        priority,
        draw(st.sampled_from(kinds)),
        pin,
        draw(st.booleans()) if lazy else False,
        draw(st.sampled_from(["", "", "", *within])) if elastic else "",
    )


def fingerprint(cluster: Ledger) -> tuple[object, ...]:
    """Everything a decision may depend on, as plain values; the version last."""
    for ranking in _rankings(cluster):
        ranking.settle()
    chains = [
        (
            [[cell.address for cell in cells] for cells in chain.buddy.lists],
            list(chain.buddy.left),
            [[cell.address for cell in cells] for cells in chain.buddy.bad],
            [
                (
                    node.name,
                    node.guaranteed,
                    node.oppo,
                    node.reserved,
                    node.broken,
                    _masks(node.running),
                    [unit.address for unit in node.units],
                )
                for node in chain.nodes
            ],
            [node.name for node in chain.ranking.everything()],
        )
        for chain in cluster.chains.values()
    ]
    quotas = [
        (
            [(unit.address, str(unit.physical), unit.used, _masks(unit.owners)) for unit in each.ranking.everything()],
            [root.address for root in each.doomed],
        )
        for each in (*cluster.quotas.values(), *cluster.pinned.values())
    ]
    held = sorted(
        (name, each.state, each.displaced_by, each.serial, sorted(other.group.name for other in each.pursuers))
        for name, each in cluster.groups.items()
    )
    return chains, quotas, held, cluster.version


def _masks(holders: Mapping[Held, int]) -> list[tuple[str, int]]:
    return sorted((held.group.name, mask) for held, mask in holders.items())


def _rankings(cluster: Ledger) -> list[Ranking[Any]]:
    found: list[Ranking[Any]] = [chain.ranking for chain in cluster.chains.values()]
    return found + [quotas.ranking for quotas in (*cluster.quotas.values(), *cluster.pinned.values())]
