"""Where a job's tasks run: a pure library, no clock, no I/O, no asyncio.

HiveD's cells, whose public face is here: what a virtual cluster owns is a promise about *shapes*, not about counts.
``jobs`` puts the tasks of jobs on them, within the CPU and memory of the nodes.

    config = read_config(text)                      # HiveD's YAML; every fault at once when it is wrong
    ledger = Ledger(config)
    answer = ledger.decide(Group("alice~train", "vc1", (Member(pods=2, leaves=8),), priority=10))
    match answer:
        case Bound():   ledger.apply(answer)        # start the pods of answer.placement
        case Preempt(): ledger.apply(answer)        # keep the place, end answer.victims, then ask again
        case Wait():    print(answer.reason)        # a code, the numbers and the holders by name
    ledger.release("alice~train")                   # all of its pods have ended

Same input, same output: nothing here iterates over a set or depends on hash order. Where to start reading: ``config``
for the schema, ``cells`` for the trees, ``core.ledger`` for what can be done. docs/scheduling.md explains the ideas.
"""

from pai_backend.scheduling.cells.tree import State
from pai_backend.scheduling.config.derive import derive, to_yaml
from pai_backend.scheduling.config.model import ClusterConfig
from pai_backend.scheduling.config.read import read_config
from pai_backend.scheduling.core.decision import Bound, Decision, Preempt, Wait
from pai_backend.scheduling.core.inspect import cluster_status, group_status, physical_status, virtual_status
from pai_backend.scheduling.core.ledger import Ledger, Outdated
from pai_backend.scheduling.core.restore import Effects, Restored
from pai_backend.scheduling.request import Group, GroupPlace, Member, Reason, WaitCode

__all__ = [
    "Bound",
    "ClusterConfig",
    "Decision",
    "Effects",
    "Group",
    "GroupPlace",
    "Ledger",
    "Member",
    "Outdated",
    "Preempt",
    "Reason",
    "Restored",
    "State",
    "Wait",
    "WaitCode",
    "cluster_status",
    "derive",
    "group_status",
    "physical_status",
    "read_config",
    "to_yaml",
    "virtual_status",
]
