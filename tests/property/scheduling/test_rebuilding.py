"""A restart changes nothing: what is rebuilt from stored jobs is what was there before, at whatever instant."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from pai_backend.lifecycle.events import (
    Displaced,
    JobEvent,
    Placed,
    Preempted,
    TaskExited,
    TaskForgotten,
    TaskRunning,
    Waiting,
)
from pai_backend.lifecycle.step import stepped, to_place
from pai_backend.model.ids import JobUid
from pai_backend.model.job import Job, Phase, TaskExit
from pai_backend.model.node import Gpu, Node
from pai_backend.model.spec import PriorityClass
from pai_backend.scheduling.config.read import read_config
from pai_backend.scheduling.core.inspect import physical_status
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.queue import Patience, Policy
from pai_backend.testing.builders import T0, make_job, make_role, make_spec, make_uid
from tests.property.scheduling.test_ledger import state_of
from tests.property.scheduling.test_queue_machine import memory
from tests.support.cell_laws import audit
from tests.support.job_queue import placed

CONFIG = read_config("""
physicalCluster:
  skuTypes: {GPU: {gpu: 1, cpu: 2, memory: 4096Mi}}
  cellTypes:
    NODE: {childCellType: GPU, childCellNumber: 2, isNodeLevel: true}
    POOL: {childCellType: NODE, childCellNumber: 3}
  physicalCells:
    - {cellType: POOL, cellChildren: [{cellAddress: n0}, {cellAddress: n1}, {cellAddress: n2}]}
virtualClusters:
  a: {virtualCells: [{cellType: POOL.NODE, cellNumber: 2}]}
  b: {virtualCells: [{cellType: POOL.NODE, cellNumber: 1}]}
