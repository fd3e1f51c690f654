"""Arguments that several verbs take, and the names that Tab offers for them.

A backend that does not run is not started for a completion.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from jupyter_pai.commands.session import connected
from jupyter_pai.errors import BackendAway
from jupyter_pai.verbs import argument

if TYPE_CHECKING:
    from jupyter_pai.client import AsyncClient
    from jupyter_pai.wire_types import JobDetail

Answer = TypeVar("Answer")

PATIENCE_S = 5
"""A user who waits longer than this for Tab types on."""
MOST_JOBS = 200
"""The newest; more are nothing to choose from."""


def _asked(question: Callable[[AsyncClient], Coroutine[Any, Any, Answer]]) -> Answer:
    """What the backend answers in time. Raises ClientError."""
    import asyncio

    async def in_time(api: AsyncClient) -> Answer:
        async with asyncio.timeout(PATIENCE_S):
            return await question(api)

    with connected(start=False) as client:
        try:
            return client.thread.run(in_time(client.api))
        except TimeoutError:
            raise BackendAway("The backend takes too long to answer.") from None


def job_names(args: argparse.Namespace) -> Iterable[str]:
    """Names of jobs, the newest first."""
    return [job["name"] for job in _asked(lambda api: api.jobs(limit=MOST_JOBS))]


def ended_job_names(args: argparse.Namespace) -> Iterable[str]:
    """Names of jobs that have ended."""
    from jupyter_pai.wire import FINAL_STATES

    states = ",".join(sorted(FINAL_STATES))
    return [job["name"] for job in _asked(lambda api: api.jobs(state=states, limit=MOST_JOBS))]


def _job(args: argparse.Namespace) -> JobDetail:
    """The job that was named before. Raises ClientError."""
    return _asked(lambda api: api.job(args.job))


def role_names(args: argparse.Namespace) -> Iterable[str]:
    """Roles of the job."""
    return [role["name"] for role in _job(args)["taskRoles"]]


def task_names(args: argparse.Namespace) -> Iterable[str]:
    """Names of the job's tasks."""
    from jupyter_pai.wire import tasks_of

    return [f"{task['role']}-{task['index']}" for task in tasks_of(_job(args))]


def service_labels(args: argparse.Namespace) -> Iterable[str]:
    """Labels of the job's services."""
    return dict.fromkeys(service["label"] for service in _job(args)["services"])


def gpu_types(args: argparse.Namespace) -> Iterable[str]:
    """GPU types of the cluster's nodes."""
    nodes = _asked(lambda api: api.cluster_use())["nodes"]
    return sorted({each for node in nodes for each in node["gpuTypes"]})


def key_names(args: argparse.Namespace) -> Iterable[str]:
    """Names and fingerprints of the user's keys."""
    from jupyter_pai import broker

    return [name for key in _asked(broker.keys) for name in (key["name"], key["fingerprint"]) if name]


JOB = argument("job", help="name or alias", completer=job_names)
ROLE = argument("--role", help="the task's role; default: the first", completer=role_names)
INDEX = argument("--index", type=int, help="the task's index; default: 0")
