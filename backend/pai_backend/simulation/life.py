"""A group on its way through a simulation: where it ran, from when to when, and what became of each run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from pai_backend.scheduling.queue import Entry
from pai_backend.scheduling.request import OPPORTUNISTIC, GroupPlace
from pai_backend.simulation.fate import Fate, Place, RunOutcome, Spell
from pai_backend.simulation.moments import date, seconds
from pai_backend.simulation.trace import Arrival


class GroupLife:
    """One group. ``run`` counts its starts, ``end`` is the number of its foreseen end: other news of them is void.

    Rule of this class: a spell of a run ends whenever its place or its claim on the quota changes.
    """

    def __init__(self, arrival: Arrival, entry: Entry) -> None:
        self.arrival = arrival
        self.entry = entry
        self.run = 0
        self.end = 0
        self.placement: GroupPlace | None = None
        self.capped_s = 0.0
        self.estimated_s: float | None = None
        self._opportunistic = False
        self._since: datetime | None = None
        self._started: datetime | None = None
        self._full: datetime | None = None
        self._ended: datetime | None = None
        self._cancelled: datetime | None = None
        self._stopped: datetime | None = None
        self.is_cut = False
        """Whether the foreseen end is that of the longest run, and comes before it is done."""
        self._left = 0.0
        self._spells: list[Spell] = []
        self._open: list[Spell] = []
        self._displaced = self._grown = 0

    @property
    def has_ended(self) -> bool:
        """Whether nothing will become of it any more."""
        return any(each is not None for each in (self._ended, self._cancelled, self._stopped))

    @property
    def arrived_s(self) -> float:
        """When it arrived, to the microsecond that dates have: it cannot have started before."""
        return seconds(date(self.arrival.at))

    @property
    def first_start_s(self) -> float | None:
        """When it first started; None when it never did."""
        spells = self._spells or self._open
        return spells[0].since_s if spells else None

    @property
    def cancelled_s(self) -> float | None:
        """When it was given up; None when it was not."""
        return None if self._cancelled is None else seconds(self._cancelled)

    @property
    def is_opportunistic(self) -> bool:
        """Whether it runs without a claim."""
        return self._opportunistic

    @property
    def last_start(self) -> datetime | None:
        """When its present run began; None while it does not run."""
        return self._started if self.placement is not None else None

    @property
    def is_full(self) -> bool:
        """Whether it runs with all its tasks."""
        return self.placement is not None and len(self.placement.pods) == self.entry.group.pods

    def start(self, placement: GroupPlace, now: datetime) -> datetime:
        """Start a run from the beginning; when it will have ended with the tasks that it has."""
        self.run += 1
        self._left = self.arrival.duration * self.entry.group.leaves
        self._opportunistic = self.entry.group.priority == OPPORTUNISTIC
        self._started = now
        return self._go_on(placement, now)

    def grow(self, placement: GroupPlace, now: datetime) -> datetime:
        """It has more tasks from now on; when it will have ended with these."""
        self._close(now)
        self._grown += 1
        return self._go_on(placement, now)

    def turn(self, now: datetime, *, opportunistic: bool) -> None:
        """It loses its claim on the quota and runs on, or has it again."""
        self._displaced += opportunistic
        if self.placement is not None and self._opportunistic is not opportunistic:
            self._close(now)
            self._since = now
            self._opportunistic = opportunistic

    def stop(self, outcome: RunOutcome, now: datetime) -> GroupPlace:
        """Its run is over; the place that it had."""
        self._close(now)
        placement, self.placement = self.placement, None
        assert placement is not None
        self._spells += [spell.model_copy(update={"outcome": outcome}) for spell in self._open]
        self._open.clear()
        if outcome is RunOutcome.DONE:
            self._ended = now
        elif outcome is RunOutcome.OVERRUN:
            self._stopped = now
        return placement

    def cancel(self, now: datetime) -> None:
        """Its user gave it up."""
        self._cancelled = now

    def runs_on(self, node: str, devices: Collection[int]) -> bool:
        """Whether a task of it uses one of these GPUs of a node."""
        pods = self.placement.pods.values() if self.placement is not None else ()
        return any(pod.node == node and not set(devices).isdisjoint(pod.cells) for pod in pods)

    def expected_end(self) -> datetime | None:
        """What the queue believes of a run: the declared time, whatever its true one."""
        if self.arrival.expected is None or self.last_start is None:
            return None
        return self.last_start + timedelta(seconds=self.arrival.expected)

    def fate(self, overtaken: Mapping[str, int]) -> Fate:
        """What became of it. ``overtaken`` has how often, by name."""
        runs = tuple(self._spells)
        firsts = {spell.run: spell for spell in reversed(runs)}
        ends = {spell.run: spell.outcome for spell in runs}
        outcomes = list(ends.values())
        return Fate(
            name=self.arrival.name,
            vc=self.arrival.vc,
            user=self.arrival.user,
            gpus=self.entry.group.leaves,
            tasks=self.entry.group.pods,
            arrived_s=self.arrived_s,
            duration_s=self.arrival.duration,
            started_s=self.first_start_s,
            ended_s=None if self._ended is None else seconds(self._ended),
            cancelled_s=self.cancelled_s,
            estimated_s=self.estimated_s,
            stopped_s=None if self._stopped is None else seconds(self._stopped),
            first_tasks=firsts[1].tasks if runs else 0,
            full_s=None if self._full is None else seconds(self._full),
            grown=self._grown,
            preempted=outcomes.count(RunOutcome.PREEMPTED),
            failed=outcomes.count(RunOutcome.FAILED),
            displaced=self._displaced,
            lost_s=sum(_length(spell) for spell in runs if spell.outcome is RunOutcome.PREEMPTED),
            overtaken=overtaken.get(self.arrival.name, 0),
            capped_s=self.capped_s,
            spells=runs,
        )

    def _go_on(self, placement: GroupPlace, now: datetime) -> datetime:
        self.placement, self._since = placement, now
        if self.is_full:
            self._full = self._full or now
        return now + timedelta(seconds=self._left / _gpus(placement))

    def _close(self, now: datetime) -> None:
        """The present spell is over, and as much is left to do as it has not done."""
        assert self.placement is not None
        assert self._since is not None
        gpus = _gpus(self.placement)
        self._left -= (now - self._since).total_seconds() * gpus
        places = tuple(Place(node=pod.node, devices=pod.cells) for pod in self.placement.pods.values())
        self._open.append(
            Spell(
                run=self.run,
                since_s=seconds(self._since),
                until_s=seconds(now),
                tasks=len(self.placement.pods),
                gpus=gpus,
                opportunistic=self._opportunistic,
                outcome=RunOutcome.DONE,
                places=places,
            )
        )


def _gpus(placement: GroupPlace) -> int:
    return sum(len(pod.cells) for pod in placement.pods.values())


def _length(spell: Spell) -> float:
    return spell.until_s - spell.since_s
