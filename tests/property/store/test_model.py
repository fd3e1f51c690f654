"""The store against a model of dictionaries, under any order of submits, saves and stops."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from pai_backend.lifecycle.restart import restarted
from pai_backend.model.errors import NameTaken, ReadOnlyJob
from pai_backend.model.ids import JobUid, PortLease
from pai_backend.model.job import Desired, Job, NewEvent, State
from pai_backend.store.base import Conflict, Fenced, JobFilter, PortTaken, slot
from pai_backend.store.sql import Store
from pai_backend.testing.builders import T0, make_job, make_placement, make_role, make_spec, make_uid
from tests.support.postgres import PostgresServer, postgres_server
from tests.support.sealing import KEYS

__all__ = ["postgres_server"]

T = TypeVar("T")


@dataclass
class Model:
    """What the store must hold."""

    jobs: dict[JobUid, Job] = field(default_factory=dict)
    dirty: set[JobUid] = field(default_factory=set)
    events: dict[JobUid, list[str]] = field(default_factory=dict)
    ports: dict[int, str] = field(default_factory=dict)
    epoch: int = 0


class StoreMachine(RuleBasedStateMachine):
    """Rules act on both; invariants compare."""

    versions = Bundle("versions")  # jobs as somebody once saw them

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.runner = asyncio.Runner()
        self.store = Store(url, KEYS)
        self.run(self.store.open())
        self.model = Model()
        self.numbers = 0

    def run(self, work: Coroutine[object, object, T]) -> T:
        return self.runner.run(work)

    def teardown(self) -> None:
        self.run(self.store.aclose())
        self.runner.close()

    @initialize()
    def first_controller(self) -> None:
        self.new_controller()

    @rule()
    def new_controller(self) -> None:
        lease = self.run(self.store.leadership.acquire("one", 10.0, T0, force=True))
        assert lease is not None
        assert lease.epoch == self.model.epoch + 1
        self.model.epoch += 1

    @rule(target=versions, name=st.sampled_from("abc"), user=st.sampled_from(["alice", "bob"]), size=st.integers(1, 3))
    def submit(self, name: str, user: str, size: int) -> object:
        self.numbers += 1
        uid = make_uid(self.numbers)
        spec = make_spec(name, roles=[make_role(instances=size)])
        job = make_job(name, uid=uid, user=user, spec=spec, submitted_at=T0 + timedelta(seconds=self.numbers))
        taken = any((known.user, known.name) == (user, name) for known in self.model.jobs.values())
        try:
            stored = self.run(self.store.jobs.submit(job, b"", "", "", [NewEvent("job.submitted")]))
        except NameTaken:
            assert taken, "a free name was refused"
            return multiple()
        assert not taken, "a taken name was accepted"
        assert stored.alias not in {known.alias for known in self.model.jobs.values()}, "two jobs share an alias"
        self.model.jobs[uid] = stored
        self.model.events[uid] = ["job.submitted"]
        self.model.dirty.add(uid)
        return stored

    @rule(target=versions, seen=versions)
    def stop(self, seen: Job) -> Job:
        before = self.model.jobs[seen.uid]
        stopped = self.run(self.store.jobs.request_stop(seen.uid, "alice", T0))
        if before.state.final or before.desired is Desired.STOP:
            assert stopped == before
            return stopped
        assert stopped == before.model_copy(update={"desired": Desired.STOP, "version": before.version + 1})
        self.model.jobs[seen.uid] = stopped
        self.model.events[seen.uid].append("job.stop-requested")
        self.model.dirty.add(seen.uid)
        return stopped

    @rule(target=versions, seen=versions)
    def restart(self, seen: Job) -> Job:
        before = self.model.jobs[seen.uid]
        work = self.store.jobs.request_restart(seen.uid, "alice", T0)
        if not before.state.final and before.desired is Desired.STOP:
            with pytest.raises(ReadOnlyJob):
                self.run(work)
            return before
        after = self.run(work)
        if not before.state.final:
            assert after == before
            return after
        assert after == restarted(before, T0).model_copy(update={"version": before.version + 1})
        self.model.jobs[seen.uid] = after
        self.model.events[seen.uid] += ["job.restart-requested", "job.state"]
        self.model.dirty.add(seen.uid)
        return after

    @rule(
        target=versions,
        seen=consumes(versions),
        state=st.sampled_from(State),
        forget=st.booleans(),
        port=st.none() | st.integers(1, 3),
        release=st.booleans(),
        held=st.none() | st.sampled_from(["A100", "V100"]),
        stale_epoch=st.sampled_from([False, False, False, True]),
    )
    def save(
        self,
        seen: Job,
        state: State,
        forget: bool,
        port: int | None,
        release: bool,
        held: str | None,
        stale_epoch: bool,
    ) -> object:
        owner = slot(seen.uid, 0, 0)
        place = None if held is None else make_placement(gpus=[0], gpu_type=held)
        first = seen.tasks[0].model_copy(update={"state": state, "forgotten": forget, "placement": place})
        job = seen.model_copy(update={"state": state, "tasks": (first, *seen.tasks[1:])})
        holder = self.model.ports.get(port) if port is not None else None
        if stale_epoch:
            expected: type[Exception] | None = Fenced
        elif self.model.jobs[seen.uid].version != seen.version:
            expected = Conflict
        else:
            expected = PortTaken if holder not in (None, owner) else None
        work = self.store.jobs.save(
            job,
            seen=seen,
            epoch=self.model.epoch - stale_epoch,
            events=[NewEvent("job.state"), NewEvent("task.state")],
            at=T0,
            lease=[] if port is None else [PortLease("m", port, owner)],
            release=[owner] if release else [],
        )
        if expected is not None:
            with pytest.raises(expected):
                self.run(work)
            return self.model.jobs[seen.uid]
        saved = self.run(work)
        self._saved(saved, owner, port, release)
        return saved

    def _saved(self, saved: Job, owner: str, port: int | None, release: bool) -> None:
        self.model.jobs[saved.uid] = saved
        self.model.events[saved.uid] += ["job.state", "task.state"]
        self.model.dirty.discard(saved.uid)
        if release:
            self.model.ports = {number: who for number, who in self.model.ports.items() if who != owner}
        if port is not None:
            self.model.ports[port] = owner

    @invariant()
    def the_store_holds_the_model(self) -> None:
        self.run(self._compare())

    async def _compare(self) -> None:
        model, store = self.model, self.store
        for uid, job in model.jobs.items():
            assert await store.jobs.get(uid) == job
            events = await store.events.of_job(uid)
            assert [event.seq for event in events] == list(range(1, len(events) + 1)), "gaps in the log"
            assert [event.type for event in events] == model.events[uid]
        assert {job.uid for job in await store.jobs.dirty()} == model.dirty
        unfinished = {
            uid
            for uid, job in model.jobs.items()
            if not (job.state.final and all(task.forgotten for task in job.tasks))
        }
        assert {job.uid for job in await store.jobs.unfinished()} == unfinished
        assert {lease.port: lease.owner for lease in await store.ports.leases()} == model.ports
        page, total = await store.jobs.page(JobFilter())
        assert total == len(model.jobs)
        newest_first = sorted(model.jobs, key=lambda uid: model.jobs[uid].submitted_at)[::-1]
        assert [row.uid for row in page] == newest_first
        for wanted in (("A100",), ("A100", "V100")):
            rows, total = await store.jobs.page(JobFilter(gpu_types=wanted))
            of_type = [uid for uid in newest_first if set(wanted) & set(model.jobs[uid].gpu_types)]
            assert ([row.uid for row in rows], total) == (of_type, len(of_type)), "what was remembered is stale"

    @precondition(lambda self: self.model.jobs)
    @rule()
    def open_again(self) -> None:
        self.run(self.store.aclose())
        self.store = Store(self.url, KEYS)
        self.run(self.store.open())


def check(new_url: Callable[[], str], examples: int) -> None:
    class Machine(StoreMachine):
        def __init__(self) -> None:
            super().__init__(new_url())

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=15,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
            database=None,
        ),
    )


def test_sqlite_holds_what_a_dictionary_would() -> None:
    with tempfile.TemporaryDirectory() as directory:
        numbers = iter(range(1_000_000))
        check(lambda: f"sqlite:///{directory}/{next(numbers)}.sqlite", examples=20)


def test_postgresql_holds_what_a_dictionary_would(postgres_server: PostgresServer) -> None:
    check(postgres_server.new_database, examples=5)
