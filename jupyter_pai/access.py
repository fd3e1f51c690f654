"""Puts the backend's SSH answers into files: the user's key, names of running tasks, one command."""

from __future__ import annotations

import getpass
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_pai.connect import files as ssh_files
from jupyter_pai.connect import keys
from jupyter_pai.connect.files import Change, ClusterFiles
from jupyter_pai.connect.ssh_config import Login, config_text, known_hosts_text
from jupyter_pai.errors import ClientError, NotFound
from jupyter_pai.wire import JobDetail, SshAnswer, SshEntry

if TYPE_CHECKING:
    from jupyter_pai.sync import Client

MAX_JOBS = 200  # an included file with more names than this helps nobody choose


def cluster(client: Client) -> str:
    """The backend's name as a directory name."""
    return re.sub(r"[^a-z0-9-]+", "-", client.info()["name"].lower()).strip("-") or "pai"


def register_key(client: Client, files: ClusterFiles) -> None:
    """Make the user's key when there is none and let the gateway accept it. Repeating it is fine."""
    public_key = keys.ensure_key(files.identity, f"{getpass.getuser()}@{socket.gethostname()}")
    client.add_key(public_key, comment=f"pai ssh-config on {socket.gethostname()}")


def logins(answer: SshAnswer) -> list[Login]:
    """The names that lead somewhere now."""
    return [
        Login(entry["alias"], answer["host"], answer["port"], answer["hostKeyAlias"])
        for entry in answer["entries"]
        if entry["reachable"]
    ]


def installation(client: Client, files: ClusterFiles, *, register: bool = True) -> list[Change]:
    """What must change so that every task of the user that can be entered has its SSH name.

    Makes and registers the key, unless ``register`` is False (a dry run).
    """
    if register:
        register_key(client, files)
    names: list[Login] = []
    known: list[str] = []
    for job in client.jobs(state="RUNNING", limit=MAX_JOBS):
        try:
            answer = client.ssh(job["uid"])
        except NotFound:
            continue  # it went away since the list was read
        names += logins(answer)
        known += answer["knownHosts"]
    return ssh_files.install(files, config_text(names, files.places), known_hosts_text(known))


def removal(files: ClusterFiles) -> list[Change]:
    """What must change so that nothing of ours is in the user's configuration."""
    return ssh_files.remove(files)


def _entry(answer: SshAnswer, role: str | None, index: int | None) -> SshEntry:
    for entry in answer["entries"]:
        if role in (None, entry["role"]) and index in (None, entry["index"]):
            return entry
    raise NotFound(
        f"The job has no task {role or 'of any role'}, index {index if index is not None else 0}.",
        code="NoTaskError",
        hint="See its tasks with `pai show`.",
    )


def service_label(job: JobDetail, label: str | None) -> str:
    """The label named, or that of the job's first service. Raises NotFound when the job has none."""
    if label is not None:
        return label
    if not job["services"]:
        raise NotFound(
            f"Job {job['name']} declares no service.",
            code="NoServiceError",
            hint="Declare a port in its portList, or name a label.",
        )
    return job["services"][0]["label"]


def ssh_command(
    client: Client, job: str, root: Path, *, role: str | None = None, index: int | None = None
) -> list[str]:
    """An OpenSSH command that logs in to a task, with all files it needs written.

    Only our own directory is written to, never the user's configuration. Raises NotFound, and
    ClientError when the task does not run.
    """
    answer = client.ssh(job)
    entry = _entry(answer, role, index)
    if not entry["reachable"]:
        raise ClientError(
            f"Task {entry['role']}-{entry['index']} is {entry['state']}; there is nothing to log in to.",
            code="InvalidParametersError",
            hint=f"Follow it with `pai status {job} --watch`.",
        )
    files = ClusterFiles(root, cluster(client))
    for change in installation(client, files):
        if change.path != files.user_config:
            change.apply()
    return ["ssh", "-F", str(files.config), entry["alias"]]
