"""Plays one trace and collects how far each operation agrees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pai_backend.model.errors import PaiError
from pai_backend.scheduling import Ledger
from pai_backend.scheduling.cells.tree import State
from pai_backend.scheduling.config.model import ClusterConfig
from pai_backend.scheduling.core.decision import Decision
from pai_backend.scheduling.request import Group
from tests.conformance.hived import invariants
from tests.conformance.hived.answer import Answer, decided, free_counts, recorded, used_leaves
from tests.conformance.hived.follow import CannotFollow, follow
from tests.conformance.hived.justify import Case, Reasoning, justify
from tests.conformance.hived.levels import first_difference, state_differs
from tests.conformance.hived.trace import Record, Trace, group_of


@dataclass(frozen=True)
class Difference:
    """An operation on which we differ; ``why`` None is one that nothing justifies."""

    trace: str
    number: int
    op: str
    level: str
    why: Reasoning | None
    ours: Answer
    theirs: Answer


@dataclass
class Result:
    """A played trace: operations seen, differences, broken laws."""

    trace: str
    operations: int = 0
    differences: list[Difference] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)


class Player:
    """The cluster and what the trace has submitted so far."""

    def __init__(self, trace: Trace, configs: Mapping[str, ClusterConfig]) -> None:
        self.trace = trace
        self.configs = configs
        self.bad: set[str] = set()
        self.submitted: dict[str, Group] = {}
        self.result = Result(trace.id)
        self.cluster = self._start(trace.config)
        self.initial = free_counts(self.cluster)
        self.was_cancelled: set[str] = set()
        """Groups that were victims when a preemption was cancelled."""
        self._drift: object = None
        """The difference of states that an earlier operation left behind, already reported there."""

    def _start(self, config: str) -> Ledger:
        """As the reference starts: every node bad until it is reported healthy, in order of the configuration."""
        cluster = Ledger(self.configs[config], by_size=False)
        for name in cluster.nodes:
            cluster.set_node_health(name, healthy=False)
        for name in cluster.nodes:
            if name not in self.bad:
                cluster.set_node_health(name, healthy=True)
        return cluster

    def play(self) -> Result:
        """All operations, then the end: all released, all healthy, all free."""
        for number, (op, outcome) in enumerate(zip(self.trace.ops, self.trace.outcomes, strict=True)):
            self._step(number, op, recorded(outcome))
            self._laws(f"{self.trace.id} op {number}", invariants.after_operation(self.cluster))
        self._laws(f"{self.trace.id} end", invariants.when_empty(self.cluster))
        return self.result

    def _laws(self, where: str, broken: list[str]) -> None:
        self.result.broken.extend(f"{where}: {law}" for law in broken)

    def _step(self, number: int, op: Record, theirs: Answer) -> None:
        kind, name = op["op"], op.get("group", "")
        self.result.operations += 1
        if kind == "submit":
            self.submitted[name] = group_of(name, op["spec"])
        if kind in ("submit", "retry") or (kind == "failPod" and self._starts_afresh(name)):
            self._attempt(number, op, theirs)
            return
        ours = self._apply(kind, op, name, theirs)
        self._compare(number, op, self._with_state(ours), theirs, None)

    def _starts_afresh(self, name: str) -> bool:
        """A failed pod of a one-pod group: the group is released and scheduled again."""
        held = self.cluster.groups.get(name)
        if held is None or held.state is not State.ALLOCATED or held.group.pods > 1:
            return False
        self.cluster.release(name)
        return True

    def _apply(self, kind: str, op: Record, name: str, theirs: Answer) -> Answer:
        """An operation that asks for no place."""
        if kind == "delete":
            self._note_cancelled(name)
            self.cluster.release(name)
            self.submitted.pop(name, None)
            return Answer("ok")
        if kind == "failPod":
            held = self.cluster.groups.get(name)
            if held is None or held.state is not State.ALLOCATED:
                return Answer("skipped")
            # The new pod takes the slot of the failed one; which one that is only the record says.
            return replace(theirs, kind="bound")
        if kind in ("nodeBad", "nodeHealthy"):
            healthy = kind == "nodeHealthy"
            (self.bad.discard if healthy else self.bad.add)(op["node"])
            self.cluster.set_node_health(op["node"], healthy=healthy)
            return Answer("ok")
        assert kind == "restart", kind
        placements = self.cluster.placements()
        self.cluster = self._start(op["config"])
        restored = self.cluster.restore(placements.values())
        return Answer("ok", displaced=tuple(sorted(restored.displaced)))

    def _note_cancelled(self, name: str) -> None:
        held = self.cluster.groups.get(name)
        if held is not None and held.state is State.PREEMPTING:
            self.was_cancelled.update(
                other.group.name for other in self.cluster.groups.values() if held in other.pursuers
            )

    def _attempt(self, number: int, op: Record, theirs: Answer) -> None:
        """One decision: ours is compared, then the cluster does what the reference did."""
        group = self.submitted[op["group"]]
        held = self.cluster.groups.get(group.name)
        if held is not None and held.state is not State.PREEMPTING:
            self._compare(number, op, self._with_state(Answer("skipped")), theirs, None)
            return
        try:
            decision = self.cluster.decide(group, op.get("suggestedNodes"))
        except PaiError:
            self._compare(number, op, self._with_state(Answer("error")), theirs, None)
            return
        self._laws(f"{self.trace.id} op {number}", invariants.of_decision(self.cluster, group, decision))
        with self.cluster.trial():
            self.cluster.apply(decision)
            ours = self._with_state(decided(decision))
        difference = self._compare(number, op, ours, theirs, decision)
        for name in theirs.cancelled:
            self._note_cancelled(name)
        if difference is None:
            self.cluster.apply(decision)
            return
        try:
            follow(self.cluster, group, theirs)
        except CannotFollow as error:
            self.result.broken.append(f"{self.trace.id} op {number}: cannot follow the reference: {error}")
        if theirs.kind == "wait" and held is not None:
            self.cluster.release(group.name)
        self._drift = self._drift_from(self._with_state(theirs), theirs)

    def _with_state(self, answer: Answer) -> Answer:
        return replace(answer, free=free_counts(self.cluster), used=used_leaves(self.cluster))

    def _drift_from(self, ours: Answer, theirs: Answer) -> object:
        """How our state differs from the recorded one; None when it does not, the old drift when none is recorded."""
        if theirs.free is None and theirs.used is None:
            return self._drift
        if not state_differs(ours, theirs):
            return None
        free = None if theirs.free is None or ours.free is None else _delta(ours.free, theirs.free)
        used = None if theirs.used is None or ours.used is None else _less(ours.used, theirs.used)
        return (free, used)

    def _compare(
        self, number: int, op: Record, ours: Answer, theirs: Answer, decision: Decision | None
    ) -> Difference | None:
        self.result.answers.append(ours)
        level = first_difference(self.cluster, ours, theirs)
        if level is None:
            self._drift = self._drift_from(ours, theirs)
            return None
        drift = self._drift_from(ours, theirs)
        kinds = self.trace.kind_sets[number] if self.trace.kind_sets else []
        case = Case(self.cluster, self.submitted.get(op.get("group", "")), op, ours, theirs, decision, kinds)
        if level == "L2" and drift is not None and drift == self._drift:
            why: Reasoning | None = Reasoning("earlier", "the state differs exactly as after an operation listed above")
        else:
            why = justify(case, level, was_cancelled=self.was_cancelled)
        self._drift = drift
        difference = Difference(self.trace.id, number, op["op"], level, why, ours, theirs)
        self.result.differences.append(difference)
        return difference


def _delta(ours: Mapping[str, list[int]], theirs: Mapping[str, list[int]]) -> dict[str, tuple[int, ...]]:
    return {
        chain: tuple(a - b for a, b in zip(ours[chain], counts, strict=True))
        for chain, counts in theirs.items()
        if ours.get(chain) != counts and chain in ours
    }


def _less(ours: Mapping[str, int], theirs: Mapping[str, int]) -> dict[str, int]:
    return {vc: ours.get(vc, 0) - count for vc, count in theirs.items() if ours.get(vc, 0) != count}
