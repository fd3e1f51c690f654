"""The replay: arrivals, ends, evictions and changes in order of time, and after each instant what the queue decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from pai_backend.model.attempts import Ran
from pai_backend.model.errors import DocumentError
from pai_backend.scheduling.config.model import ClusterConfig, compare
from pai_backend.scheduling.core.decision import Bound, Preempt
from pai_backend.scheduling.core.ledger import Ledger
from pai_backend.scheduling.explain.eta import estimate
from pai_backend.scheduling.jobs.history import History
from pai_backend.scheduling.queue import Entry, Policy, Queue
from pai_backend.scheduling.queue.booked import RunSpan
from pai_backend.simulation.fate import RunOutcome
from pai_backend.simulation.fitting import check_nodes, refusals
from pai_backend.simulation.growing import Growing
from pai_backend.simulation.health import BrokenGpus
from pai_backend.simulation.life import GroupLife
from pai_backend.simulation.meter import Meter
from pai_backend.simulation.moments import Agenda, Foreseen, MomentKind, date, seconds
from pai_backend.simulation.report import Report
from pai_backend.simulation.reserving import booked
from pai_backend.simulation.summing import report
from pai_backend.simulation.trace import Arrival, Cancellation, Change, Failure, NewConfig, Repair, Reservation, Trace
from pai_backend.simulation.waiting import Capped


@dataclass(frozen=True, slots=True)
class Rules:
    """How a trace is played: the rules of the queue, and how long evicted groups hold their place, in seconds.

    ``estimates``: note the estimated start of each waiting group; costs some dozen decisions for each.
    ``later`` are the configurations that the trace goes over to, by the names that it has for them; ``elsewhere`` is
    another one on which it is played too, so that nodes may be named which only that has.
    """

    policy: Policy = field(default_factory=Policy)
    grace_s: float = 0.0
    estimates: bool = False
    later: Mapping[str, ClusterConfig] = field(default_factory=dict)
    elsewhere: ClusterConfig | None = None


def replay(config: ClusterConfig, trace: Trace, rules: Rules | None = None) -> Report:
    """Play a trace on a cluster that is empty and well.

    A group that is preempted, or whose node fails, waits again at its old place and runs its whole duration again.
    Groups that could not start even in the empty cluster are refused, as on submission. The same input gives the same
    report. Costs a few decisions for each arrival and end.

    Raises DocumentError for a trace that names what the configuration does not have, and for one that would take
    longer than there are dates for.
    """
    rules = rules or Rules()
    others = [*rules.later.values(), *([rules.elsewhere] if rules.elsewhere is not None else [])]
    check_nodes(trace, [config, *others])
    arrivals = trace.arrivals
    entries = {
        each.name: Entry(
            each.group,
            each.user,
            _microseconds(date(each.at)),
            tie=f"{number:09}",
            longest=None if each.longest is None else timedelta(seconds=each.longest),
        )
        for number, each in enumerate(arrivals)
    }
    refused = refusals(config, trace, entries, rules.policy, rules.later)
    lives = {each.name: GroupLife(each, entries[each.name]) for each in arrivals}
    played = _Replay(config, trace, rules, {name: life for name, life in lives.items() if name not in refused})
    try:
        played.run()
    except OverflowError as error:
        hint = "Make runs shorter, or the cluster larger."
        raise DocumentError("the trace would take thousands of years", hint=hint) from error
    return report(played.meter, lives.values(), list(refused.values()))


class _Replay:
    """One simulation. ``lives`` are the groups that are not refused."""

    def __init__(self, config: ClusterConfig, trace: Trace, rules: Rules, lives: dict[str, GroupLife]) -> None:
        self._ledger = Ledger(config)
        self._queue = Queue(self._ledger, rules.policy, ends=self._ends, spans=self._span)
        self._rules = rules
        self._lives = lives
        self._agenda = Agenda()
        self._look: datetime | None = None
        configs = (config, *rules.later.values())
        vcs = tuple(dict.fromkeys(vc for each in configs for vc in each.virtual_clusters))
        self.meter = Meter(vcs, min((each.at for each in trace.arrivals), default=0.0))
        self._capped = Capped(self._queue)
        self._growing = Growing(self._ledger, self._queue.bookings.in_cells)
        self._health = BrokenGpus(self._queue, self.meter)
        self._changes: dict[str, Change] = {}
        self._history = History()
        self._configure(config)
        for number, line in enumerate(trace.lines):
            self._expect(line.event, str(number))

    def run(self) -> None:
        """Until nothing is left that will happen."""
        while (now := self._agenda.next) is not None:
            self.meter.pass_until(max(seconds(now), self.meter.at_s))
            arrived = []
            while (happening := self._agenda.take(now)) is not None:
                arrived += self._happen(happening, now)
            self._decide(now)
            self._grow(now)
            self._capped.look(self._lives, now)
            self._estimate(arrived, now)
            self.meter.mark()
        self._capped.close(self._lives)

    # -- what happens ----------------------------------------------------------------------------------------------

    def _expect(self, event: Arrival | Change, number: str) -> None:
        """A line of the trace lies ahead."""
        if isinstance(event, Arrival):
            if event.name in self._lives:
                self._agenda.add(date(event.at), MomentKind.ARRIVAL, event.name)
        elif isinstance(event, Cancellation):
            if event.name in self._lives:
                self._agenda.add(date(event.at), MomentKind.CANCELLATION, event.name)
        else:
            self._changes[number] = event
            self._agenda.add(date(event.at), MomentKind.CHANGE, number)

    def _happen(self, happening: Foreseen, now: datetime) -> list[str]:
        """One thing; the group that arrived with it, if any."""
        name = happening.subject
        if happening.kind is MomentKind.CHANGE:
            self._change(self._changes[name], now)
        elif happening.kind is MomentKind.ARRIVAL:
            self._line_up(self._lives[name])
            self.meter.waiting += self._lives[name].entry.group.leaves
            return [name]
        elif happening.kind is MomentKind.CANCELLATION:
            self._cancel(self._lives[name], now)
        elif happening.kind not in (MomentKind.LOOK, MomentKind.RESERVATION):
            life = self._lives[name]
            if happening.kind is MomentKind.END and happening.number == life.end:
                self._stop(life, RunOutcome.OVERRUN if life.is_cut else RunOutcome.DONE, now)
            elif happening.kind is MomentKind.EVICTION and happening.run == life.run and life.placement is not None:
                self._stop(life, RunOutcome.PREEMPTED, now)
        return []

    def _line_up(self, life: GroupLife) -> None:
        """A group waits from now on, with the turn that its like and its user's runs so far give it."""
        arrival = life.arrival
        likely = self._history.likely_of(arrival.user, arrival.kind, arrival.expected)
        put_off = self._rules.policy.order_of(arrival.vc).put_off(likely)
        life.entry = replace(life.entry, order=_microseconds(date(arrival.at) + put_off))
        self._queue.line_up(life.entry)

    def _stop(self, life: GroupLife, outcome: RunOutcome, now: datetime) -> None:
        """A run is over: the group has ended, or waits again."""
        name, opportunistic = life.arrival.name, life.is_opportunistic
        self.meter.take(life.stop(outcome, now), -1, opportunistic=opportunistic)
        self.meter.close()
        self._growing.drop(name)
        self._growing.stir()
        life.end = 0
        if outcome in (RunOutcome.DONE, RunOutcome.CANCELLED, RunOutcome.OVERRUN):
            self._queue.release(name)
            if outcome is RunOutcome.DONE:
                self._history.note(Ran(life.arrival.user, life.arrival.kind, max(1, round(life.arrival.duration))))
        else:
            self._queue.put_back(name)
            self.meter.waiting += life.entry.group.leaves

    def _cancel(self, life: GroupLife, now: datetime) -> None:
        if life.has_ended:
            return
        if life.placement is not None:
            self._stop(life, RunOutcome.CANCELLED, now)
        else:
            self._queue.release(life.arrival.name)
            self.meter.waiting -= life.entry.group.leaves
            self.meter.close()
        life.cancel(now)

    def _change(self, change: Change, now: datetime) -> None:
        self._growing.stir()
        if isinstance(change, Failure):
            devices = self._health.fail(change.node, change.devices)
            for name in [*self._queue.running]:
                if self._lives[name].runs_on(change.node, devices):
                    self._stop(self._lives[name], RunOutcome.FAILED, now)
            self._health.count(change.node)
        elif isinstance(change, Repair):
            self._health.repair(change.node, change.devices)
            self._health.count(change.node)
        elif isinstance(change, NewConfig):
            self._go_over(self._rules.later[change.file], now)
        elif isinstance(change, Reservation):
            still = [each for each in self._queue.bookings.all if each.booking.ends > now]
            self._queue.set_bookings([*still, booked(change)])
            for moment in (change.begins, change.ends):
                if date(moment) > now:
                    self._agenda.add(date(moment), MomentKind.RESERVATION)

    def _go_over(self, config: ClusterConfig, now: datetime) -> None:
        """Another configuration takes effect; what runs, runs on."""
        effects = self._ledger.reconfigure(config)
        self._queue.catch_up()
        self._configure(config)
        self._health.tell_again()
        for name in effects.displaced:
            self._turn(name, now, opportunistic=True)
        for name in effects.regained:
            self._turn(name, now, opportunistic=False)

    def _configure(self, config: ClusterConfig) -> None:
        sizes = {name: sum(len(node.indexes) for node in nodes) for name, nodes in self._ledger.nodes.items()}
        owned = {each.vc: each.gpus_after for each in compare(config, config).virtual_clusters}
        self.meter.configure(sizes, owned)

    def _turn(self, name: str, now: datetime, *, opportunistic: bool) -> None:
        life = self._lives[name]
        if life.placement is not None:
            self.meter.take(life.placement, -1, opportunistic=life.is_opportunistic)
        life.turn(now, opportunistic=opportunistic)
        if life.placement is not None:
            self.meter.take(life.placement, 1, opportunistic=life.is_opportunistic)

    # -- what is decided -------------------------------------------------------------------------------------------

    def _decide(self, now: datetime) -> None:
        """Let the queue decide all that it can at this instant."""
        more = True
        while more:
            answer = self._queue.advance(now)
            for name in answer.upgraded:
                self._turn(name, now, opportunistic=False)
            for decision in answer.decided:
                for name in decision.displaced:
                    self._turn(name, now, opportunistic=True)
                if isinstance(decision, Bound):
                    self._start(decision, now)
                else:
                    self._evict(decision, now)
            more = answer.more
            look = answer.look_again
            if look is not None and (self._look is None or self._look <= now or look < self._look):
                self._look = look
                self._agenda.add(look, MomentKind.LOOK)

    def _start(self, decision: Bound, now: datetime) -> None:
        life = self._lives[decision.placement.group.name]
        end = life.start(decision.placement, now)
        self.meter.waiting -= life.entry.group.leaves
        self.meter.take(decision.placement, 1, opportunistic=life.is_opportunistic)
        self._expect_end(life, end)
        if not life.is_full:
            self._growing.add(life)

    def _expect_end(self, life: GroupLife, end: datetime) -> None:
        """When a run ends: done, or when it has run for as long as it may, which allows no other run."""
        cut = self._span(life.arrival.name).bound or end
        life.is_cut = cut < end
        life.end = self._agenda.add(min(cut, end), MomentKind.END, life.arrival.name)

    def _evict(self, decision: Preempt, now: datetime) -> None:
        for name in decision.victims:
            self._agenda.add(
                now + timedelta(seconds=self._rules.grace_s), MomentKind.EVICTION, name, self._lives[name].run
            )

    def _grow(self, now: datetime) -> None:
        for life, placement in self._growing.grow():
            assert life.placement is not None
            self.meter.take(life.placement, -1, opportunistic=life.is_opportunistic)
            end = life.grow(placement, now)
            self.meter.take(placement, 1, opportunistic=life.is_opportunistic)
            self._expect_end(life, end)

    # -- what is believed ------------------------------------------------------------------------------------------

    def _ends(self, name: str) -> datetime | None:
        life = self._lives.get(name)
        if life is None:
            return None
        return life.expected_end()

    def _span(self, name: str) -> RunSpan:
        """When a run began, and when it is stopped: by its own longest run, or by that of its virtual cluster."""
        life = self._lives.get(name)
        began = None if life is None else life.last_start
        if life is None or began is None:
            return RunSpan()
        longest = self._queue.bookings.longest(life.entry)
        return RunSpan(began, None if longest is None else began + longest)

    def _estimate(self, arrived: list[str], now: datetime) -> None:
        """Note the estimated start of the groups that have arrived and wait."""
        for name in arrived if self._rules.estimates else ():
            ticket = self._queue.waiting.get(name)
            if ticket is None or ticket.line is None:
                continue
            told = estimate(self._queue, ticket.entry, now, self._run_time)
            if told is not None:
                self._lives[name].estimated_s = seconds(told.at)

    def _run_time(self, entry: Entry) -> timedelta | None:
        expected = self._lives[entry.group.name].arrival.expected
        return None if expected is None else timedelta(seconds=expected)


def _microseconds(turn: datetime) -> int:
    return round(turn.timestamp() * 1_000_000)
