"""What a user may do with a job: one function a policy, so that a change is made in one place."""

from __future__ import annotations

from typing import Protocol

from pai_backend.auth.users import User
from pai_backend.store.base import Sight


class Owned(Protocol):
    """Anything that belongs to a user: a job, or its row in a list."""

    @property
    def user(self) -> str:
        """Name of the owner."""
        ...

    @property
    def virtual_cluster(self) -> str:
        """The virtual cluster it was submitted to."""
        ...


def sight_of(user: User) -> Sight:
    """The jobs that :func:`may_see` shows the user, for queries over all jobs."""
    everyone = user.admin or (user.within != "" and user.within in user.manages)
    return Sight(None if everyone else user.name, () if everyone else tuple(sorted(user.manages)), user.within)


def within(user: User, virtual_cluster: str) -> bool:
    """Whether the user's token is good for jobs of this virtual cluster at all."""
    return user.within in ("", virtual_cluster)


def administers(user: User, virtual_cluster: str) -> bool:
    """Whether the user has an administrator's rights over jobs of this virtual cluster."""
    return within(user, virtual_cluster) and (user.admin or virtual_cluster in user.manages)


def may_see(user: User, job: Owned) -> bool:
    """Whether the job exists for this user at all: state, logs, events, addresses."""
    return _owns(user, job) or administers(user, job.virtual_cluster)


def may_read_secrets(user: User, job: Owned) -> bool:
    """Whether the user is shown the document as it was submitted; others see it with its secrets masked."""
    return _owns(user, job)


def may_change(user: User, job: Owned) -> bool:
    """Whether the user may stop the job, move it, or end what lets others in."""
    return _owns(user, job) or administers(user, job.virtual_cluster)


def may_enter(user: User, job: Owned) -> bool:
    """Whether the user may get a way into the job's tasks, or give one. An administrator may see more than that, and
    enters by a reason that the owner is told.
    """
    return _owns(user, job)


def _owns(user: User, job: Owned) -> bool:
    return job.user == user.name and within(user, job.virtual_cluster)
