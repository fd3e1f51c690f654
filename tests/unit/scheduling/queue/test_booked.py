"""GPUs that are booked: who starts before a booking begins, while it lasts, and after it."""

from __future__ import annotations

from datetime import timedelta

from pai_backend.model.booking import Booking
from pai_backend.model.ids import JobUid
from pai_backend.model.waiting import Cause, ChangeKind
from pai_backend.scheduling.explain import explain
from pai_backend.scheduling.queue import Patience, Policy
from pai_backend.scheduling.queue.booked import Booked, RunSpan
from tests.unit.scheduling.queue.line import START, Line

HOUR = timedelta(hours=1)
STUDENTS = frozenset({"sue", "sam"})


def book(
    line: Line,
    gpus: int = 8,
    begins: int = 60,
    ends: int = 120,
    members: frozenset[str] | None = STUDENTS,
    *,
    one_node: bool = False,
    stops: frozenset[JobUid] = frozenset(),
) -> Booked:
    """One more booking of virtual cluster ``a``, which owns three nodes of four GPUs; times are minutes from now."""
    begin, end = line.now + timedelta(minutes=begins), line.now + timedelta(minutes=ends)
    number = len(line.queue.bookings.all)
    booking = Booking(
        f"b{number}", "a", "course", gpus, begin, end, one_node=one_node, stops=stops, members=members, gpu_type="GPU"
    )
    booked = Booked(booking, "a", gpus)
    line.queue.set_bookings([*line.queue.bookings.all, booked])
    return booked


def test_before_it_begins_who_may_run_into_it_starts_only_beside_it() -> None:
    line = Line()
    book(line, 8)
    assert line.submit("beside", (1, 4)) == ["beside"]
    assert line.submit("into", (1, 4)) == []
    assert line.submit("student", (1, 4), user="sue") == [], "before it begins it is for no one"
    assert line.submit("bound", (1, 4), longest=HOUR) == ["bound"]
    assert line.submit("longer", (1, 4), longest=HOUR + timedelta(seconds=1)) == []
    assert line.submit("other", (1, 4), vc="b") == ["other"], "other virtual clusters have their own"


def test_it_takes_kinds_apart_by_user_and_time_whoever_was_refused_first() -> None:
    line = Line()
    book(line, 12)
    assert line.submit("into", (1, 4)) == []
    assert line.submit("bound", (1, 4), longest=timedelta(minutes=10)) == ["bound"]


def test_what_starts_because_it_is_over_by_then_has_to_be() -> None:
    line = Line()
    booked = book(line, 12)
    answer = line.submit("bound", (1, 4), longest=timedelta(minutes=10))
    assert answer == ["bound"]
    assert line.queue.promised == {"bound": booked.booking.begins}
    line.end("bound")
    assert line.queue.promised == {}


def test_while_it_lasts_it_is_for_those_named_and_what_they_start_counts() -> None:
    line = Line()
    book(line, 8)
    line.submit("before", (1, 4))
    line.submit("waits", (1, 4))
    line.submit("sues", (1, 4), user="sue")
    found = line.after(60)
    assert found.started == ["sues"], "at its beginning, without any other news"
    line.spans["sues"] = RunSpan(line.now)
    assert line.submit("sams", (1, 4), user="sam") == ["sams"]
    line.spans["sams"] = RunSpan(line.now)
    assert line.end("before") == ["waits"], "all that is booked is used"
    assert line.end("sams") == []
    assert line.submit("other", (1, 4)) == [], "it is booked again"
    assert line.submit("again", (1, 4), user="sam") == ["again"]


def test_when_it_is_over_all_is_as_before() -> None:
    line = Line()
    book(line, 12)
    line.submit("first", (3, 4))
    assert line.after(60).started == []
    answer = line.after(59)
    assert answer.started == []
    assert answer.look_again == line.now + timedelta(minutes=1)
    assert line.after(1).started == ["first"]
    assert line.advance().look_again is None


def test_one_for_all_only_keeps_gpus_free_until_it_begins() -> None:
    line = Line()
    book(line, 12, members=None)
    assert line.submit("g", (1, 4)) == []
    assert line.after(60).started == ["g"]


