"""Stays add up to what was given away, whatever happens to jobs and however it is grouped into transactions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine

from pai_backend.model.accounting import By, Period, Total, changes, stay_of, totals
from pai_backend.model.job import Job, Phase
from pai_backend.model.node import Placement
from pai_backend.model.price import CPU, Price, Prices
from pai_backend.store.accounting import Change, note, periods
from pai_backend.store.tables import stays
from pai_backend.testing.builders import make_job, make_role, make_spec, make_uid

START = datetime(2026, 11, 25, 22, 0, tzinfo=UTC)
PLACES = [
    Placement(node="carol", address="127.0.0.1", machine="laptop", gpus=gpus, gpu_type=kind, owned=owned)
    for gpus, kind, owned in [((), "", ""), ((0,), "V100", "quota"), ((0, 1), "V100", ""), ((0, 1, 2), "A100", "quota")]
]
PHASES = [Phase.QUEUED, Phase.STARTING, Phase.RUNNING, Phase.STOPPING, Phase.KEPT, Phase.ENDED, Phase.BACKING_OFF]
PRICED = ["V100", "A100", CPU]
Step = tuple[int, int, Phase, Placement | None, str, int, bool, tuple[str, int] | None]
STEPS = st.lists(
    st.tuples(
        st.integers(0, 2),  # the job
        st.integers(0, 1),  # the task
        st.sampled_from(PHASES),
        st.sampled_from([None, *PLACES]),
        st.sampled_from(["default", "research"]),
        st.integers(0, 100_000),  # seconds since the last step
        st.booleans(),  # whether the transaction ends here
        st.one_of(st.none(), st.tuples(st.sampled_from(PRICED), st.integers(0, 5_000_001))),  # a new price
    ),
    max_size=30,
)
JOBS = [
    make_job(
        f"job-{number}",
        uid=make_uid(number),
        user=("alice", "bob", "bob")[number],
        spec=make_spec(f"job-{number}", roles=[make_role(instances=2, cpus=number + 1)]),
    )
    for number in range(3)
]


def step(job: Job, index: int, phase: Phase, place: Placement | None, cluster: str) -> Job:
    """The job with one of its tasks in another state, in that virtual cluster."""
    tasks = list(job.tasks)
    tasks[index] = tasks[index].model_copy(update={"phase": phase, "placement": place})
    spec = job.spec.model_copy(update={"virtual_cluster": cluster})
    return job.model_copy(update={"tasks": tuple(tasks), "spec": spec})


def written(groups: Sequence[Sequence[Change]], end: datetime) -> list[Period]:
    """What the database holds when each group is a transaction."""
    engine = create_engine("sqlite://")
    stays.create(engine)  # the others take a tenth of a second for each example
    for group in groups:
        with engine.begin() as conn:
            note(conn, group)
    with engine.connect() as conn:
        return periods(conn, datetime(2000, 1, 1, tzinfo=UTC), end, None, ())


@settings(deadline=None, max_examples=150)
@given(steps=STEPS)
def test_hours_and_costs_are_what_was_held_at_each_moment_at_the_price_of_that_moment(steps: list[Step]) -> None:
    jobs, at = list(JOBS), START
    expected: defaultdict[tuple[str, str, str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    groups: list[list[Change]] = [[]]
    hourly: dict[str, int] = {}
    prices: dict[str, tuple[Price, ...]] = {}
    for number, index, phase, place, cluster, seconds, ends, priced in steps:
        for job in jobs:  # what was held since the last step, looked at from outside
            for task in job.tasks:
                if (stay := stay_of(job, task)) is not None:
                    quota = "opportunistic" if stay.opportunistic else "guaranteed"
                    held = expected[stay.user, stay.virtual_cluster, stay.gpu_type, quota]
                    held[0] += stay.gpus * seconds
                    held[1] += stay.cpus * seconds
                    units, kind = (stay.gpus, stay.gpu_type) if stay.gpus else (stay.cpus, CPU)
                    held[2] += units * seconds * hourly.get(kind, 0)
        at += timedelta(seconds=seconds)
        if priced is not None:
            hourly[priced[0]] = priced[1]
            earlier = tuple(each for each in prices.get(priced[0], ()) if each.since < at)
            prices[priced[0]] = (*earlier, Price(priced[0], at, priced[1], at, "root"))
        after = step(jobs[number], index, phase, place, cluster)
        groups[-1].append(Change(at, *changes(jobs[number], after)))
        jobs[number] = after
        if ends:
            groups.append([])
    found = written(groups, at + timedelta(days=1))
    by = [By.USER, By.VIRTUAL_CLUSTER, By.GPU_TYPE, By.QUOTA]
    summed = totals(found, by, START, at, prices=Prices("EUR", prices))
    seconds_of = {
        key: [each.gpu_us // 1_000_000, each.cpu_us // 1_000_000, each.cost // 1_000_000]
        for key, each in summed.items()
    }
    assert seconds_of == {key: held for key, held in expected.items() if any(held)}
    for uid in {period.stay.task for period in found}:
        mine = sorted((p.began_at, p.ended_at) for p in found if p.stay.task == uid and p.ended_at is not None)
        assert all(first[1] <= second[0] for first, second in pairwise(mine)), "they overlap"
        assert sum(p.ended_at is None for p in found if p.stay.task == uid) <= 1


@settings(deadline=None)
@given(
    times=st.lists(st.tuples(st.integers(0, 400_000), st.integers(1, 400_000), st.integers(0, 8)), max_size=20),
    cuts=st.tuples(st.integers(0, 800_000), st.integers(0, 800_000)),
)
def test_parts_add_up_to_the_whole(times: list[tuple[int, int, int]], cuts: tuple[int, int]) -> None:
    template = stay_of(JOBS[0], JOBS[0].tasks[0].model_copy(update={"phase": Phase.RUNNING, "placement": PLACES[1]}))
    assert template is not None
    found = [
        Period(template, START + timedelta(seconds=begin), START + timedelta(seconds=begin + lasted))
        for begin, lasted, _ in times
    ]
    first, last = (START + timedelta(seconds=each) for each in sorted(cuts))
    far = START + timedelta(seconds=2_000_000)
    whole = totals(found, [], START, far).get((), Total())
    pieces = [totals(found, [], *each).get((), Total()) for each in ((START, first), (first, last), (last, far))]
    assert whole.gpu_us == sum(each.gpu_us for each in pieces)
    days = totals(found, [By.DAY], START, far)
    assert whole.gpu_us == sum(each.gpu_us for each in days.values())
    assert all(each.gpu_us <= 24 * 3_600_000_000 * len(found) for each in days.values())
