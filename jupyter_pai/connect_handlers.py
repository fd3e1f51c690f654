"""``…/pai/connect/…`` and ``…/pai/doctor/…`` of the Jupyter server: how to reach a task, and which programs will.

Both log in to the task with this server's own OpenSSH, hence POST: the first time makes and registers a key of
the server's user. They block, so each runs in a thread.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

from jupyter_server.base.handlers import APIHandler

from jupyter_pai import access
from jupyter_pai.backend_link import BackendLink
from jupyter_pai.connect.files import ssh_dir
from jupyter_pai.connect.guide import Guide
from jupyter_pai.doctor.examining import DoctorReport
from jupyter_pai.endpoint import Endpoint
from jupyter_pai.errors import USAGE, ClientError
from jupyter_pai.guard import authenticated, authorized
from jupyter_pai.handlers import KEYS
from jupyter_pai.sync import Client


class ReachingHandler(APIHandler):
    """Answers with something that is found out by logging in to a task."""

    link: BackendLink

    def initialize(self, link: BackendLink) -> None:
        """Called by tornado with the arguments of the route."""
        self.link = link

    async def answer(self, job: str, found: Callable[[access.Reached], Guide | DoctorReport]) -> None:
        """Reach the task that the query names and answer with what is found there."""
        role, index = self.get_query_argument("role", None), self.get_query_argument("index", None)
        try:
            number = _index(index)
            endpoint = (await self.link.client()).endpoint
            value = await asyncio.to_thread(_found, endpoint, job, role, number, found)
        except ClientError as error:
            self.set_status(error.status or (400 if error.exit_code == USAGE else 503))
            self.finish(json.dumps(error.body()))
        else:
            self.finish(json.dumps(value))


def _index(text: str | None) -> int | None:
    if text is None or (text.isascii() and text.isdigit()):
        return None if text is None else int(text)
    raise ClientError(
        f"{text!r} is not a task index.", code="InvalidParametersError", hint="Give a number; the first task is 0."
    )


def _found(
    endpoint: Endpoint,
    job: str,
    role: str | None,
    index: int | None,
    found: Callable[[access.Reached], Guide | DoctorReport],
) -> Guide | DoctorReport:
    with Client(endpoint) as client:
        reached = access.reach(client, job, ssh_dir(), role=role, index=index)
    return found(reached)


class ConnectHandler(ReachingHandler):
    """How programs reach a task."""

    @authenticated
    @authorized("write", KEYS)
    async def post(self, job: str) -> None:
        """Find out."""
        await self.answer(job, access.guide_to)


class DoctorHandler(ReachingHandler):
    """Which programs will work with a task."""

    @authenticated
    @authorized("write", KEYS)
    async def post(self, job: str) -> None:
        """Try."""
        await self.answer(job, lambda reached: access.examined(reached, ()))