def test_a_booking_that_is_removed_holds_up_no_group() -> None:
    line = Line()
    book(line, 12)
    line.submit("g", (1, 4))
    line.queue.set_bookings([])
    assert line.started() == ["g"]


def test_in_one_node_others_are_put_where_it_does_not_lie() -> None:
    line = Line()
    line.submit("ends", (1, 3), longest=HOUR)
    line.spans["ends"] = RunSpan(START, START + HOUR)
    line.submit("stays", (1, 2))
    line.submit("full", (1, 4))
    book(line, 4, one_node=True)
    where = {name: held.spots[0].node.name for name, held in line.queue.ledger.groups.items()}
    assert line.submit("g", (1, 1)) == ["g"], "the fullest node would be the one that is free when it begins"
    assert line.queue.ledger.groups["g"].spots[0].node.name == where["stays"]
    assert line.submit("h", (1, 1)) == ["h"]
    assert line.submit("i", (1, 1)) == []


def test_what_is_known_to_end_in_time_is_no_obstacle() -> None:
    line = Line()
    line.submit("ends", (3, 4))
    book(line, 12)
    assert line.queue.bookings.short(line.now) is not None
    line.spans["ends"] = RunSpan(START, START + HOUR)
    assert line.queue.bookings.short(line.now) is None


def test_jobs_that_are_to_be_stopped_are_no_obstacle_either() -> None:
    line = Line()
    line.submit("stopped", (3, 4))
    book(line, 12, stops=frozenset({JobUid("")}))
    assert line.queue.bookings.short(line.now) is None


def test_a_higher_priority_does_not_take_what_those_named_have() -> None:
    line = Line()
    book(line, 4, begins=0, ends=60)
    assert line.submit("sues", (1, 4), user="sue", priority=1) == ["sues"]
    line.spans["sues"] = RunSpan(line.now)
    line.submit("g0", (1, 4), priority=95)
    line.submit("g1", (1, 4), priority=95)
    assert line.submit("g2", (1, 4), priority=90) == []
    assert not line.queue.claims
    assert "g2" in line.queue.waiting, "no group of sue is ended for it"


def test_opportunistic_groups_use_what_is_idle_until_it_is_needed() -> None:
    line = Line()
    book(line, 12, begins=0, ends=60)
    assert line.submit("idle", (3, 4), priority=-1) == ["idle"]
    assert line.submit("sues", (3, 4), user="sue") == []
    (preempting,) = line.queue.claims.values()
    assert preempting.victims == frozenset({"idle"})
    assert line.end("idle") == ["sues"]


def test_cells_are_not_kept_for_the_first_where_they_are_booked() -> None:
    line = Line(Policy(patience=Patience(overtaken=1)))
    line.submit("g", (1, 4))
    book(line, 8, begins=30, ends=60)
    line.submit("big", (2, 4))
    for number in range(3):
        line.submit(f"small{number}", (1, 1), longest=timedelta(minutes=5))
    line.after(15)
    assert not line.queue.claims
    line.end("small0", "small1", "small2")
    line.after(15)
    assert line.submit("sues", (2, 4), user="sue") == ["sues"]
    line.end("g")
    assert line.after(30).held_back == ["big"], "its turn comes when the booking is over"
    assert line.end("sues") == ["big"]


def test_why_names_the_booking_and_what_would_start_now() -> None:
    line = Line()
    booked = book(line, 12)
    line.submit("g", (1, 4))
    found = explain(line.queue, "g", line.now)
    assert found.cause is Cause.BOOKED
    assert found.booked is not None
    assert (found.booked.name, found.booked.begins) == ("course", booked.booking.begins)
    assert (found.changes[0].kind, found.changes[0].after) == (ChangeKind.SHORTER, 3600)
    assert found.texts["en"].remedy == "With a maxDuration of 1h at most it would start now."
    assert "reserved for course from 2026-01-01 01:00 to 2026-01-01 02:00 UTC" in found.texts["en"].sentence
    assert "2026-01-01 01:00 至 2026-01-01 02:00（UTC）" in found.texts["zh_CN"].sentence
    line.after(60)
    later = explain(line.queue, "g", line.now)
    assert later.cause is Cause.BOOKED
    assert ChangeKind.SHORTER not in {change.kind for change in later.changes}
