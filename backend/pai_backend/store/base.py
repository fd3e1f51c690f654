"""The store as the other rooms see it: plain values in, plain values out, one transaction a call.

Rules (architecture §4): no call here touches the network beyond the database; every controller write
checks the controller's lease epoch and the job's version in the same transaction; every change of a
job appends its events with the next ``seq`` in that transaction; a port is leased at most once per machine.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from pai_backend.model.attempts import Times
from pai_backend.model.ids import JobUid, PortLease
from pai_backend.model.job import Event, Job, State, Task
from pai_backend.model.job import NewEvent as NewEvent
from pai_backend.store.deletion import DeletionStore
from pai_backend.store.grants import Act, GrantStore
from pai_backend.store.idling import IdleStore
from pai_backend.store.versions import ConfigStore

if TYPE_CHECKING:
    from pai_backend.scheduling.jobs.reorder import Move, Moved
    from pai_backend.store.recovery import RecoveryStore


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


@dataclass(frozen=True)
class JobFilter:
    """Which jobs to list; ``None`` and empty mean no restriction.

    ``user`` is whose jobs may be listed at all, ``usernames`` are those asked for. In ``priorities`` None stands for
    jobs that name none. A job matches with any of ``with_tags`` and without all of ``without_tags``. Unless ``count``
    is set, the total that comes with a page is only what the page itself shows: its offset and its length.
    """

    user: str | None = None
    usernames: tuple[str, ...] = ()
    states: tuple[State, ...] = ()
    virtual_clusters: tuple[str, ...] = ()
    priorities: tuple[str | None, ...] = ()
    with_tags: tuple[str, ...] = ()
    without_tags: tuple[str, ...] = ()
    keyword: str = ""
    order: str = "submissionTime"
    descending: bool = True
    offset: int = 0
    limit: int = 100
    count: bool = True

    @property
    def owners(self) -> tuple[str, ...] | None:
        """Whose jobs are meant; None for everybody's."""
        if self.user is None:
            return self.usernames or None
        return (self.user,) if not self.usernames or self.user in self.usernames else ()


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


