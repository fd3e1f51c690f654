"""How a client of terminals logs in: by the key, certificate and names of ``pai ssh``."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from jupyter_pai import access, broker
from jupyter_pai.connect.guide import EntryTerms
from jupyter_pai.endpoint import Endpoint
from jupyter_pai.errors import Denied
from jupyter_pai.share_text import owner
from jupyter_pai.sync import Client
from pai_backend.model.text import Text


@dataclass(frozen=True)
class TaskPlace:
    """A task of a job, and the SSH directory of the user who wants to enter it."""

    job: str
    role: str | None
    index: int | None
    root: Path


@dataclass(frozen=True)
class LoginCommand:
    """A command that logs in to the task, and the folder in the task that has the user's sessions."""

    command: list[str]
    folder: str
    alias: str


@contextlib.contextmanager
def logged_in(find: Callable[[], Endpoint], place: TaskPlace) -> Iterator[LoginCommand]:
    """A way into the task, while the block lasts; ``find`` says where the backend is now. Raises ClientError."""
    certify = access.by_certificate()
    access.require_openssh()
    with Client(find()) as client:
        reached = access.reach(client, place.job, place.root, role=place.role, index=place.index, register=not certify)
        share = reached.share
        if share is not None and not EntryTerms(only=tuple(share["only"])).commands:
            raise Denied(
                Text(
                    "{share} shares {job} with you without the right to run commands.",
                    share=owner(share),
                    job=place.job,
                ),
                code="ForbiddenUserError",
                hint=Text("It allows: {only}.", only=", ".join(share["only"])),
            )
        folder = folder_of(client.thread.run(broker.caller(client.api)))
        with access.proven(client, reached, certify=certify) as command:
            yield LoginCommand(command, folder, reached.login.alias)


def folder_of(user: str) -> str:
    """The name of the folder for a user's sessions in a task, which does not tell who the user is."""
    return hashlib.sha256(user.encode()).hexdigest()[:32]


@contextlib.asynccontextmanager
async def entered(way: AbstractContextManager[LoginCommand]) -> AsyncIterator[LoginCommand]:
    """Enter and leave ``way`` in threads, since it blocks; it is left also when this is cancelled on the way in."""
    entering = asyncio.create_task(asyncio.to_thread(way.__enter__))
    try:
        login = await asyncio.shield(entering)
    except asyncio.CancelledError:
        entering.add_done_callback(lambda done: _leave_later(way, done))
        raise
    try:
        yield login
    finally:
        await asyncio.shield(asyncio.to_thread(way.__exit__, None, None, None))


_leaving: set[asyncio.Task[object]] = set()
"""asyncio itself keeps no task."""


def _leave_later(way: AbstractContextManager[LoginCommand], entered: asyncio.Task[LoginCommand]) -> None:
    if entered.cancelled() or entered.exception() is not None:
        return
    task: asyncio.Task[object] = asyncio.create_task(asyncio.to_thread(way.__exit__, None, None, None))
    _leaving.add(task)
    task.add_done_callback(_leaving.discard)
