"""Puts the backend's SSH answers into files: the user's key, names of running tasks, one command."""

from __future__ import annotations

import getpass
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from jupyter_pai.connect import files as ssh_files
from jupyter_pai.connect import keys
from jupyter_pai.connect.files import Change, ClusterFiles
from jupyter_pai.connect.guide import Guide, Task, guide
from jupyter_pai.connect.ssh_config import Login, config_text, include_line, known_hosts_text
from jupyter_pai.doctor.running import Way
from jupyter_pai.errors import ClientError, NotFound
from jupyter_pai.wire import JobDetail, SshAnswer, SshEntry

if TYPE_CHECKING:
    from jupyter_pai.doctor.examining import Report
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
    for uid in _entered(client):
        try:
            answer = client.ssh(uid)
        except NotFound:
            continue  # it went away, or its share ended, since the list was read
        names += logins(answer)
        known += [*answer["knownHosts"], answer.get("certAuthority", "")]
    return ssh_files.install(files, config_text(names, files.places), known_hosts_text(known))


def _entered(client: Client) -> list[str]:
    """Uids of running jobs of the user's, then of those that others share with the user; each once."""
    from jupyter_pai import broker

    own = [job["uid"] for job in client.jobs(state="RUNNING", limit=MAX_JOBS)]
    try:
        shared = [share["uid"] for share in client.thread.run(broker.shares(client.api))]
    except NotFound:
        shared = []  # a backend that knows no shares
    return list(dict.fromkeys([*own, *shared]))


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


@dataclass(frozen=True)
class Reached:
    """A task that can be logged in to, with the files on this machine that lead to it."""

    files: ClusterFiles
    login: Login
    host_key: str

    @property
    def included(self) -> bool:
        """Whether the user's own configuration knows the name, so that editors find it."""
        return include_line(self.files.config) in (ssh_files.read(self.files.user_config) or "").splitlines()


def reach(client: Client, job: str, root: Path, *, role: str | None = None, index: int | None = None) -> Reached:
    """Find a task and write the files that lead to it.

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
    (login,) = [login for login in logins(answer) if login.alias == entry["alias"]]
    return Reached(files, login, answer["gatewayHostKey"])


def ssh_command(
    client: Client, job: str, root: Path, *, role: str | None = None, index: int | None = None
) -> list[str]:
    """An OpenSSH command that logs in to a task, with all files it needs written. Raises as :func:`reach`."""
    reached = reach(client, job, root, role=role, index=index)
    return ["ssh", "-F", str(reached.files.config), reached.login.alias]


def guide_to(reached: Reached, directory: PurePosixPath | None = None) -> Guide:
    """How programs reach a task, which is asked for its directory and its Python.

    Raises ClientError when nobody can log in.
    """
    from jupyter_pai.doctor import facts as fact
    from jupyter_pai.doctor.examining import ask

    facts, login = ask(Way(reached.files.config, reached.login.alias), fact.SYSTEM)
    if not login.worked:
        raise ClientError(
            f"Nobody can log in to {reached.login.alias}. {login.detail}",
            code="UnavailableError",
            hint="Let `pai doctor` look at it.",
        )
    task = Task(
        reached.login,
        reached.files.identity,
        reached.host_key,
        directory or facts.directory,
        facts.python_path,
        reached.included,
    )
    return guide(task)


def examined(reached: Reached, clients: Sequence[str]) -> Report:
    """Which programs will work with a task; of all of them when none is named. Blocks, for a minute at the most."""
    from jupyter_pai.doctor.examining import observe, report

    way = Way(reached.files.config, reached.login.alias)
    return report(way, observe(way), clients)
