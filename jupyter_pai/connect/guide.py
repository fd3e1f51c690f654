"""All that a program must be told to reach a task, as one value for shell, notebook and panel. Pure."""

from __future__ import annotations

import base64
import hashlib
import shlex
from dataclasses import dataclass
from pathlib import PurePath, PurePosixPath

from typing_extensions import TypedDict  # pydantic reads no other on Python 3.11

from jupyter_pai.connect.links import links
from jupyter_pai.connect.pycharm import Deployment
from jupyter_pai.connect.ssh_config import HostEntry
from jupyter_pai.language import tr
from jupyter_pai.render import aligned, clock, padded


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
    """How to reach a task. ``included`` is whether editors here know its name already.

    ``debugger``: debugpy listens at ``debugging.DEBUG_SOCKET`` in the task. Of a job that another user shares,
    ``sharedBy`` names that user, and ``only`` and ``until`` say what is allowed (all when it is empty) and how long
    (null: until the job ends). Editors need more than a limited share allows.
    """

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
    debugger: bool
    links: list[LinkWire]
    pycharm: PyCharmWire
    sharedBy: str | None
    only: list[str]
    until: str | None


NAME_COLUMNS = 9
"""Of names in the first column."""


@dataclass(frozen=True)
class EntryTerms:
    """On what terms a task is entered: as the owner's own, or by a share."""

    shared_by: str | None = None
    only: tuple[str, ...] = ()
    until: str | None = None

    @property
    def commands(self) -> bool:
        """Whether commands may be run. Source: docs/ssh-keys.md, Shares."""
        return not self.only or "shell" in self.only or "exec" in self.only

    @property
    def program(self) -> str:
        """What of OpenSSH's gets anywhere."""
        files = "sftp" in self.only or "sftp-read" in self.only
        return "sftp" if files and not self.commands else "ssh"


@dataclass(frozen=True)
class GuideTask:
    """A task that can be logged in to; ``directory`` and ``python`` are what it says of itself."""

    login: HostEntry
    identity: PurePath
    host_key: str
    directory: PurePosixPath
    python: str
    included: bool
    debugger: bool = False
    terms: EntryTerms = EntryTerms()


def fingerprint(public_key: str) -> str:
    """A public key's fingerprint as ``ssh-keygen -l`` shows it, for comparing by eye."""
    digest = hashlib.sha256(base64.b64decode(public_key.split()[1])).digest()
    return f"SHA256:{base64.b64encode(digest).decode('ascii').rstrip('=')}"


def guide(task: GuideTask) -> Guide:
    """The whole guide to a task."""
    login, terms = task.login, task.terms
    port = "-P" if terms.program == "sftp" else "-p"
    plain = [terms.program, port, str(login.port), "-i", str(task.identity), f"{login.alias}@{login.host}"]
    editors = [] if terms.only else links(login, task.directory)
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
        command=f"{terms.program} {login.alias}",
        plainCommand=shlex.join(plain),
        included=task.included,
        debugger=task.debugger,
        links=[LinkWire(editor=each.editor, name=each.name, url=each.url) for each in editors],
        pycharm=PyCharmWire(
            server=way.server,
            host=login.alias,
            port=login.port,
            username=login.alias,
            authentication="OpenSSH config and authentication agent",
            interpreter=task.python or "/usr/bin/python3",
            mapping=f"$PROJECT_DIR$ -> {task.directory}",
        ),
        sharedBy=terms.shared_by,
        only=list(terms.only),
        until=terms.until,
    )


def guide_text(found: Guide) -> str:
    """A guide for people."""
    return "\n".join(
        [
            line(tr("SSH"), found["command"] + ("" if found["included"] else tr("   (after `pai ssh-config`, once)"))),
            line("", found["plainCommand"]),
            *_terms_lines(found),
            line(tr("Directory"), found["directory"]),
            line(tr("Host key"), found["fingerprint"]),
            *([] if found["only"] else _editor_lines(found)),
            "",
            "PuTTY, xshell, WinSCP",
            "  "
            + tr(
                "Host {host}   Port {port}   User {user}   Key {key}",
                host=found["host"],
                port=found["port"],
                user=found["user"],
                key=found["identity"],
            ),
        ]
    )


def line(name: str, value: str) -> str:
    """A name and its value, in the first column of a guide."""
    return f"{padded(name, NAME_COLUMNS)}  {value}"


def _terms_lines(found: Guide) -> list[str]:
    if found["sharedBy"] is None:
        return []
    end, only = clock(found["until"]) or tr("the job's end"), " ".join(found["only"]) or tr("everything")
    terms = tr("by {user} until {time}; allowed: {only}", user=found["sharedBy"], time=end, only=only)
    return [line(tr("Shared"), terms)]


def _editor_lines(found: Guide) -> list[str]:
    pycharm = found["pycharm"]
    configuration = f"{pycharm['username']}@{pycharm['host']}:{pycharm['port']}, {pycharm['authentication']}"
    width = max(len(link["name"]) for link in found["links"])
    return [
        "",
        tr("Editors"),
        *(f"  {link['name']:{width}}  {link['url']}" for link in found["links"]),
        "",
        tr("PyCharm (or let `pai connect JOB --pycharm FOLDER` write this into a project)"),
        *aligned(
            (tr("SSH configuration"), configuration),
            (tr("Interpreter"), pycharm["interpreter"]),
            (tr("Mapping"), pycharm["mapping"]),
        ),
    ]
