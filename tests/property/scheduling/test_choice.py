"""What holds of the nodes that tasks without cells are given, whatever there is and whatever they ask for."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Gpu, Node
from pai_backend.scheduling.core.room import Room
from pai_backend.scheduling.jobs.deciding import choose
from pai_backend.scheduling.request import Need

SIZES = st.tuples(st.integers(0, 4), st.integers(0, 4))
HAS_GPUS = st.booleans()


def room_of(nodes: list[tuple[tuple[int, int], bool]]) -> Room:
    room = Room()
    for number, ((cpus, memory_mb), has_gpus) in enumerate(nodes):
        gpus = (Gpu(index=0, type="T"),) if has_gpus else ()
        name = f"n{number}"
        room.set_node(Node(name=name, address="a", machine=name, cpus=cpus, memory_mb=memory_mb, gpus=gpus, ready=True))
    return room


def holds(free: Sequence[int], need: Need) -> bool:
    """Whether there is as much as a task asks for; who asks for nothing needs nothing to be left."""
    return (free[0] >= need.cpus or not need.cpus) and (free[1] >= need.memory_mb or not need.memory_mb)


def fits_by_name(room: Room, needs: list[Need]) -> bool:
    """Whether all fit when each goes to the first node with room: without GPUs first, then by name."""
    left = {name: list(room.free(name)) for name in sorted(room.nodes, key=lambda n: (bool(room.nodes[n].gpus), n))}
    for need in needs:
        amounts = (need.cpus, need.memory_mb, need.gpus)
        free = next(
            (each for each in left.values() if all(n <= e or not n for n, e in zip(amounts, each, strict=True))), None
        )
        if free is None:
            return False
        free[:] = [e - n for n, e in zip(amounts, free, strict=True)]
    return True


@given(st.lists(st.tuples(SIZES, HAS_GPUS), max_size=4), st.lists(SIZES, min_size=1, max_size=6))
@settings(deadline=None)
def test_tasks_get_nodes_where_all_fit_whenever_first_fit_has_some(
    nodes: list[tuple[tuple[int, int], bool]], sizes: list[tuple[int, int]]
) -> None:
    room = room_of(nodes)
    needs = [Need(TaskUid(f"t{number}"), *size) for number, size in enumerate(sizes)]
    found = choose(room, needs, lambda node, need: True)
    if isinstance(found, Need):
        assert not fits_by_name(room, needs)
        return
    for need in needs:
        assert holds(room.free(found[need.uid]), need), "a node is overdrawn"
        room.hold(need, found[need.uid])
