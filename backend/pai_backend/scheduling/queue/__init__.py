"""Who is next: waiting groups in front of a cluster of cells. Pure: time comes in as an argument.

    queue = Queue(ledger, Policy(), decider=decider)
    queue.add(Entry(group, user="alice", order=17, needs=(cpus, memory)))
    answer = queue.decide(now)                       # changes nothing; ``advance`` is both in one
    queue.apply(answer)
    for decision in answer.decided:                  # Bound: start the tasks. Preempt: end decision.victims
        ...
    queue.release("alice~train")                     # its tasks have all ended; then advance again

The order is priority, then submission, or what else ``Order`` says. What cannot start now is passed over (backfill)
until it has been overtaken long enough; then cells are kept for it. After a release only those are asked who could
profit, and one of each kind for all: see ``index``. ``entry`` and ``policy`` are the words, ``queue`` is what happens,
``holdback`` keeps cells.
docs/scheduling.md says what users may rely on.
"""

from pai_backend.scheduling.queue.entry import Decider, Pass
from pai_backend.scheduling.queue.policy import Cap, Patience, Policy, VcCaps
from pai_backend.scheduling.queue.queue import MOST_ASKED, Queue
from pai_backend.scheduling.request import Entry

__all__ = [
    "MOST_ASKED",
    "Cap",
    "Decider",
    "Entry",
    "Pass",
    "Patience",
    "Policy",
    "Queue",
    "VcCaps",
]
