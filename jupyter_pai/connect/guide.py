"""All that a program must be told to reach a task, as one value for shell, notebook and panel. Pure."""

from __future__ import annotations

import base64
import hashlib
import shlex
from dataclasses import dataclass
from pathlib import PurePath, PurePosixPath
from typing import TypedDict

from jupyter_pai.connect.links import links
from jupyter_pai.connect.pycharm import Deployment
from jupyter_pai.connect.ssh_config import Login


class LinkWire(TypedDict):
    """A link that opens the task in an editor."""

    editor: str
    name: str
    url: str


class PyCharmWire(TypedDict):
    """What to type in PyCharm: a deployment server, its mapping, an interpreter."""

    server: str
    host: str
    port: int
    username: str
    authentication: str
    interpreter: str
    mapping: str


class Guide(TypedDict):
    """How to reach a task. ``included`` is whether editors here know its name already."""

    alias: str
    host: str
    port: int
    user: str
    identity: str
    directory: str
    hostKey: str
    fingerprint: str
    command: str
    plainCommand: str
    included: bool
    links: list[LinkWire]
    pycharm: PyCharmWire


@dataclass(frozen=True)
class Task:
    """A task that can be logged in to; ``directory`` and ``python`` are what it says of itself."""

    login: Login
    identity: PurePath
    host_key: str
    directory: PurePosixPath
    python: str
    included: bool


def fingerprint(public_key: str) -> str:
    """A public key's fingerprint as ``ssh-keygen -l`` shows it, for comparing by eye."""
    digest = hashlib.sha256(base64.b64decode(public_key.split()[1])).digest()
    return f"SHA256:{base64.b64encode(digest).decode('ascii').rstrip('=')}"


def guide(task: Task) -> Guide:
    """The whole guide to a task."""
    login = task.login
    plain = ["ssh", "-p", str(login.port), "-i", str(task.identity), f"{login.alias}@{login.host}"]
    way = Deployment(login, task.directory)
    return Guide(
        alias=login.alias,
        host=login.host,
        port=login.port,
        user=login.alias,
        identity=str(task.identity),
        directory=str(task.directory),
        hostKey=task.host_key,
        fingerprint=fingerprint(task.host_key),
        command=f"ssh {login.alias}",
        plainCommand=shlex.join(plain),
        included=task.included,
        links=[LinkWire(editor=each.editor, name=each.name, url=each.url) for each in links(login, task.directory)],
        pycharm=PyCharmWire(
            server=way.server,
            host=login.alias,
            port=login.port,
            username=login.alias,
            authentication="OpenSSH config and authentication agent",
            interpreter=task.python or "/usr/bin/python3",
            mapping=f"$PROJECT_DIR$ -> {task.directory}",
        ),
    )


def guide_text(found: Guide) -> str:
    """A guide for people."""
    pycharm = found["pycharm"]
    configuration = f"{pycharm['username']}@{pycharm['host']}:{pycharm['port']}, {pycharm['authentication']}"
    width = max(len(link["name"]) for link in found["links"])
    return "\n".join(
        [
            f"SSH        {found['command']}" + ("" if found["included"] else "   (after `pai ssh-config`, once)"),
            f"           {found['plainCommand']}",
            f"Directory  {found['directory']}",
            f"Host key   {found['fingerprint']}",
            "",
            "Editors",
            *(f"  {link['name']:{width}}  {link['url']}" for link in found["links"]),
            "",
            "PyCharm (or let `pai connect JOB --pycharm FOLDER` write this into a project)",
            f"  SSH configuration  {configuration}",
            f"  Interpreter        {pycharm['interpreter']}",
            f"  Mapping            {pycharm['mapping']}",
            "",
            "PuTTY, xshell, WinSCP",
            f"  Host {found['host']}   Port {found['port']}   User {found['user']}   Key {found['identity']}",
        ]
    )
