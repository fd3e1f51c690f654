"""Values and refusals of the store that the other rooms use. ``sql.Store`` is the store."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pai_backend.model.ids import JobUid
from pai_backend.model.job import NewEvent as NewEvent
from pai_backend.model.job import State
from pai_backend.model.scope import Scope


class Conflict(Exception):
    """The job's version is not the one seen: another writer changed it. Reload and decide again."""


class Fenced(Exception):
    """The lease epoch of the controller is no longer the current one. Stop acting at once."""


class PortTaken(Exception):
    """A port of the request is leased to another task on that machine."""


class CannotTakeBack(Exception):
    """A job that runs cannot be stored again; the message says why, in a sentence."""


@dataclass(frozen=True)
class Lease:
    """Proof of being the one controller."""

    epoch: int
    expires_at: datetime


@dataclass(frozen=True)
class JobSummary:
    """A row of the job list, made from columns alone (no task is loaded)."""

    uid: JobUid
    name: str
    user: str
    alias: str
    state: str
    phase: str
    why: str
    virtual_cluster: str
    submitted_at: datetime
    launched_at: datetime | None
    completed_at: datetime | None
    retries: int
    task_count: int
    gpu_count: int
    exit_status: int | None
    warnings: int
    desired: str
    priority: str | None
    role_count: int
    platform_retries: int
    resource_retries: int
    tags: tuple[str, ...]
    gpu_types: tuple[str, ...]
    why_wording: str = ""
    """JSON; empty where ``why`` has no template."""


@dataclass(frozen=True)
class Sight:
    """Which jobs a caller sees: those of ``user`` (None: of all users), and of the ``managed`` virtual clusters.

    ``within``: no jobs but those of this virtual cluster; empty: of all.
    """

    user: str | None = None
    managed: tuple[str, ...] = ()
    within: str = ""


@dataclass(frozen=True)
class JobFilter:
    """Which jobs to list; ``None`` and empty mean no restriction.

    ``sight`` says which jobs may be listed at all, ``usernames`` whose are asked for. In ``priorities`` None stands for
    jobs that name none. ``submitted_since`` is the earliest submission. A job matches with any of ``gpu_types`` and of
    ``with_tags``, and without all of ``without_tags``. Unless ``count`` is set, the total that comes with a page is
    only what the page itself shows: its offset and its length.
    """

    sight: Sight = Sight()
    usernames: tuple[str, ...] = ()
    states: tuple[State, ...] = ()
    virtual_clusters: tuple[str, ...] = ()
    priorities: tuple[str | None, ...] = ()
    gpu_types: tuple[str, ...] = ()
    with_tags: tuple[str, ...] = ()
    without_tags: tuple[str, ...] = ()
    keyword: str = ""
    submitted_since: datetime | None = None
    order: str = "submissionTime"
    descending: bool = True
    offset: int = 0
    limit: int = 100
    count: bool = True

    @property
    def owners(self) -> tuple[str, ...] | None:
        """Whose jobs are meant; None for everybody's. With managed virtual clusters ``sight`` restricts further."""
        user = self.sight.user
        if user is None or self.sight.managed:
            return self.usernames or None
        return (user,) if not self.usernames or user in self.usernames else ()


@dataclass(frozen=True)
class Explanation:
    """Why a job waits, as the controller last answered; ``body`` is JSON, empty when it did not wait.

    ``answered_at`` is None while it has never answered. ``open``: it was asked again since.
    """

    asked_at: datetime
    answered_at: datetime | None
    body: str
    open: bool


@dataclass(frozen=True)
class AccessToken:
    """A token that a user made or signed in for, without the token: ``digest`` is its SHA-256 in hexadecimal."""

    digest: str
    user: str
    application: bool
    created_at: datetime
    expires_at: datetime | None
    name: str = ""
    scopes: frozenset[Scope] = frozenset()
    """What it is limited to; empty: it is not limited."""
    last_used_at: datetime | None = None
    """To the minute."""
    virtual_cluster: str = ""
    """The one whose jobs it is for; empty: it is not limited."""


@dataclass(frozen=True)
class UserKey:
    """A registered SSH public key.

    ``job``: the only job it is for. ``replaces``: the fingerprint of the key that is removed at this one's first use.
    """

    fingerprint: str
    user: str
    public_key: str
    comment: str
    added_at: datetime
    name: str = ""
    expires_at: datetime | None = None
    job: JobUid | None = None
    replaces: str = ""
    last_used_at: datetime | None = None
    last_used_from: str = ""
    made_by: str = ""
    """Digest of the application token that registered it, and with which it ends; empty: none did."""
    within: str = ""
    """The virtual cluster whose jobs it is limited to, as that token is; empty: it is not."""


def slot(job: JobUid, role_number: int, index: int) -> str:
    """The name of a task's place in its job, the same over attempts; owns ports and the host key."""
    return f"{job}-{role_number}-{index}"


def job_key_slots(job: JobUid) -> tuple[str, str]:
    """The names that a job's own key pairs are kept under, beside its tasks' host keys: Ed25519, then RSA."""
    return f"{job}-key", f"{job}-rsa"


def peer_key_slot(job: JobUid) -> str:
    """The name that the key is kept under by which tasks of a job log in to each other: a way in from nowhere else."""
    return f"{job}-peers"
