"""First fit: gangs whole or not at all, each GPU once, and a reason that names what is missing."""

from hypothesis import given
from hypothesis import strategies as st

from pai_backend.model.ids import TaskUid
from pai_backend.model.node import Gpu, Node
from pai_backend.scheduling.base import Ask, Assignment, Bound, Wait, WaitCode
from pai_backend.scheduling.first_fit import FirstFit


def node(
    name: str, gpus: int = 1, kind: str = "TITANX", cpus: int = 4, memory_mb: int = 16384, ready: bool = True
) -> Node:
    return Node(
        name=name,
        address="127.0.0.1",
        machine="laptop",
        cpus=cpus,
        memory_mb=memory_mb,
        gpus=tuple(Gpu(index=index, type=kind) for index in range(gpus)),
        ready=ready,
        reason="" if ready else "its agent is silent",
    )


def ask(name: str, gpus: int = 1, kind: str | None = "TITANX", cpus: int = 1, memory_mb: int = 8192) -> Ask:
    return Ask(TaskUid(name), cpus, memory_mb, gpus, kind)


def lab() -> FirstFit:
    placer = FirstFit()
    for name in ("dan", "carol"):
        placer.set_node(node(name))
    return placer


def why(placer: FirstFit, *asks: Ask) -> Wait:
    found = placer.try_place(asks)
    assert isinstance(found, Wait)
    return found


def test_nodes_are_tried_in_name_order() -> None:
    assert lab().try_place([ask("a")]) == Bound({TaskUid("a"): Assignment("carol", (0,))})


def test_a_held_gpu_is_not_given_twice_and_comes_back_when_released() -> None:
    placer = lab()
    placer.hold(ask("a"), Assignment("carol", (0,)))
    assert placer.try_place([ask("b")]) == Bound({TaskUid("b"): Assignment("dan", (0,))})
    placer.release(TaskUid("a"))
    assert placer.try_place([ask("b")]) == Bound({TaskUid("b"): Assignment("carol", (0,))})


def test_a_gang_spreads_over_nodes_or_waits_as_a_whole() -> None:
    placer = lab()
    both = placer.try_place([ask("a"), ask("b")])
    assert isinstance(both, Bound)
    placer.hold(ask("x"), Assignment("dan", (0,)))
    wait = why(placer, ask("a"), ask("b"))
    assert wait.code is WaitCode.BUSY
    assert wait.message == (
        "waits for 1 TITANX GPU, 1 CPU and 8192 MiB of memory, for 2 tasks at once: what could serve it is in use"
    )


def test_a_gpu_type_nobody_has_is_named_with_those_there_are() -> None:
    assert why(lab(), ask("a", kind="P100")).message == "no node has a GPU of type P100; there is TITANX"


def test_a_cluster_without_gpus_says_so() -> None:
    placer = FirstFit()
    placer.set_node(node("laptop", gpus=0))
    assert why(placer, ask("a", kind=None)).message == "no node has a GPU; there is no GPU at all"


def test_a_task_no_node_could_ever_hold_is_told_the_sizes() -> None:
    wait = why(lab(), ask("a", memory_mb=99999))
    assert wait.code is WaitCode.TOO_BIG
    assert "carol has 1 GPU, 4 CPU, 16384 MiB" in wait.message


def test_a_gang_larger_than_the_cluster_is_told_so_though_all_is_free() -> None:
    wait = why(lab(), ask("a"), ask("b"), ask("c"))
    assert wait.code is WaitCode.TOO_BIG
    assert wait.message.startswith("3 tasks at once do not fit into the whole cluster: ")


def test_an_empty_cluster_and_a_node_that_is_not_ready_are_reasons_of_their_own() -> None:
    placer = FirstFit()
    assert why(placer, ask("a")).code is WaitCode.NO_NODES
    placer.set_node(node("carol", ready=False))
    assert why(placer, ask("a")).message == "node carol is not ready: its agent is silent"


def test_a_node_that_left_serves_nobody() -> None:
    placer = lab()
    placer.remove_node("carol")
    placer.remove_node("dan")
    assert why(placer, ask("a")).code is WaitCode.NO_NODES


@given(
    sizes=st.lists(st.integers(0, 4), min_size=1, max_size=4),
    gangs=st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), max_size=8),
)
def test_no_gpu_is_ever_held_twice_and_trying_changes_nothing(sizes: list[int], gangs: list[list[int]]) -> None:
    placer = FirstFit()
    for number, size in enumerate(sizes):
        placer.set_node(node(f"n{number}", gpus=size, cpus=64, memory_mb=10**6))
    held: list[tuple[str, int]] = []
    for number, gang in enumerate(gangs):
        asks = [ask(f"{number}-{index}", gpus=count, kind=None) for index, count in enumerate(gang)]
        found = placer.try_place(asks)
        assert found == placer.try_place(asks)
        if isinstance(found, Bound):
            for each in asks:
                place = found.assignments[each.uid]
                assert len(place.gpus) == each.gpus
                held.extend((place.node, index) for index in place.gpus)
                placer.hold(each, place)
    assert len(held) == len(set(held))
