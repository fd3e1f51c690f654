"""A controller that starts anew expects what the one before would have: what is stored is all that is remembered."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pai_backend.model.attempts import Ran, Times, kind_of, with_another
from pai_backend.model.job import Job
from pai_backend.scheduling.jobs.history import MOST_KINDS, History, usual
from pai_backend.testing.builders import make_job, make_spec, make_uid

NAMES = ("a", "b", "c", "d")
USERS = ("ann", "bob")
JOBS = [
    make_job(name, uid=make_uid(2 * number + which), user=user, spec=make_spec(name))
    for number, name in enumerate(NAMES)
    for which, user in enumerate(USERS)
]
ENDS = st.lists(st.tuples(st.sampled_from(JOBS), st.integers(1, 9)), max_size=60)


class Stored:
    """What the table of run times has, in plain words."""

    def __init__(self) -> None:
        self.times: dict[tuple[str, str], tuple[int, ...]] = {}

    def note(self, one: Ran) -> None:
        self.times[one.user, one.kind] = with_another(self.times.pop((one.user, one.kind), ()), one.seconds)

    def latest(self, limit: int) -> list[Times]:
        return [Times(user, kind, seconds) for (user, kind), seconds in self.times.items()][-limit:]


@given(ends=ENDS, restart=st.integers(0, 60))
def test_a_restart_changes_nothing_that_is_expected(ends: list[tuple[Job, int]], restart: int) -> None:
    stored, lasting = Stored(), History()
    fresh = lasting
    for number, (job, seconds) in enumerate(ends):
        if number == restart:
            fresh = History(stored.latest(MOST_KINDS))
        one = Ran(job.user, kind_of(job.spec), seconds)
        stored.note(one)
        for known in {lasting, fresh}:
            known.note(one)
    assert [fresh.run_time(job) for job in JOBS] == [lasting.run_time(job) for job in JOBS]


@given(st.lists(st.integers(1, 100), min_size=1, max_size=16))
def test_three_of_four_ended_within_the_usual_time_and_no_shorter_one_would_do(times: list[int]) -> None:
    found = usual(times)
    assert found in times
    assert 4 * sum(each <= found for each in times) >= 3 * len(times)
    assert 4 * sum(each < found for each in times) < 3 * len(times)
