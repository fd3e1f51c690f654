"""Why a group of tasks waits: the one form in which API, panel, command line and magics tell it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from pydantic import Field

from pai_backend.model.base import Model


class Cause(StrEnum):
    """What keeps a group from starting. The one reported is the binding one: without it the group would start."""

    TYPE = "type"
    """The virtual cluster owns no cells of the type asked for, or none at all any more."""
    QUOTA = "quota"
    """The virtual cluster owns less than the group needs; it never starts as it is."""
    SHAPE = "shape"
    """The virtual cluster owns enough, but not in cells large enough; it never starts as it is."""
    CAP = "cap"
    """The user, or the virtual cluster, may not have more running at once."""
    BAD_NODES = "bad-nodes"
    """It would start if all nodes were well."""
    LINEAR = "linear"
    """Nodes with free GPUs lack CPU or memory, or are not meant for it."""
    PORT = "port"
    """A port with a fixed number is taken on the nodes with free GPUs."""
    PREEMPTING = "preempting"
    """It has a place and waits for the groups there to be stopped."""
    KEPT = "kept"
    """GPUs are reserved for it; it starts when those that run there have ended."""
    RESERVED = "reserved"
    """GPUs are kept for others that come first."""
    FRAGMENTED = "fragmented"
    """Enough is free, but scattered over too many nodes."""
    BOOKED = "booked"
    """GPUs are reserved for a time, by a manager of the virtual cluster."""
    PRIORITY = "priority"
    """Groups of the same or a higher priority hold what it needs."""
    AHEAD = "ahead"
    """Others come first; it is asked for after them."""


class Holder(Model):
    """A group that has what another needs."""

    group: str
    user: str = Field(default="", description="Empty when it is not known.")
    vc: str = ""
    priority: int = 0
    gpus: int = Field(default=0, description="Leaf cells it has.")
    until: datetime | None = Field(default=None, description="When it is expected to end, where that is known.")


class LackOf(StrEnum):
    """What a node lacks besides GPUs, or why it is not for a group."""

    CPU = "cpu"
    MEMORY = "memory"
    GPU = "gpu"
    """GPUs beside those that other people's pods hold."""
    PORT = "port"
    SELECTOR = "selector"
    """It does not have a label that is asked for."""
    TAINT = "taint"
    """It has a taint that is not tolerated."""
    CORDONED = "cordoned"
    """Nothing new is started there."""


class Lack(Model):
    """What one node lacks. Numbers are cores, MiB, or the port."""

    node: str
    what: LackOf
    needed: int = 0
    available: int = 0
    detail: str = Field(default="", description="The label asked for (key=value), or the taint (key=value:effect).")
    holder: str = Field(default="", description="The group that has the port, where it is known.")
    others: int = Field(default=0, description="How much of it pods hold that are not of this backend.")


class CapReached(Model):
    """A cap that would be exceeded; of a user when ``user`` is given, inside one virtual cluster when ``vc`` is."""

    vc: str = ""
    user: str = ""
    sweep: str = Field(default="", description="The limit is the user's own, of this sweep.")
    tasks: int | None = Field(default=None, description="The most tasks at once; null: no limit.")
    gpus: int | None = None
    jobs: int | None = None
    running_tasks: int = 0
    running_gpus: int = 0
    running_jobs: int = 0
    never: bool = Field(default=False, description="The group alone exceeds it.")


class BookedFor(Model):
    """A reservation that a group has to leave room for."""

    name: str
    gpus: int
    gpu_type: str = ""
    begins: datetime
    ends: datetime
    whom: str = Field(default="", description="Users and groups that it is for; empty: all of the virtual cluster.")


class ChangeKind(StrEnum):
    """One thing to do differently."""

    TYPE = "type"
    VC = "virtual-cluster"
    FEWER = "fewer-tasks"
    SMALLER = "smaller-tasks"
    OPPORTUNISTIC = "opportunistic"
    SHORTER = "max-duration"
    """Let the job end before a reservation begins."""
    ANYWHERE = "anywhere"
    """Do not ask for one cell that contains its tasks."""
    DROP_LABEL = "drop-label"
    """Ask for no such label of nodes: the document, or the administrator for its SKU."""
    TOLERATE = "tolerate"
    """For an administrator: let tasks of its SKU tolerate the taint, or take the taint away."""
    UNCORDON = "uncordon"
    """For an administrator: make the nodes schedulable again."""


class Change(Model):
    """A change with which the group would have started at once when this was asked; tried, not guessed."""

    kind: ChangeKind
    leaf_type: str = Field(default="", description="type: the GPU type to ask for instead.")
    vc: str = Field(default="", description="virtual-cluster: the one to submit to instead.")
    member: int = Field(default=0, description="fewer-tasks, smaller-tasks: which member of the group, from 0.")
    role: str = Field(default="", description="fewer-tasks, smaller-tasks: the task role that the member is.")
    before: int = Field(default=0, description="fewer-tasks: tasks now; smaller-tasks: GPUs of a task now.")
    after: int = Field(
        default=0, description="The most of them with which it starts; max-duration: the longest time, in seconds."
    )
    nodes: tuple[str, ...] = Field(default=(), description="drop-label, tolerate, uncordon: the nodes it opens.")
    detail: str = Field(default="", description="drop-label: key=value; tolerate: the taint; anywhere: the cell type.")


class Basis(StrEnum):
    """Where it is known from how long a group runs."""

    DECLARED = "declared"
    """Its document says so (expectedRunTime)."""
    HISTORY = "history"
    """Earlier jobs of the same user and kind ran so long."""


class Told(Model):
    """The reason in words."""

    sentence: str
    remedy: str
    estimate: str = Field(
        default="", description="What the time of the start is worth, and what it rests on; empty without an estimate."
    )


class Waiting(Model):
    """Why a group waits, the numbers behind it, and what would help. GPUs are leaf cells."""

    group: str
    cause: Cause
    vc: str
    priority: int
    leaf_type: str = Field(default="", description="The GPU type asked for; empty for any.")
    needed: int = Field(default=0, description="GPUs it cannot start without.")
    largest_task: int = Field(default=0, description="GPUs of its largest task.")
    owned: int = Field(default=0, description="GPUs that the virtual cluster owns where the group may run.")
    free: int = Field(default=0, description="GPUs there that no group of its priority or a higher one has.")
    largest_free: int = Field(default=0, description="The largest task that would find room now.")
    within: str = Field(default="", description="The cell type of which one cell must contain it, or one role of it.")
    holders: tuple[Holder, ...] = ()
    nodes: tuple[str, ...] = Field(default=(), description="Bad nodes, or those that lack something.")
    lacks: tuple[Lack, ...] = ()
    put_off_s: int = Field(default=0, description="By how much the order of the queue puts off its turn.")
    cap: CapReached | None = None
    booked: BookedFor | None = Field(default=None, description="booked: the reservation.")
    position: int = Field(default=0, description="Place in the queue of its virtual cluster, from 1.")
    waiting: int = Field(default=0, description="How many wait in that queue.")
    overtaken: int = Field(default=0, description="Later groups that started while it was first.")
    starts_at: datetime | None = Field(
        default=None, description="Estimate of when it starts, by known run times; null when too little is known."
    )
    rests_on: tuple[Basis, ...] = Field(
        default=(), description="Where the run times of the estimate are from: declared, history, or both."
    )
    changes: tuple[Change, ...] = Field(default=(), description="What would start it now, the smallest change first.")
    texts: Mapping[str, Told] = Field(default_factory=dict, description="Language tag (en, zh_CN) -> words.")