class Store(Protocol):
    """Everything durable. Implemented by ``store.sql.SqlStore`` for SQLite and PostgreSQL."""

    @property
    def configs(self) -> ConfigStore:
        """The versions of the cluster configuration."""
        ...

    @property
    def deletion(self) -> DeletionStore:
        """Jobs that are deleted."""
        ...

    @property
    def idling(self) -> IdleStore:
        """Uses and idle clocks of jobs."""
        ...

    @property
    def recovery(self) -> RecoveryStore:
        """Which database this is, and what runs without being known to it."""
        ...

    @property
    def grants(self) -> GrantStore:
        """Keys, certificates and shares, with their audit."""
        ...

    async def open(self) -> None:
        """Connect, migrate the schema to head and read the secret keys (safe when several processes do it at once)."""
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...

    # ---- intents, written by the api -----------------------------------------------------------
    async def submit(
        self,
        job: Job,
        source: bytes,
        filename: str,
        media_type: str,
        events: Sequence[NewEvent],
        *,
        secrets: Mapping[str, Any] = ...,
        replace: bool = False,
    ) -> Job:
        """Insert a new job, its tasks, its document and its first events. Concurrent calls may share a transaction.

        The document and ``secrets`` (names and values of its secrets; none if not given) are kept sealed.

        ``job.alias`` is a proposal: when taken, a suffixed one is stored and returned.
        Raises NameTaken (model.errors) when this user has a job of that name, unless it is to ``replace`` that one:
        then it gets that job's name, alias and host keys; that job gets others, ``job.replaced``, and is asked to stop.
        """
        ...

    async def request_stop(self, uid: JobUid, by: str, at: datetime, reason: str = "") -> Job:
        """Set ``desired`` to STOP unless final or already so; appends ``job.stop-requested``. Idempotent."""
        ...

    async def request_restart(self, uid: JobUid, by: str, at: datetime) -> Job:
        """Let a job that has ended run again under its uid and names; appends ``job.restart-requested``.

        Idempotent: a job that goes on is left alone. Raises NoSuchJob, ReadOnlyJob (it is being stopped or deleted),
        Unavailable (the disk is full).
        """
        ...

    async def request_release(
        self, uid: JobUid, names: Collection[str] | None, by: str, at: datetime
    ) -> tuple[Task, ...]:
        """Release kept tasks (``role-index``; None: all), returns which; appends ``job.release-requested``.

        Idempotent: what is not kept is left alone. Raises NoSuchJob.
        """
        ...

    async def request_move(self, move: Move, by: str, at: datetime, *, shared: bool) -> tuple[Moved, ...]:
        """Change places in the queue of waiting jobs, returns the turns that this changes; each has a ``job.moved``.

        ``shared``: all virtual clusters wait for the same cells. All or nothing; idempotent. Raises NoSuchJob,
        NotWaiting, Forbidden, OtherQueue.
        """
        ...

    # ---- the controller's side -----------------------------------------------------------------
    async def acquire_lease(self, holder: str, ttl_s: float, now: datetime, *, force: bool = False) -> Lease | None:
        """Become the controller, or None while another's lease is unexpired. Each success has a new, higher epoch.

        ``force`` takes over an unexpired lease: for callers that hold an exclusive lock proving the other dead.
        """
        ...

    async def renew_lease(self, epoch: int, ttl_s: float, now: datetime) -> Lease:
        """Prolong. Raises Fenced when the epoch is no longer current."""
        ...

    async def lease(self) -> Lease | None:
        """The latest controller lease, expired or not; None before the first controller."""
        ...

    async def save(
        self,
        job: Job,
        *,
        seen: Job,
        epoch: int,
        events: Sequence[NewEvent],
        at: datetime,
        lease: Sequence[PortLease] = (),
        release: Sequence[str] = (),
    ) -> Job:
        """Write a controller's decision in one transaction and return it with its new version.

        Writes only tasks that differ from ``seen`` (tasks of earlier attempts stay as history), leases
        and releases ports (``release`` names owners), clears the dirty mark. All or nothing.
        Raises Conflict (``seen.version`` is stale), Fenced, PortTaken.
        """
        ...

    async def unfinished(self) -> list[Job]:
        """Every job that is not final or still has a task not forgotten, for recovery."""
        ...

    async def dirty(self) -> list[Job]:
        """Jobs with intents the controller has not seen yet (new, or stop requested), oldest first."""
        ...

    async def run_times(self, limit: int) -> list[Times]:
        """How long attempts that succeeded ran, of the kinds of jobs with the latest ends; the latest last.

        :meth:`save` notes each with the end of its attempt.
        """
        ...

    async def port_leases(self) -> list[PortLease]:
        """All leases."""
        ...

    async def task_keys(self, owner: str) -> str | None:
        """The stored SSH host key (OpenSSH private PEM) of a task slot, if made already."""
        ...

    async def kept_task_keys(self, owners: Collection[str]) -> dict[str, str]:
        """Those of several slots, by slot, that have been made already."""
        ...

    async def put_task_key(self, owner: str, private_pem: str, public: str) -> str:
        """Store a host key unless one is there; returns the one that is kept."""
        ...

    async def keep_task_keys(self, made: Mapping[str, tuple[str, str]], others: Collection[str] = ()) -> dict[str, str]:
        """Store new keys, (private PEM, public line) by slot, of slots that have none.

        Returns what is kept of these slots, and of others that have keys. Raises ReadOnlyJob for the own key of a job
        that has ended, with nothing stored.
        """
        ...

    # ---- why a job waits: asked by the api, answered by the controller --------------------------
    async def ask_why(self, uid: JobUid, at: datetime) -> None:
        """Ask the controller why a job waits; wakes it. Idempotent while the question is open."""
        ...

    async def asked_why(self, limit: int) -> list[JobUid]:
        """Jobs with an open question, the longest open first."""
        ...

    async def answer_why(self, answers: Mapping[JobUid, str], at: datetime, epoch: int) -> None:
        """Close these questions; wakes who waits for the answers. Raises Fenced."""
        ...

    async def explanation(self, uid: JobUid) -> Explanation | None:
        """The last answer; None when it was never asked about this job."""
        ...

    # ---- reading -------------------------------------------------------------------------------
    async def job(self, uid: JobUid) -> Job:
        """Raises NoSuchJob."""
        ...

    async def find(self, name: str, user: str | None = None) -> Job:
        """By ``user~name``, alias, uid, or bare name of ``user``. Raises NoSuchJob."""
        ...

    async def by_alias(self, alias: str) -> Job | None:
        """The job of that alias."""
        ...

    async def list_jobs(self, which: JobFilter) -> tuple[list[JobSummary], int]:
        """A page and the total count that match (see ``JobFilter.count``)."""
        ...

    async def tag(self, uid: JobUid, tag: str) -> None:
        """Give the job a tag. Idempotent. Raises NoSuchJob, InvalidParameters when it has too many."""
        ...

    async def untag(self, uid: JobUid, tag: str) -> None:
        """Take a tag away. Raises NoSuchJob, NoSuchTag."""
        ...

    async def document(self, uid: JobUid) -> tuple[bytes, str, str]:
        """The submitted bytes, file name and media type, exactly as they came."""
        ...

    async def job_secrets(self, uid: JobUid) -> Mapping[str, Any]:
        """Names and values of the secrets of a job's document; empty when it has none. Raises NoSuchJob."""
        ...

    async def events(self, uid: JobUid, after: int = 0, limit: int = 1000, type_: str | None = None) -> list[Event]:
        """Events of one job with ``seq > after``, in order; of one type only, when it is given."""
        ...

    async def news(self, uid: JobUid, after: int, limit: int = 1000) -> tuple[list[Event], bool]:
        """Events of one job with ``seq > after``, in order, and whether no other will come behind them.

        One read for all followers: there may be thousands, and each change of a job wakes some. Raises NoSuchJob.
        """
        ...

    async def recent_events(self, position: str | None, user: str | None, limit: int = 1000) -> tuple[list[Event], str]:
        """Events of all (or one user's) jobs after an opaque position, and the next position.

        ``None`` starts at the present. Delivers at least once: a consumer drops what it has by (job, seq).
        """
        ...

    async def note(self, uid: JobUid, events: Sequence[NewEvent], at: datetime) -> None:
        """Append events that are no part of the job's life, such as logins; its version stays. Raises NoSuchJob."""
        ...

    async def past_tasks(self, uid: JobUid) -> list[dict[str, object]]:
        """Tasks of all attempts as stored (``Task`` in JSON form), oldest first."""
        ...

    async def job_counts(self) -> dict[str, int]:
        """State -> number of jobs, for metrics."""
        ...

    # ---- waking --------------------------------------------------------------------------------
    async def wait_change(self, seen: int, timeout_s: float) -> int:
        """Sleep until anything was committed by any process since ``seen`` (or the time-out); returns the new mark.

        In-process commits wake at once; SQLite's other processes through ``PRAGMA data_version``;
        PostgreSQL through LISTEN/NOTIFY. Start with ``seen=-1``, which returns at once.
        """
        ...

    async def change_mark(self) -> int:
        """The mark of :meth:`wait_change` after a look at the database: the same as before while nothing was committed.

        It may grow without a change. Raises Unavailable.
        """
        ...

    # ---- keys and secrets ----------------------------------------------------------------------
    async def add_key(self, key: UserKey, act: Act) -> None:
        """Register; idempotent by fingerprint for the same user; InvalidParameters when another user has it."""
        ...

    async def replace_keys(self, user: str, wanted: Sequence[UserKey], act: Act) -> None:
        """Make these the user's keys, all or none. Raises InvalidParameters when another user has one of them."""
        ...

    async def keys(self, user: str | None = None) -> list[UserKey]:
        """Registered keys."""
        ...

    async def remove_key(self, user: str, fingerprint: str, act: Act) -> None:
        """Raises NoSuchKey."""
        ...

    async def add_token(self, token: AccessToken) -> None:
        """Keep a token's digest; those whose time was over at its making are forgotten on the way.

        A user has a bounded number: the oldest session makes room for a new one. Raises Forbidden for one
        application token too many.
        """
        ...

    async def token(self, digest: str, now: datetime) -> AccessToken | None:
        """The token of this digest, unless its time is over."""
        ...

    async def tokens_of(self, user: str, now: datetime) -> list[AccessToken]:
        """A user's tokens whose time is not over, oldest first."""
        ...

    async def remove_token(self, user: str, digest: str, act: Act) -> None:
        """Forget a token of the user, by its digest or the digest's beginning, and end what it made.

        Those are keys, certificates and shares that an application token had made, if its user has not made them
        again since. Raises NoSuchToken.
        """
        ...

    async def claim(self, name: str, until: datetime, now: datetime) -> bool:
        """Whether the caller is the first to claim this name; forgotten after ``until``. One wins of any number."""
        ...

    async def kept_secret(self, name: str) -> str | None:
        """A named server secret; None when there is none."""
        ...

    async def secret(self, name: str, make: str) -> str:
        """A named server secret (gateway host key, signing key): the kept one, or ``make`` stored atomically."""
        ...


def slot(job: JobUid, role_number: int, index: int) -> str:
    """The name of a task's place in its job, the same over attempts; owns ports and the host key."""
    return f"{job}-{role_number}-{index}"


def job_key_slots(job: JobUid) -> tuple[str, str]:
    """The names that a job's own key pairs are kept under, beside its tasks' host keys: Ed25519, then RSA."""
    return f"{job}-key", f"{job}-rsa"


def peer_key_slot(job: JobUid) -> str:
    """The name that the key is kept under by which tasks of a job log in to each other: a way in from nowhere else."""
    return f"{job}-peers"
