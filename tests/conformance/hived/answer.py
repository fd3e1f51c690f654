"""One operation's answer in a form in which ours and the reference's can be compared."""

from __future__ import annotations

from dataclasses import dataclass, field

from pai_backend.scheduling import Ledger
from pai_backend.scheduling.core.decision import Bound, Decision, Preempt
from tests.conformance.hived.trace import Record

Pods = tuple[tuple[str, tuple[int, ...]], ...]
"""Per pod, its node and its device indexes, ascending."""


@dataclass(frozen=True)
class Answer:
    """``owned`` are the quota types of a bound group's pods. State is None where a recorded outcome omits it."""

    kind: str
    chain: str = ""
    pods: Pods = ()
    owned: tuple[str, ...] = ()
    victims: tuple[str, ...] = ()
    displaced: tuple[str, ...] = ()
    cancelled: tuple[str, ...] = ()
    free: dict[str, list[int]] | None = field(default=None, compare=False)
    used: dict[str, int] | None = field(default=None, compare=False)


def recorded(outcome: Record) -> Answer:
    """The reference's answer."""
    pods = outcome.get("placement") or outcome.get("reserved") or ()
    return Answer(
        outcome["kind"],
        outcome.get("chain", ""),
        tuple((pod["node"], tuple(sorted(pod["cells"]))) for pod in pods),
        tuple(pod.get("pre", "") for pod in pods) if outcome["kind"] == "bound" else (),
        tuple(sorted(outcome.get("victims") or ())),
        tuple(sorted(outcome.get("lazyPreempted") or ())),
        tuple(sorted(outcome.get("canceledPreemptions") or ())),
        outcome.get("freeList"),
        outcome.get("vcUsed"),
    )


def decided(decision: Decision) -> Answer:
    """Our answer, without state."""
    if not isinstance(decision, Bound | Preempt):
        return Answer("wait")
    bound = isinstance(decision, Bound)
    return Answer(
        "bound" if bound else "preempt",
        decision.placement.chain if bound else "",
        tuple((pod.node, tuple(sorted(pod.cells))) for pod in decision.placement.pods.values()),
        tuple(pod.owned for pod in decision.placement.pods.values()) if bound else (),
        () if isinstance(decision, Bound) else tuple(sorted(decision.victims)),
        tuple(sorted(decision.displaced)),
        tuple(sorted(decision.cancelled)),
    )


def free_counts(cluster: Ledger) -> dict[str, list[int]]:
    """Chain -> free cells per level, leaf first."""
    return {name: [len(cells) for cells in chain.buddy.lists[1:]] for name, chain in cluster.chains.items()}


def used_leaves(cluster: Ledger) -> dict[str, int]:
    """Virtual cluster -> leaves that count as in use."""
    used = dict.fromkeys(cluster.config.virtual_clusters, 0)
    for (vc, _), quotas in (*cluster.quotas.items(), *cluster.pinned.items()):
        used[vc] += sum(quotas.owned.values())
    return used
