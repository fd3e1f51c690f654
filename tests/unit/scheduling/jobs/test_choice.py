"""Which nodes tasks without cells go to, one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pai_backend.model.ids import TaskUid
from pai_backend.model.labels import Effect, Taint
from pai_backend.model.node import Gpu, Node
from pai_backend.scheduling.core.room import Room
from pai_backend.scheduling.jobs.deciding import choose
from pai_backend.scheduling.request import Need

GPUS = (Gpu(index=0, type="V100"),)
AVOIDED = (Taint(key="k", value="", effect=Effect.PREFER_NO_SCHEDULE),)


def node(name: str, cpus: int = 8, gpus: tuple[Gpu, ...] = (), taints: tuple[Taint, ...] = ()) -> Node:
    return Node(
        name=name, address="10.0.0.1", machine=name, cpus=cpus, memory_mb=10_000, gpus=gpus, taints=taints, ready=True
    )


def room_of(*nodes: Node) -> Room:
    room = Room()
    for each in nodes:
        room.set_node(each)
    return room


def tasks(*cpus: int, memory_mb: int = 100) -> list[Need]:
    return [Need(TaskUid(f"t{number}"), each, memory_mb) for number, each in enumerate(cpus)]


def one_by_one(room: Room, needs: Iterable[Need]) -> list[str]:
    """Where tasks of different jobs go, each of which stays."""
    found = []
    for need in needs:
        places = choose(room, [need], lambda node, need: True)
        assert not isinstance(places, Need)
        room.hold(need, places[need.uid])
        found.append(places[need.uid])
    return found


def together(room: Room, needs: list[Need]) -> list[str] | Need:
    """Where the tasks of one job go."""
    places = choose(room, needs, lambda node, need: True)
    return places if isinstance(places, Need) else [places[need.uid] for need in needs]


def test_jobs_that_come_together_are_spread_over_nodes_without_gpus() -> None:
    assert Counter(one_by_one(room_of(node("a"), node("b")), tasks(*[0] * 20))) == {"a": 10, "b": 10}


def test_tasks_of_a_job_are_spread_over_nodes_without_gpus() -> None:
    assert together(room_of(node("a"), node("b"), node("c")), tasks(1, 1, 1, 1)) == ["a", "b", "c", "a"]


def test_a_larger_node_takes_more_of_them() -> None:
    assert Counter(one_by_one(room_of(node("a", cpus=4), node("b", cpus=12)), tasks(*[1] * 8))) == {"a": 2, "b": 6}


def test_what_is_scarcer_on_a_node_tells_how_full_it_is() -> None:
    room = room_of(node("a"), node("b"))
    room.hold(Need(TaskUid("much memory"), 0, 9000), "a")
    room.hold(Need(TaskUid("some processors"), 4, 0), "b")
    assert one_by_one(room, tasks(1)) == ["b"]


def test_nodes_with_gpus_come_after_all_others_and_fill_up_by_name() -> None:
    room = room_of(node("a", gpus=GPUS), node("b", gpus=GPUS), node("c", cpus=2))
    assert one_by_one(room, tasks(2, 4, 4, 4)) == ["c", "a", "a", "b"]


def test_nodes_that_are_rather_avoided_come_last() -> None:
    room = room_of(node("a", taints=AVOIDED), node("b", gpus=GPUS, cpus=1))
    assert one_by_one(room, tasks(1, 1)) == ["b", "a"]


def test_a_job_that_fits_only_when_its_small_tasks_are_packed_is_packed() -> None:
    assert together(room_of(node("a"), node("b")), tasks(1, 1, 8)) == ["a", "a", "b"]


def test_the_first_task_that_fits_nowhere_is_told() -> None:
    needs = tasks(1, 9)
    assert together(room_of(node("a"), node("b")), needs) == needs[1]


def test_a_node_that_is_not_allowed_to_a_task_is_left_to_the_others() -> None:
    needs = tasks(1, 1)
    found = choose(room_of(node("a"), node("b")), needs, lambda node, need: need is needs[1] or node.name == "b")
    assert found == {needs[0].uid: "b", needs[1].uid: "a"}
