"""Asks the Jupyter servers of a task when their kernels and terminals were last active.

A kernel that computes and a terminal that somebody types in are use; an open page is none: it asks for lists all day.
Source: Jupyter Server REST API, ``/api/kernels`` and ``/api/terminals`` (``last_activity``, ``execution_state``).
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import h11

from pai_backend.access.proxy.service import Dialer
from pai_backend.access.proxy.upstream import NoResponse, UpstreamRequest
from pai_backend.engine.base import EngineError
from pai_backend.launch.environment import environment
from pai_backend.launch.jupyter import find_jupyter, serves_jupyter, upstream_token
from pai_backend.model.job import Job, Task

ANSWER_S = 5.0
"""Seconds for one server to answer; one that computes hard answers late."""
ANSWER_BYTES = 1 << 20

_NAMED = re.compile("jupyter|notebook|nbclassic|lab", re.IGNORECASE)
"""What the command or a label of every Jupyter server has in it that :func:`serves_jupyter` knows."""


class Unread(Exception):
    """It could not be learnt; the message says why, in a few words for users."""


@dataclass(frozen=True)
class Server:
    """A Jupyter server of a task, as far as its command and its ports tell. ``token``: empty for none."""

    name: str
    task: Task
    port: int
    token: str | None
    base_url: str | None


@dataclass(frozen=True)
class Activity:
    """Whether a kernel computes, and the server's own time of the last activity; empty when there was none yet."""

    busy: bool
    mark: str


def servers(job: Job, task: Task, made: str) -> Iterator[Server]:
    """The Jupyter servers of a running task; ``made`` is the token that its tasks are given."""
    command = job.spec.role(task.role).command
    labels = task.placement.ports if task.placement is not None else {}
    if not any(_NAMED.search(text) for text in (command, *labels)):  # a job may have a thousand tasks
        return
    env = environment(job, task)
    for label, ports in labels.items():
        if not ports or not serves_jupyter(command, env, label=label, port=ports[0]):
            continue
        found = find_jupyter(command, env)
        token = upstream_token(command, env, label=label, port=ports[0], made=made)
        if token is None and found is not None:
            token = found.token
        yield Server(f"{task.uid}/{label}", task, ports[0], token, found.base_url if found is not None else "/")


async def activity(engine: Dialer, server: Server) -> Activity:
    """What a server says now. Raises Unread."""
    if server.token is None or server.base_url is None:
        raise Unread("the token or address of its Jupyter server is only known to its command")
    try:
        async with asyncio.timeout(ANSWER_S):
            kernels = await _get(engine, server, "api/kernels")
            terminals = await _get(engine, server, "api/terminals", may_miss=True)
        last = [_time(each.get("last_activity")) for each in (*kernels, *terminals)]
    except (EngineError, OSError, TimeoutError, NoResponse) as error:
        raise Unread(f"the Jupyter server of task {server.task.name} does not answer") from error
    except (ValueError, RecursionError, h11.LocalProtocolError) as error:
        raise Unread(f"the Jupyter server of task {server.task.name} answers something else") from error
    return Activity(any(each.get("execution_state") == "busy" for each in kernels), max(last, default=""))


async def _get(engine: Dialer, server: Server, path: str, *, may_miss: bool = False) -> list[dict[str, object]]:
    """A list that the server gives; empty if it ``may_miss`` and does. Raises Unread when the server refuses us,
    ValueError for anything else, such as the page of a service that is no Jupyter at all.
    """
    assert server.task.placement is not None
    request = UpstreamRequest(await engine.dial(server.task.placement, server.task.uid, server.port))
    fields = [(b"Host", f"localhost:{server.port}".encode()), (b"Accept", b"application/json")]
    if server.token:
        fields.append((b"Authorization", f"token {server.token}".encode()))
    try:
        await request.head("GET", f"{server.base_url}{path}".encode(), fields)
        await request.end()
        response = await request.response()
        body = b""
        async for chunk in request.chunks():
            body += chunk
            if len(body) > ANSWER_BYTES:
                raise ValueError("too long")
    finally:
        request.close()
    if response.status_code == 404:
        if may_miss:  # a server without terminals
            return []
        raise ValueError("no Jupyter")
    if response.status_code != 200:
        raise Unread(f"the Jupyter server of task {server.task.name} refuses the token that is known of it")
    listed = json.loads(body)
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise ValueError("no list")
    return listed


def _time(value: object) -> str:
    """A time in one spelling, so that times compare as texts. Raises ValueError."""
    if not isinstance(value, str):
        raise ValueError("no time")
    return datetime.fromisoformat(value).isoformat()
