"""Few events for many logins, and none of them forgotten."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pai_backend.access.gateway.folding import FOLD_S, MOST_OPEN, Fact, Folding, What
from pai_backend.testing.builders import make_uid

JOB = make_uid(1)


def _end(seconds: float = 1.0, user: str = "alice", source: str = "192.0.2.1") -> Fact:
    return Fact(What.END, JOB, user, source, {"reason": "closed"}, {"seconds": seconds, "bytes_in": 10})


def test_the_first_is_told_at_once_and_those_that_follow_together() -> None:
    folding = Folding()
    first = folding.add(_end(2.04), now=100)
    assert first is not None
    assert first.type == "access.end"
    assert first.payload == {
        "user": "alice",
        "source": "192.0.2.1",
        "reason": "closed",
        "seconds": 2.0,
        "bytes_in": 10,
        "count": 1,
    }
    assert [folding.add(_end(), now=100 + number) for number in range(5)] == [None] * 5
    assert folding.due(100 + FOLD_S - 1) == []
    assert folding.next_due == 100 + FOLD_S
    [(job, event)] = folding.due(100 + FOLD_S)
    assert (job, event.payload["count"], event.payload["seconds"], event.payload["bytes_in"]) == (JOB, 5, 5.0, 50)
    assert folding.due(100 + 2 * FOLD_S) == []
    assert folding.next_due is None
    assert folding.add(_end(), now=1000) is not None


def test_users_addresses_tasks_keys_and_kinds_are_told_apart() -> None:
    folding = Folding()
    assert folding.add(_end(), 0) is not None
    assert folding.add(_end(user="bob"), 0) is not None
    assert folding.add(_end(source="192.0.2.2"), 0) is not None
    assert folding.add(Fact(What.LOGIN, JOB, "alice", "192.0.2.1"), 0) is not None
    for words in ({"task": "worker-0"}, {"task": "worker-1"}, {"task": "worker-1", "key": "certificate 7"}):
        assert folding.add(Fact(What.LOGIN, JOB, "alice", "192.0.2.1", words), 0) is not None
    assert folding.add(_end(), 0) is None


def test_memory_is_bounded() -> None:
    folding = Folding()
    knocks = [Fact(What.REFUSED, JOB, "eve", str(number)) for number in range(MOST_OPEN + 5)]
    assert sum(folding.add(knock, 0) is not None for knock in knocks) == MOST_OPEN
    assert all(folding.add(_end(), 0) is not None for _ in range(3)), "who was inside is told, each time then"
    assert len(folding.due(FOLD_S)) == 0
    assert folding.add(knocks[-1], FOLD_S) is not None


@given(st.lists(st.tuples(st.floats(0, 200), st.sampled_from(["a", "b"])), max_size=50))
def test_every_fact_is_counted_once(steps: list[tuple[float, str]]) -> None:
    folding, counted, now = Folding(), 0, 0.0
    for pause, source in steps:
        now += pause
        counted += sum(int(str(event.payload["count"])) for _, event in folding.due(now))
        event = folding.add(_end(source=source), now)
        counted += event is not None
    counted += sum(int(str(event.payload["count"])) for _, event in folding.due(float("inf")))
    assert counted == len(steps)
