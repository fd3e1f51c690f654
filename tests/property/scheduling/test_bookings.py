"""Random groups beside random bookings: what is booked stays free for those it is for, and no group waits in vain."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from hypothesis import Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule, run_state_machine_as_test

from pai_backend.model.booking import Booking
from pai_backend.scheduling import Group, Member, Wait
from pai_backend.scheduling.queue import Entry, Policy
from pai_backend.scheduling.queue.booked import Booked, QueueBookings, RunSpan
from tests.property.scheduling.test_queue_caps import CONFIG, POLICIES
from tests.property.scheduling.test_queue_machine import QUIET, Waiting

OWNED = {"a": 8, "b": 4}
MINUTE = timedelta(minutes=1)
WHOM = (None, frozenset({"alice"}), frozenset({"bob", "carol"}), frozenset[str]())
BOOKED = st.builds(
    lambda gpus, one_node, begins, lasts, members: (
        min(gpus, 4) if one_node else gpus,
        one_node,
        begins,
        lasts,
        members,
    ),
    st.integers(1, 8),
    st.booleans(),
    st.integers(0, 30),
    st.integers(1, 20),
    st.sampled_from(WHOM),
)


class BookedGpus(Waiting):
    """Groups of which some are stopped after a time, in virtual clusters where GPUs are booked."""

    @initialize(policy=POLICIES)
    def start(self, policy: Policy) -> None:
        self.placed: dict[str, datetime] = {}
        self.late: dict[str, int] = {}
        """Minutes between a place and the beginning of the run: an image is pulled."""
        self.set_up(CONFIG, policy)
        for queue in (self.queue, self.twin):
            queue.bookings._spans = self.span

    def span(self, name: str) -> RunSpan:
        began, entry = self.placed.get(name), self.queue.entry(name) or self.twin.entry(name)
        if began is None or entry is None:
            return RunSpan()
        limit = entry.longest
        return RunSpan(began, None if limit is None else began + limit + self.late.get(name, 0) * MINUTE)

    @rule(
        leaves=st.integers(1, 4),
        pods=st.sampled_from([1, 1, 1, 2]),
        vc=st.sampled_from(["a", "a", "a", "b"]),
        user=st.sampled_from(["alice", "bob", "dora"]),
        priority=st.sampled_from([0, 0, 0, 10, -1]),
        needs=st.sampled_from([None, None, "much"]),
        longest=st.sampled_from([None, None, 5, 15]),
        late=st.sampled_from([0, 0, 3]),
        lazy=st.booleans(),
    )
    def submit(
        self,
        leaves: int,
        pods: int,
        vc: str,
        user: str,
        priority: int,
        needs: str | None,
        longest: int | None,
        late: int,
        lazy: bool,
    ) -> None:
        self.count += 1
        group = Group(f"g{self.count}", vc, (Member(pods, leaves),), priority, lazy_preemption=lazy)
        self.late[group.name] = late
        limit = None if longest is None else longest * MINUTE
        self.enter(Entry(group, user, self.count, needs, longest=limit))

    @rule(found=st.lists(BOOKED, max_size=3))
    def book(self, found: Sequence[tuple[int, bool, int, int, frozenset[str] | None]]) -> None:
        """Other bookings, as far as there is room for them beside what runs."""
        taken: list[Booked] = []
        for number, (gpus, one_node, begins, lasts, members) in enumerate(found):
            at = self.now + begins * MINUTE
            booking = Booking(
                f"b{number}", "a", "course", gpus, at, at + lasts * MINUTE, one_node=one_node, members=members
            )
            self.queue.bookings.all = (*taken, Booked(booking, "a", gpus))
            if self.queue.bookings.short(self.now) is None:
                taken.append(Booked(booking, "a", gpus))
        note(f"booked: {[each.booking for each in taken]}")
        for queue in (self.queue, self.twin):
            queue.set_bookings(taken)
        self.advance()

    @rule(minutes=st.integers(1, 10))
    def pass_time(self, minutes: int) -> None:
        """Minute by minute: who has run for as long as it may is stopped."""
        for _ in range(minutes):
            self.now += MINUTE
            for name in [*self.queue.running]:
                bound = self.queue.bookings.bound(name)
                if bound is not None and bound <= self.now:
                    note(f"{name} is over at {self.now:%H:%M}")
                    for queue in (self.queue, self.twin):
                        queue.release(name)
            self.advance()

    @rule()
    def health(self) -> None:
        """Not here: broken nodes take what was booked."""

    @rule()
    def reconfigure(self) -> None:
        """Not here."""

    @rule()
    def suggestions_work(self) -> None:
        """Not here: a change is tried without what is booked."""

    def advance(self) -> None:
        for queue in (self.queue, self.twin):
            queue.turn_to(self.now)
        super().advance()
        running = self.queue.running
        self.placed = {name: self.placed.get(name, self.now) for name in running}

    @invariant()
    def what_is_booked_stays_free(self) -> None:
        """What others hold, and what is booked and not used yet, is no more than the virtual cluster owns."""
        if not hasattr(self, "queue") or not hasattr(self, "placed"):
            return
        active = [each for each in self.queue.bookings.all if each.is_at(self.now)]
        left = {each.booking.id: each.leaves for each in active}
        others = 0
        for name, entry in self.queue.running.items():
            held = self.queue.ledger.groups[name]
            if entry.group.vc != "a" or held.priority < 0:
                continue
            rest = entry.leaves
            for each in active:
                if each.admits(entry) and self.placed[name] >= each.booking.begins:
                    taken = min(rest, left[each.booking.id])
                    left[each.booking.id] -= taken
                    rest -= taken
            others += rest
        assert others + sum(left.values()) <= OWNED["a"], f"others hold {others}, and {left} is booked"

    @invariant()
    def every_booking_has_room(self) -> None:
        """Those that began and those to come, in one node where that was asked for."""
        if hasattr(self, "queue"):
            assert self.queue.bookings.short(self.now) is None

    @invariant()
    def nobody_waits_for_nothing(self) -> None:
        """After a pass no group could start that is not at a cap, behind one that is, or behind kept cells."""
        if not hasattr(self, "queue") or not self.queue.is_settled:
            return
        for queue in (self.queue, self.twin):
            for name, ticket in queue.waiting.items():
                if ticket.line is None or queue.gates.blocking(ticket.entry) or name in self.deferred:
                    continue
                decision = queue.decide_entry(ticket.entry, self.now)
                assert isinstance(decision, Wait), f"{name} waits and could have {decision}"


FAST = settings(QUIET, max_examples=100, phases=[each for each in Phase if each is not Phase.explain])
TestBookings = BookedGpus.TestCase
TestBookings.settings = FAST


def test_bookings_that_are_in_no_way_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QueueBookings, "in_the_way_of", lambda *_: None)
    wrong = settings(QUIET, max_examples=500, derandomize=True, phases=[Phase.generate], report_multiple_bugs=False)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(BookedGpus, settings=wrong)
