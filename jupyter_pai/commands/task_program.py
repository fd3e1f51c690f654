"""A program with pages for a browser that runs in a task, at a local port, until Ctrl-C."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jupyter_pai import access
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.ssh import by_certificate, ssh_root
from jupyter_pai.errors import OK, ClientError
from jupyter_pai.language import tr
from jupyter_pai.task_ports import HOST, NOT_FOUND, forwarded, free_port, lead

if TYPE_CHECKING:
    from jupyter_pai.sync import Client


@dataclass(frozen=True)
class TaskProgram:
    """``script`` runs it in the task, at a port there. ``lacking`` is what a task without it is told."""

    name: str
    script: Callable[[int], str]
    lacking: ClientError


def address(args: argparse.Namespace) -> str:
    """Where the browser finds it."""
    return f"http://{HOST}:{args.port}/"


def run_in_task(client: Client, job: str, program: TaskProgram, args: argparse.Namespace, out: Output) -> int:
    """Run it and lead the local port to it. Returns its exit status. Raises ClientError."""
    reached = access.reach(client, job, ssh_root(args), role=args.role, index=args.index)
    url, there = address(args), free_port()
    with access.proven(client, reached, certify=by_certificate(args)) as login:
        command = forwarded(login, args.port, there, program.script(there))
        out.result({"url": url, "command": command}, tr("{name}: {url} (Ctrl-C ends it)", name=program.name, url=url))
        if out.as_json or out.in_cell:
            return OK
        access.require_openssh()
        status = lead(command)
    if status in NOT_FOUND:
        raise program.lacking
    return status
