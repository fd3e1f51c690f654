"""What a login name means, and the sentence for those who cannot enter. Pure.

Forms of a name: ``<job alias>`` (the job's first task), ``<job alias>--<role>-<i>`` (a task),
``<job alias>--<label>`` (the task of that service), ``<job alias>.<role>-<i>``, and for people who know
no alias ``<user>+<job name>`` and ``<user>+<job name>+<role>-<i>``.
"""

from __future__ import annotations

from dataclasses import dataclass

from pai_backend.access.gateway.reasons import LoginRefused as LoginRefused
from pai_backend.access.gateway.reasons import NotYet as NotYet
from pai_backend.access.gateway.reasons import RefusalReason
from pai_backend.model import alias
from pai_backend.model.ids import JobUid, TaskUid, slot_of
from pai_backend.model.job import Job, Phase, State, Task
from pai_backend.model.node import Placement
from pai_backend.model.rights import SSH_LABEL as SSH_LABEL


@dataclass(frozen=True, slots=True)
class LoginName:
    """A login name taken apart. Either ``alias`` is set, or ``user`` and ``job``."""

    alias: str
    user: str
    job: str
    rest: str
    """What stands for the task, in the form ``model.alias.resolve`` reads."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class EntryPoint:
    """A task that can be entered: where it is and which of its ports is SSH."""

    job: JobUid
    owner: str
    task: TaskUid
    name: str
    alias: str
    """The task's own alias, which certificates may name."""
    placement: Placement
    port: int
    idle_timeout_s: int | None = None
    """Of the job: with one, its uses are written down."""

    @property
    def task_name(self) -> str:
        """The task within its job, ``role-index``."""
        return self.name.partition(" ")[2]

    @property
    def slot(self) -> str:
        """The task's place in its job, which owns the SSH host key."""
        return slot_of(self.task)


def parse(name: str) -> LoginName:
    """Take a login name apart; every text has a reading, so this never fails."""
    if "+" in name:
        user, _, tail = name.partition("+")
        job, _, rest = tail.partition("+")
        return LoginName("", user, job, rest)
    if "--" not in name and "." in name:
        job, _, rest = name.partition(".")
        return LoginName(job, "", "", rest)
    job, rest = alias.split(name)
    return LoginName(job, "", "", rest)


def find_entry(job: Job, rest: str) -> EntryPoint:
    """The task of ``job`` that ``rest`` names. Raises LoginRefused with the reason when it cannot be entered now."""
    target = _target(job, rest)
    if job.state.final:
        raise LoginRefused(_ended(job), RefusalReason.ENDED)
    task = next((t for t in job.tasks if (t.role, t.index) == (target.role, target.index)), None)
    if task is None or job.state is State.WAITING:
        raise NotYet(f"Job {job.alias} is {job.phase}{_reason(job.why)}. Try again when it runs.")
    kept = task.phase is Phase.KEPT  # its command has failed, and its user may look at what it left
    if task.state.final and not kept:
        raise LoginRefused(_task_ended(job, task), RefusalReason.TASK_ENDED)
    if (task.state is not State.RUNNING and not kept) or task.placement is None:
        raise NotYet(f"Task {task.name} of job {job.alias} is {task.phase}{_reason(job.why)}. Try again in a moment.")
    ports = task.placement.ports.get(SSH_LABEL, ())
    if not ports:
        text = f"Task {task.name} of job {job.alias} has no SSH port, so it cannot be entered."
        raise LoginRefused(text, RefusalReason.UNREACHABLE)
    own = alias.task_alias(job.alias, job.spec, task.role, task.index)
    called, idle_timeout_s = f"{job.alias} {task.name}", job.spec.idle_timeout_s
    return EntryPoint(job.uid, job.user, task.uid, called, own, task.placement, ports[0], idle_timeout_s)


def alias_of(job: Job, rest: str) -> str:
    """The alias of the task that ``rest`` names, whether it runs or not. Raises LoginRefused when there is none."""
    target = _target(job, rest)
    return alias.task_alias(job.alias, job.spec, target.role, target.index)


def _target(job: Job, rest: str) -> alias.Target:
    target = alias.resolve(rest, job.spec)
    if target is None:
        raise LoginRefused(f'Job {job.alias} has no task "{plain(rest)}". {_tasks_of(job)}', RefusalReason.UNKNOWN)
    return target


def gone(job: Job, uid: TaskUid) -> LoginRefused | None:
    """Why a login to task ``uid`` has to end, or None while it may go on."""
    if job.state.final:
        return LoginRefused(_ended(job), RefusalReason.ENDED)
    task = job.task(uid)
    if task is None:
        text = f"Job {job.alias} was started again elsewhere. Connect again to reach it there."
        return LoginRefused(text, RefusalReason.MOVED)
    if task.state.final and task.phase is not Phase.KEPT:
        return LoginRefused(_task_ended(job, task), RefusalReason.TASK_ENDED)
    return None


def unknown(name: str, reason: RefusalReason = RefusalReason.UNKNOWN) -> LoginRefused:
    """The sentence for a name that leads to nothing its reader may know of, the same for a job of another user."""
    text = f'No job that you may enter has the name "{plain(name)}". The list of your jobs shows SSH names.'
    return LoginRefused(text, reason)


def ambiguous(job: Job) -> LoginRefused:
    """The sentence for a login that names a job of several tasks by its key alone."""
    text = f"Job {job.alias} has several tasks. Log in as {job.alias}--TASK instead of root. {_tasks_of(job)}"
    return LoginRefused(text, RefusalReason.UNKNOWN)


def not_for(name: str) -> LoginRefused:
    """The sentence for a key or certificate that is limited to others of its user's jobs."""
    return LoginRefused(
        f'This key or certificate is not for the job with the name "{plain(name)}".', RefusalReason.DENIED
    )


def plain(text: str, limit: int = 200) -> str:
    """One printable line of at most ``limit`` characters: safe for terminals and logs, whatever its source."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _reason(why: str) -> str:
    return f": {plain(why).rstrip('.')}" if why else ""


def _ended(job: Job) -> str:
    return f"Job {job.alias} has ended: {job.state}{_reason(job.exit.message if job.exit else '')}."


def _task_ended(job: Job, task: Task) -> str:
    status = f" with exit status {task.exit.status}" if task.exit else ""
    return f"Task {task.name} of job {job.alias} has ended{status}."


def _tasks_of(job: Job) -> str:
    roles = alias.role_slugs(job.spec)
    ends = [(roles[role.name], role.instances - 1) for role in job.spec.task_roles[:8]]
    names = ", ".join(f"{name}-0" if last == 0 else f"{name}-0 to {name}-{last}" for name, last in ends)
    return f"Its tasks: {names}."
