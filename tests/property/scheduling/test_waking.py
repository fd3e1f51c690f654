"""Jobs that wait for CPU as well as for GPUs: whoever could start is asked, in whatever order things become free."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pai_backend.model.job import Job
from pai_backend.model.node import Gpu, Node
from pai_backend.model.spec import PriorityClass
from pai_backend.scheduling import Bound, Wait
from pai_backend.scheduling.jobs.placer import Placer
from pai_backend.scheduling.queue import Patience, Policy
from pai_backend.testing.builders import T0, make_job, make_role, make_spec, make_uid
from tests.mutants.waking import MUTANTS
from tests.support.cell_laws import audit

CPUS, GPUS, NODES = 6, 2, 3
Shape = tuple[int, int, int, PriorityClass]
SHAPES = st.tuples(st.integers(1, 3), st.integers(0, GPUS), st.integers(1, 4), st.sampled_from(PriorityClass))
"""Tasks, GPUs and CPUs of each, priority."""
STEPS = st.lists(st.one_of(st.lists(SHAPES, max_size=3), st.lists(st.integers(0, 30), max_size=3)), max_size=12)
"""Some jobs come, or some of those that run end, before the next passes."""
PATIENT = Policy(patience=Patience(1000, timedelta(days=1)))


def placer() -> Placer:
    """Some nodes of one kind, in one virtual cluster."""
    made = Placer(None, policy=PATIENT)
    for number in range(NODES):
        gpus = tuple(Gpu(index=index, type="T") for index in range(GPUS))
        made.set_node(Node(name=f"n{number}", address="", machine=f"m{number}", cpus=CPUS, memory_mb=10_000, gpus=gpus))
    made.catch_up()
    return made


def job(number: int, shape: Shape) -> Job:
    """A gang."""
    tasks, gpus, cpus, priority = shape
    roles = [make_role(instances=tasks, gpus=gpus, cpus=cpus, memory_mb=100)]
    spec = make_spec(roles=roles, priority=priority)
    return make_job(f"job{number}", uid=make_uid(number), spec=spec, submitted_at=T0 + timedelta(seconds=number))


class Lab:
    """A placer whose decisions are carried out at once, victims included."""

    def __init__(self) -> None:
        self.placer = placer()
        self.running: list[Job] = []
        self.count = 0

    def submit(self, shape: Shape) -> None:
        self.count += 1
        made = job(self.count, shape)
        self.placer.wait(made, made.tasks)

    def end(self, number: int) -> None:
        if self.running:
            self.placer.keep_only(self.running.pop(number % len(self.running)).uid, ())

    def settle(self) -> None:
        for _ in range(50):
            answer = self.placer.advance(T0)
            for unit in (*answer.started, *answer.kept):
                self.placer.written(unit)
            self.running += [self.placer.units.jobs[unit.job] for unit in answer.started]
            leaving = {each.job for each in self.placer.preemptions()}
            for uid in leaving:
                self.placer.keep_only(uid, ())
            self.running = [each for each in self.running if each.uid not in leaving]
            if not answer.more and not leaving:
                return
        pytest.fail("passes do not come to an end")

    def check(self) -> None:
        """The ledger's laws, and that nobody who waits could start on what is free."""
        audit(self.placer.ledger)
        for name, ticket in self.placer.queue.waiting.items():
            answer = self.placer.queue.decider.decide(ticket.entry)
            assert not isinstance(answer, Bound), f"{name} waits and could start: {answer}"
            if isinstance(answer, Wait):
                assert self.placer.wait_reason(self.placer.units.by_name[name]).message


def law_of_waking(examples: int) -> None:
    @given(STEPS)
    @settings(
        deadline=None,
        database=None,
        derandomize=True,
        report_multiple_bugs=False,
        max_examples=examples,
        phases=[Phase.generate],
    )
    def law(steps: list[list[Shape] | list[int]]) -> None:
        lab = Lab()
        for together in steps:
            for step in together:
                if isinstance(step, int):
                    lab.end(step)
                else:
                    lab.submit(step)
            lab.settle()
            lab.check()

    law()


def test_nobody_sleeps_who_could_start() -> None:
    law_of_waking(150)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant[0].__name__}.{mutant[1]}")
def test_a_queue_that_lets_somebody_sleep_is_found_out(
    mutant: tuple[type, str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*mutant)
    with pytest.raises(AssertionError):
        law_of_waking(1000)
