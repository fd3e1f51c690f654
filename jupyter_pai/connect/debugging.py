"""What debuggers must be told to attach to debugpy in a task through a forwarded port. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import PurePath, PurePosixPath

from typing_extensions import TypedDict

from jupyter_pai.language import tr
from jupyter_pai.render import aligned

HOST = "127.0.0.1"
DEFAULT_PORT = 5678
"""debugpy's own default."""
DEBUG_SOCKET = "/pai/state/debugger/socket"
"""What a task of a job whose document says ``debug`` listens on. Source: docs/connect/debug.md."""


class PathMapping(TypedDict):
    """Where the same files are here and in the task."""

    localRoot: str
    remoteRoot: str


class DebuggerAddress(TypedDict):
    """Where a debugger connects to."""

    host: str
    port: int


class Attach(TypedDict):
    """A configuration of VS Code's debugger, and the arguments of *attach* of any client of debugpy."""

    name: str
    type: str
    request: str
    connect: DebuggerAddress
    pathMappings: list[PathMapping]
    justMyCode: bool


@dataclass(frozen=True)
class DebugWay:
    """A job's debugger, reached through a local port."""

    alias: str
    local_port: int
    task_port: int | None
    """Where debugpy listens in the task; None: behind ``DEBUG_SOCKET``."""
    local_root: PurePath
    task_root: PurePosixPath


def attach(way: DebugWay) -> Attach:
    """The configuration for VS Code."""
    return Attach(
        name=f"Attach to {way.alias}",
        type="debugpy",
        request="attach",
        connect=DebuggerAddress(host=HOST, port=way.local_port),
        pathMappings=[PathMapping(localRoot=str(way.local_root), remoteRoot=str(way.task_root))],
        justMyCode=True,
    )


def launch_json(way: DebugWay) -> str:
    """A ``.vscode/launch.json`` with that configuration alone."""
    return json.dumps({"version": "0.2.0", "configurations": [attach(way)]}, indent=4) + "\n"


def steps(way: DebugWay) -> str:
    """The steps of each debugger, for people."""
    return "\n".join(
        [
            _in_the_task(way),
            "",
            tr("VS Code: .vscode/launch.json"),
            launch_json(way).rstrip(),
            "",
            tr("PyCharm 2025.3 or later: Run > Edit Configurations > Attach to DAP"),
            *aligned(
                (tr("Address"), f"{HOST}:{way.local_port}"),
                (tr("Path mapping"), f"{way.local_root} -> {way.task_root}"),
            ),
            "",
            tr("Visual Studio 2019 16.5 or later: Debug > Attach to Process"),
            *aligned(
                (tr("Connection type"), "Python remote (debugpy)"),
                (tr("Connection target"), f"tcp://localhost:{way.local_port}"),
            ),
        ]
    )


def _in_the_task(way: DebugWay) -> str:
    if way.task_port is None:
        return tr("In the task: debugpy listens in the first Python program that runs.")
    return tr(
        "In the task: python -m debugpy --listen {host}:{task_port} --wait-for-client PROGRAM.py",
        host=HOST,
        task_port=way.task_port,
    )
