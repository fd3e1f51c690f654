"""``…/pai/connect/…`` and ``…/pai/doctor/…`` of the Jupyter server: how to reach a task, and which programs will.

Both log in to the task with this server's own OpenSSH, hence POST: the first time makes and registers a key of
the server's user. They block, so each runs in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from jupyter_pai import access
from jupyter_pai.answering import AnsweringHandler, invalid
from jupyter_pai.connect.files import ssh_dir
from jupyter_pai.connect.guide import Guide
from jupyter_pai.doctor.examining import DoctorReport
from jupyter_pai.endpoint import Endpoint
from jupyter_pai.guard import authenticated, authorized
from jupyter_pai.handlers import KEYS
from jupyter_pai.sync import Client
from jupyter_pai.vscode_server import CodeServer, kept_in
from pai_backend.model.text import Text

Found = Guide | DoctorReport | CodeServer
"""What is found in a task."""


class ReachingHandler(AnsweringHandler):
    """Answers with something that is found out by logging in to a task."""

    async def reached(self, job: str, found: Callable[[access.Reached], Found]) -> Found:
        """Reach the task that the query names, and return what is found there. Raises ClientError."""
        role, index = self.get_query_argument("role", None), self.get_query_argument("index", None)
        number = _index(index)
        endpoint = (await self.link.client()).endpoint
        return await asyncio.to_thread(_found, endpoint, job, role, number, found)


def _index(text: str | None) -> int | None:
    if text is None or (text.isascii() and text.isdigit()):
        return None if text is None else int(text)
    raise invalid(Text("'{text}' is not a task index.", text=text), Text("Give a number; the first task is 0."))


def _found(
    endpoint: Endpoint,
    job: str,
    role: str | None,
    index: int | None,
    found: Callable[[access.Reached], Found],
) -> Found:
    with Client(endpoint) as client:
        reached = access.reach(client, job, ssh_dir(), role=role, index=index)
    return found(reached)


class ConnectHandler(ReachingHandler):
    """How programs reach a task."""

    @authenticated
    @authorized("write", KEYS)
    async def post(self, job: str) -> None:
        """Find out."""
        await self.answer(self.reached(job, access.guide_to))


class CodeHandler(ReachingHandler):
    """VS Code in the browser, from a task that has code-server."""

    @authenticated
    @authorized("write", KEYS)
    async def post(self, job: str) -> None:
        """Have it run."""
        await self.answer(self.reached(job, kept_in))


class DoctorHandler(ReachingHandler):
    """Which programs will work with a task."""

    @authenticated
    @authorized("write", KEYS)
    async def post(self, job: str) -> None:
        """Try."""
        await self.answer(self.reached(job, lambda reached: access.examined(reached, ())))
