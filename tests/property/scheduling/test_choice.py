"""What holds of the nodes that tasks without cells are given, whatever there is and whatever they ask for."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Gpu, Node
from pai_backend.scheduling.jobs.choice import choose
from pai_backend.scheduling.jobs.demand import Ask
from pai_backend.scheduling.jobs.linear import Room

SIZES = st.tuples(st.integers(0, 4), st.integers(0, 4))
HAS_GPUS = st.booleans()


def room_of(nodes: list[tuple[tuple[int, int], bool]]) -> Room:
    room = Room()
    for number, ((cpus, memory_mb), has_gpus) in enumerate(nodes):
        gpus = (Gpu(index=0, type="T"),) if has_gpus else ()
        name = f"n{number}"
        room.set_node(Node(name=name, address="a", machine=name, cpus=cpus, memory_mb=memory_mb, gpus=gpus, ready=True))
    return room


def holds(free: Sequence[int], ask: Ask) -> bool:
    """Whether there is as much as a task asks for; who asks for nothing needs nothing to be left."""
    return (free[0] >= ask.cpus or not ask.cpus) and (free[1] >= ask.memory_mb or not ask.memory_mb)


def fits_by_name(room: Room, asks: list[Ask]) -> bool:
    """Whether all fit when each goes to the first node with room: without GPUs first, then by name."""
    left = {name: list(room.free(name)) for name in sorted(room.nodes, key=lambda n: (bool(room.nodes[n].gpus), n))}
    for ask in asks:
        needs = (ask.cpus, ask.memory_mb)
        free = next(
            (each for each in left.values() if all(n <= e or not n for n, e in zip(needs, each, strict=True))), None
        )
        if free is None:
            return False
        free[:] = [e - n for n, e in zip(needs, free, strict=True)]
    return True


@given(st.lists(st.tuples(SIZES, HAS_GPUS), max_size=4), st.lists(SIZES, min_size=1, max_size=6))
@settings(deadline=None)
def test_tasks_get_nodes_where_all_fit_whenever_first_fit_has_some(
    nodes: list[tuple[tuple[int, int], bool]], sizes: list[tuple[int, int]]
) -> None:
    room = room_of(nodes)
    asks = [Ask(TaskUid(f"t{number}"), *size) for number, size in enumerate(sizes)]
    found = choose(room, asks, lambda node, ask: True)
    if isinstance(found, Ask):
        assert not fits_by_name(room, asks)
        return
    for ask in asks:
        assert holds(room.free(found[ask.uid]), ask), "a node is overdrawn"
        room.hold(ask, found[ask.uid])