""")
NODES = [
    Node(
        name=f"n{number}",
        address="127.0.0.1",
        machine="laptop",
        cpus=8,
        memory_mb=16384,
        gpus=tuple(Gpu(index=index, type="GPU") for index in range(2)),
    )
    for number in range(3)
]


POLICY = Policy(patience=Patience(overtaken=1000))
"""Cells that are kept for who has waited long are no part of what is stored."""


def placer() -> Placer:
    made = Placer(CONFIG, policy=POLICY)
    for node in NODES:
        made.set_node(node)
    return made


@dataclass
class World:
    """Jobs as they are stored, and the placer that knows them."""

    placer: Placer = field(default_factory=placer)
    jobs: dict[JobUid, Job] = field(default_factory=dict)

    def submit(self, vc: str, priority: PriorityClass | None, tasks: int, gpus: int, *, gang: bool, lazy: bool) -> None:
        uid = make_uid(len(self.jobs) + 1)
        spec = make_spec(
            roles=[make_role(instances=tasks, gpus=gpus, cpus=gpus)],
            virtual_cluster=vc,
            priority=priority,
            gang=gang,
            lazy=lazy,
        )
        at = T0 + timedelta(seconds=len(self.jobs))
        self.jobs[uid] = make_job(f"job{len(self.jobs)}", uid=uid, spec=spec, submitted_at=at)

    def tell(self, uid: JobUid, event: JobEvent) -> None:
        job = stepped(self.jobs[uid], event, T0)
        self.jobs[uid] = job
        self.placer.keep_only(uid, job.tasks)

    def place(self) -> None:
        """What the controller does with passes of the queue; each decision is written at once."""
        now = T0 + timedelta(days=1)
        self.placer.catch_up()
        for job in self.jobs.values():
            self.placer.wait(job, to_place(job, now))
        more = True
        while more:
            before = self.remembered()
            decided = self.placer.queue.decide(T0)
            assert self.remembered() == before, "deciding left a trace"
            assert self.placer.queue.decide(T0) == decided, "the same question had another answer"
            found = self.placer.advance(T0)
            self.tell_claims()
            for unit in found.started:
                places = self.placer.places(unit)
                self.placer.written(unit)
                self.tell(unit.job, Placed(places))
            for unit in found.kept:
                self.placer.written(unit)
            for uid in self.jobs:
                self.tell_reserved(uid)
            more = found.more

    def remembered(self) -> tuple[object, ...]:
        """All that a decision may depend on."""
        room = self.placer.room
        held = {uid: room.held_by(uid) for uid in self.jobs}
        free = {name: room.free(name) for name in room.nodes}
        return memory(self.placer.queue), state_of(self.placer.ledger), held, free, set(room.nowhere)

    def tell_reserved(self, uid: JobUid) -> None:
        """Write the places that are kept for a job."""
        if self.placer.waiting(uid):
            kept = self.placer.reserved(uid)
            self.tell(uid, Waiting("waits", kept))

    def tell_claims(self) -> None:
        """Who loses a claim is written before what takes its place."""
        for claim in self.placer.take_changed_claims():
            self.tell(claim.job, Displaced(claim.uids, claim.displaced))

    def notify(self) -> None:
        self.tell_claims()
        for each in self.placer.preemptions():
            self.tell(each.job, Preempted(each.uids, each.by, each.priority))

    def end(self, number: int) -> None:
        """The tasks of one job start to run, then all that is asked to, or the first, ends."""
        uid = sorted(self.jobs)[number % len(self.jobs)]
        for task in self.jobs[uid].tasks:
            if task.phase is Phase.STARTING:
                self.tell(uid, TaskRunning(task.uid, T0))
        for task in self.jobs[uid].tasks:
            if task.phase in (Phase.RUNNING, Phase.STOPPING):
                stopped = task.phase is Phase.STOPPING
                exit_ = TaskExit(code=None if stopped else 0, reason="stopped" if stopped else "exited", at=T0)
                self.tell(uid, TaskExited(task.uid, exit_))
                self.tell(uid, TaskForgotten(task.uid))
                break

    def rebuilt(self) -> Placer:
        fresh = placer()
        fresh.recover(job for job in self.jobs.values() if not job.state.final)
        fresh.catch_up()
        return fresh


def picture(of: Placer) -> object:
    """Everything that counts: who has what and how, what is free, who must make way for whom."""
    groups = {
        name: (held.state, bool(held.displaced_by), sorted((spot.node.name, spot.mask) for spot in held.spots))
        for name, held in of.ledger.groups.items()
    }
    cells = [_without_virtual_names(cell) for cell in physical_status(of.ledger)]
    room = {node.name: of.room.free(node.name) for node in NODES}
    return groups, cells, room, sorted((each.job, each.by) for each in of.preemptions())


def _without_virtual_names(cell: object) -> object:
    """Which of a virtual cluster's equal cells stands where is nobody's business."""
    if not isinstance(cell, dict):
        return cell
    children = cell.get("cellChildren", [])
    kept = {key: value for key, value in cell.items() if key not in ("virtualCell", "cellChildren")}
    return {**kept, "bound": "virtualCell" in cell, "children": [_without_virtual_names(each) for each in children]}


submissions = st.tuples(
    st.sampled_from(["a", "b"]),
    st.sampled_from([PriorityClass.PROD, PriorityClass.TEST, PriorityClass.OPPO, None]),
    st.integers(1, 3),
    st.integers(0, 2),
    st.booleans(),
    st.booleans(),
)
operations = st.lists(
    st.one_of(submissions, st.just("place"), st.just("notify"), st.integers(0, 20)), min_size=3, max_size=40
)


@settings(max_examples=150, deadline=None)
@given(operations)
def test_what_is_rebuilt_is_what_was_there(story: list[object]) -> None:
    world = World()
    for operation in story:
        if isinstance(operation, tuple):
            vc, priority, tasks, gpus, gang, lazy = operation
            world.submit(vc, priority, tasks, gpus, gang=gang, lazy=lazy)
        elif operation == "place":
            world.place()
        elif operation == "notify":
            world.notify()
        elif isinstance(operation, int) and world.jobs:
            world.end(operation)
        world.placer.catch_up()
        audit(world.placer.ledger)
        rebuilt = world.rebuilt()
        audit(rebuilt.ledger)
        assert picture(rebuilt) == picture(world.placer)


def full_world() -> World:
    """Virtual cluster ``b`` is full of a test job, and a production job has its cells kept meanwhile."""
    world = World()
    world.submit("b", PriorityClass.TEST, 1, 2, gang=True, lazy=False)
    world.place()
    world.submit("b", PriorityClass.PROD, 2, 1, gang=True, lazy=False)
    world.place()
    return world


def test_a_reservation_survives_and_leads_to_the_place_that_was_kept() -> None:
    world = full_world()
    low, high = (world.jobs[make_uid(number)] for number in (1, 2))
    kept = [task.reserved for task in high.tasks]
    rebuilt = world.rebuilt()
    assert [(each.job, each.by) for each in rebuilt.preemptions()] == [(low.uid, high.id)]
    rebuilt.keep_only(low.uid, ())
    found = placed(rebuilt, high)
    assert [found[task.uid] for task in high.tasks] == kept


def test_forgetting_the_reservation_would_show() -> None:
    world = full_world()
    forgetful = {
        uid: job.model_copy(update={"tasks": tuple(t.model_copy(update={"reserved": None}) for t in job.tasks)})
        for uid, job in world.jobs.items()
    }
    before = picture(world.placer)
    world.jobs = forgetful
    assert picture(world.rebuilt()) != before
