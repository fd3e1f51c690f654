"""Gates of gangs: taken off all pods at once when a gang is whole and has room, and off none before."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

import pytest

from pai_backend.engine.kubernetes import gangs, naming
from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.client import Ask
from pai_backend.engine.kubernetes.cluster_time import ClusterTime
from pai_backend.engine.kubernetes.failures import refusal
from pai_backend.engine.kubernetes.gangs import Gangs
from pai_backend.engine.kubernetes.marks import Marks
from pai_backend.engine.kubernetes.objects import Object, slim_pod
from pai_backend.engine.kubernetes.pod_requests import HELD, Requests, requests_of
from pai_backend.engine.kubernetes.pods.owner import PodOwner
from pai_backend.engine.kubernetes.pods.pod import build_pod
from pai_backend.engine.kubernetes.status.waits import GateTrouble
from pai_backend.model.ids import TaskUid
from pai_backend.model.job import TaskExit
from pai_backend.model.pod_settings import PodSettings

from .pods.conftest import MakePlan, make_plan, owner, settings

__all__ = ["make_plan", "owner", "settings"]

pytestmark = pytest.mark.asyncio

NODES = ("carol", "dan", "erin")
ENDED = datetime(2026, 11, 21, 20, 0, 0, tzinfo=UTC)


class Server:
    """Takes gates off, and remembers of which pods."""

    time = ClusterTime()

    def __init__(self) -> None:
        self.patched: list[str] = []
        self.refuses: set[str] = set()
        self.refusal = (403, "Forbidden")
        self.gone: set[str] = set()

    async def send(self, ask: Ask) -> bytes:
        name = PurePosixPath(ask.request.path).name
        assert ask.method == "PATCH"
        assert isinstance(ask.body, dict)
        assert ask.body["spec"] == {"schedulingGates": [{"name": "jupyter-pai/gang", "$patch": "delete"}]}
        assert ask.body["metadata"]["uid"], "no other pod of that name is changed"
        if name in self.refuses | self.gone:
            status, reason = self.refusal if name in self.refuses else (404, "NotFound")
            body = json.dumps({"kind": "Status", "reason": reason, "message": "a rule says no"}).encode()
            raise refusal(ask.request, status, body, None, ENDED)
        self.patched.append(name)
        return b"{}"

    def stream(self, ask: Ask) -> Any:
        raise AssertionError("nothing is watched here")

    async def renew_credentials(self) -> bool:
        return False


class World:
    """A gang of three, one task on each node, as a mirror has its pods."""

    def __init__(self, make_plan: MakePlan, owner: PodOwner, settings: PodSettings) -> None:
        self.server, self.full = Server(), set[str]()
        self.asked: list[tuple[str, Requests]] = []
        self._plans = {
            uid: make_plan(
                uid=uid,
                gang=3,
                job_tasks=3,
                index=number,
                placement=make_plan().placement.model_copy(update={"node": NODES[number]}),
            )
            for number, uid in enumerate(TaskUid(f"j0123456789abcdef-0-{number}-1") for number in range(3))
        }
        self._owner, self._settings = owner, settings
        self.uids = tuple(self._plans)
        self.began = self.begin()

    def begin(self) -> Gangs:
        """What a new process knows: nothing."""
        self.woken = asyncio.Event()
        self.began = Gangs(Calls(self.server), self._lacks, self.woken.set)
        return self.began

    def _lacks(self, node: str, wanted: Requests) -> str:
        self.asked.append((node, wanted))
        return f"{node} is full" if node in self.full else ""

    def pod(self, number: int, *, gated: bool = True, life: int = 0) -> Object:
        made = json.loads(json.dumps(build_pod(self._plans[self.uids[number]], self._owner, self._settings)))
        made["metadata"] |= {"uid": f"pod-{number}-{life}", "resourceVersion": "1"}
        if not gated:
            del made["spec"]["schedulingGates"]
        held = requests_of(made)
        return {**slim_pod(made), HELD: held}

    def see(self, *numbers: int, gated: bool = True) -> None:
        for number in numbers:
            self.began.note(self.uids[number], self.pod(number, gated=gated), gone=False)

    async def settled(self) -> set[TaskUid]:
        """Advance until nothing is under way; the tasks to be read again."""
        changed = self.began.advance()
        for _ in range(20):
            await asyncio.sleep(0)
        return changed

    def waits(self, number: int) -> tuple[str, GateTrouble | None]:
        wait = self.began.wait_of(self.uids[number], self.pod(number))
        assert wait is not None
        return wait.message, wait.trouble


@pytest.fixture
def world(make_plan: MakePlan, owner: PodOwner, settings: PodSettings) -> World:
    return World(make_plan, owner, settings)


async def test_none_is_opened_before_all_are_made(world: World) -> None:
    world.see(0, 1)
    await world.settled()
    assert world.server.patched == []
    assert world.waits(0) == ("waits until the pods of all 3 tasks that start with it are made", None)
    world.see(2)
    await world.settled()
    assert sorted(world.server.patched) == list(world.uids)


async def test_each_node_is_asked_for_the_room_of_all_that_go_there_and_each_gate_is_taken_off_once(
    world: World,
) -> None:
    world.see(0, 1, 2)
    await world.settled()
    assert sorted(node for node, _ in world.asked) == sorted(NODES)
    assert world.asked[0][1]["nvidia.com/gpu"] == Decimal(2)
    world.see(0, 1, 2)  # the mirror is behind
    await world.settled()
    assert len(world.server.patched) == 3
    assert world.began.wait_of(world.uids[0], world.pod(0)) is None


async def test_tasks_that_share_a_node_must_have_room_there_together(world: World) -> None:
    for number in range(3):
        pod = world.pod(number)
        pod["metadata"]["annotations"][naming.NODE] = "carol" if number < 2 else "dan"
        world.began.note(world.uids[number], pod, gone=False)
    await world.settled()
    assert {node: wanted["nvidia.com/gpu"] for node, wanted in world.asked} == {"carol": 4, "dan": 2}


async def test_where_one_node_has_no_room_all_wait_until_it_has(world: World) -> None:
    world.full = {"dan"}
    world.see(0, 1, 2)
    assert await world.settled() == set(world.uids)
    assert world.server.patched == []
    assert world.waits(1) == ("dan is full", GateTrouble.ROOM)
    assert world.waits(0) == ("waits for the tasks that start with it", None)
    assert await world.settled() == set(), "nothing new"
    world.full = set()
    await world.settled()
    assert sorted(world.server.patched) == list(world.uids)


@pytest.mark.parametrize(
    "about",
    [
        {"deletionTimestamp": "2026-11-21T20:00:00Z"},
        {"annotations": {naming.GANG: "3", naming.STOP: "2026-11-21T20:00:00Z"}},
        {"annotations": {naming.GANG: "3", naming.VERDICT: "{}"}},
    ],
)
async def test_one_that_is_asked_to_end_keeps_the_others(world: World, about: dict[str, object]) -> None:
    world.see(0, 1)
    leaving = world.pod(2)
    leaving["metadata"] |= about
    world.began.note(world.uids[2], leaving, gone=False)
    await world.settled()
    assert world.server.patched == []


async def test_a_gang_that_is_being_given_back_is_not_opened(world: World) -> None:
    world.full = {"dan"}
    world.see(0, 1, 2)
    await world.settled()
    world.began.give_up(world.pod(1))
    world.full = set()
    await world.settled()
    assert world.server.patched == []
    assert world.waits(1)[1] is GateTrouble.ROOM, "so that it is tried again"


async def test_a_pod_that_is_gone_before_it_was_opened_keeps_the_others(world: World) -> None:
    world.see(0, 1, 2)
    world.began.note(world.uids[2], world.pod(2), gone=True)
    await world.settled()
    assert world.server.patched == []
    world.began.note(world.uids[2], world.pod(2, life=1), gone=False)
    await world.settled()
    assert len(world.server.patched) == 3


async def test_a_pod_that_is_made_again_is_opened_again(world: World) -> None:
    """Another client may have removed the first one while its gate was taken off."""
    world.see(0, 1, 2)
    await world.settled()
    world.began.note(world.uids[2], world.pod(2, gated=False), gone=True)
    world.began.note(world.uids[2], world.pod(2, life=1), gone=False)
    await world.settled()
    assert world.server.patched[3:] == [world.uids[2]]


class TestAfterACrash:
    """Another process finds what is there."""

    async def test_it_opens_a_gang_that_is_whole(self, world: World) -> None:
        world.begin()
        world.see(0, 1, 2)
        await world.settled()
        assert len(world.server.patched) == 3

    async def test_the_rest_is_opened_where_the_last_process_was_killed_in_between(self, world: World) -> None:
        world.see(0, gated=False)
        world.see(1, 2)
        await world.settled()
        assert world.server.patched == list(world.uids[1:])

    async def test_the_rest_waits_a_short_time_for_room_since_the_others_hold_theirs(self, world: World) -> None:
        world.full = {"erin"}
        world.see(0, gated=False)
        world.see(1, 2)
        await world.settled()
        assert world.server.patched == []
        assert world.waits(2) == ("erin is full", GateTrouble.HALF)

    async def test_pods_that_an_earlier_version_made_without_gates_count(self, world: World) -> None:
        for number in (0, 1):
            old = world.pod(number, gated=False)
            del old["metadata"]["annotations"][naming.GANG]
            world.began.note(world.uids[number], old, gone=False)
        await world.settled()
        world.see(2)
        await world.settled()
        assert world.server.patched == [world.uids[2]]

    @pytest.mark.parametrize(
        ("exit_", "opened"),
        [
            (TaskExit(code=0, at=ENDED), True),
            (TaskExit(signal=9, reason="signalled", at=ENDED), True),
            (TaskExit(reason="refused", at=ENDED), False),
            (TaskExit(reason="stopped", at=ENDED), False),
            (None, False),
        ],
    )
    async def test_one_that_has_run_and_is_forgotten_counts(
        self, world: World, exit_: TaskExit | None, opened: bool
    ) -> None:
        world.see(1, 2)
        owner = ("j0123456789abcdef-a1", "0f7d2b3c")
        forgotten = Marks(world.uids[0], forgotten=ENDED, owner=owner, namespace="team", exit=exit_)
        stranger = Marks(TaskUid("j0123456789abcdee-0-0-0"), forgotten=ENDED, namespace="team")
        world.began.settle([forgotten, stranger])
        await world.settled()
        assert bool(world.server.patched) is opened


@pytest.mark.parametrize("refusal", [(403, "Forbidden"), (409, "Conflict")])
async def test_a_gate_that_the_cluster_keeps_is_tried_again_and_told(
    world: World, monkeypatch: pytest.MonkeyPatch, refusal: tuple[int, str]
) -> None:
    """A rule of the cluster, or another client that changes the pod all the time."""
    monkeypatch.setattr(gangs, "AGAIN_S", 0.01)
    world.server.refusal = refusal
    world.server.refuses = {world.uids[1]}
    world.see(0, 1, 2)
    await world.settled()
    assert sorted(world.server.patched) == [world.uids[0], world.uids[2]]
    message, trouble = world.waits(1)
    assert trouble is GateTrouble.SPLIT, "the others have begun"
    assert "a rule says no" in message
    assert world.woken.is_set()
    assert await world.settled() == {world.uids[1]}, "it is read again"
    assert await world.settled() == set()
    world.server.refuses = set()
    async with asyncio.timeout(10):
        while len(world.server.patched) < 3:
            world.began.advance()
            await asyncio.sleep(0.01)
    assert world.server.patched[2:] == [world.uids[1]]


async def test_where_the_cluster_keeps_all_gates_no_pod_has_begun(world: World) -> None:
    world.server.refuses = set(world.uids)
    world.see(0, 1, 2)
    await world.settled()
    assert world.waits(1)[1] is GateTrouble.KEPT
    await world.began.aclose()


async def test_a_pod_that_is_gone_meanwhile_holds_up_nothing(world: World) -> None:
    world.server.gone = {world.uids[1]}
    world.see(0, 1, 2)
    await world.settled()
    assert sorted(world.server.patched) == [world.uids[0], world.uids[2]]
    assert world.began.wait_of(world.uids[1], world.pod(1)) is None


async def test_pods_of_a_cluster_that_knows_no_gates_are_left_alone(world: World) -> None:
    world.see(0, 1, 2, gated=False)
    await world.settled()
    assert (world.server.patched, world.asked) == ([], [])


async def test_a_task_that_starts_by_itself_is_none_of_a_gang(
    make_plan: MakePlan, owner: PodOwner, settings: PodSettings, world: World
) -> None:
    pod = {**slim_pod(build_pod(make_plan(job_tasks=3), owner, settings)), HELD: {}}
    pod["metadata"]["uid"] = "alone"
    world.began.note(make_plan().uid, pod, gone=False)
    await world.settled()
    assert world.began.wait_of(make_plan().uid, pod) is None


async def test_what_is_under_way_ends_with_the_watch(world: World) -> None:
    world.server.refuses = set(world.uids)
    world.see(0, 1, 2)
    await world.settled()
    await world.began.aclose()
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
