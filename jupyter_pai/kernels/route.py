"""The SSH command that leads to the task of a kernel, asked for at each connection: rights and places change."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from jupyter_pai import access
from jupyter_pai.commands.session import connected
from jupyter_pai.connect.files import ClusterFiles, replace, ssh_dir
from jupyter_pai.connect.ssh_config import config_text, known_hosts_text, path_word
from jupyter_pai.errors import NotFound
from jupyter_pai.streams import decoded
from jupyter_pai.wire import FINAL_STATES

if TYPE_CHECKING:
    from jupyter_pai.certificates import WantedCertificate
    from jupyter_pai.kernels.remote import KernelPlace
    from jupyter_pai.sync import Client
    from jupyter_pai.wire_types import JobDetail, SshEntry, Summary


MADE_FOR_KERNEL = "made-for-kernel"
"""The tag of jobs that end with their kernel. The panel gives it."""
MOST_MADE = 500


class Ended(Exception):
    """The kernel cannot be there any more; the message says why."""


class TaskWaits(Exception):
    """The task cannot be entered yet; the message says why."""


@dataclass(frozen=True)
class RouteCommand:
    """An SSH command without what is to be run. ``proof``: what keeps the login accepted while it is used."""

    command: list[str]
    uid: str
    alias: str
    proof: AbstractAsyncContextManager[None]


class KernelRoute:
    """Ways to the task of one kernel; the files that they name are in ``directory``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._was_there = False

    def command(self, place: KernelPlace) -> RouteCommand:
        """The command that leads to the task now. Raises Waits, Ended when the job has ended, ClientError."""
        if shutil.which("ssh") is None:
            raise Ended("There is no ssh program on this machine. Install OpenSSH's client (package openssh-client).")
        with connected(start=not self._was_there) as client:
            job = self._running(client, place)
            answer = client.ssh(job["uid"])
            entry = _entry(answer["entries"], place.task)
            files = ClusterFiles(ssh_dir(), access.cluster(client))
            (login,) = [each for each in access.logins(answer) if each.alias == entry["alias"]]
            reached = access.Reached(files, login, answer["gatewayHostKey"], job["uid"])
            wanted = _certificate(client, reached)
            if not self._directory.exists():
                raise Ended("The kernel was given up.")
            known = self._directory / "known_hosts"
            places = type(files.places)(files.identity, known)
            replace(known, known_hosts_text(answer["knownHosts"]))
            replace(self._directory / "ssh_config", config_text([login], places))
        proof = [] if wanted is None else ["-o", f"CertificateFile={path_word(wanted.path)}"]
        command = ["ssh", "-F", str(self._directory / "ssh_config"), "-T", "-o", "BatchMode=yes", *proof, login.alias]
        return RouteCommand(command, job["uid"], entry["alias"], _renewed(wanted))

    def _running(self, client: Client, place: KernelPlace) -> JobDetail:
        """The job, if the task can be entered."""
        try:
            job = client.job(place.job)
        except NotFound as error:
            raise Ended(error.message) from error
        if job["state"] in FINAL_STATES:
            why = f": {job['exit']['message']}" if job["state"] == "FAILED" and job["exit"] is not None else ""
            raise Ended(f"Job {job['name']} has ended ({job['state']}{why}). Its kernels ended with it.")
        if job["state"] == "WAITING" and self._was_there:
            raise Ended(f"Job {job['name']} waits to be started again. Its kernels have ended.")
        if job["state"] != "RUNNING" or not _reachable(client, job, place.task):
            raise TaskWaits(job["why"] or f"the job is {job['phase']}")
        self._was_there = True
        return job


def _reachable(client: Client, job: JobDetail, task: str) -> bool:
    entry = _entry(client.ssh(job["uid"])["entries"], task)
    if entry["state"] in FINAL_STATES:
        raise Ended(f"Task {entry['alias']} has ended ({entry['state']}). Its kernels ended with it.")
    return entry["reachable"]


def _entry(entries: list[SshEntry], task: str) -> SshEntry:
    for entry in entries:
        if task in ("", entry["alias"]):
            return entry
    raise Ended(f"The job has no task {task!r}. See its tasks with `pai show`.")


def _certificate(client: Client, reached: access.Reached) -> WantedCertificate | None:
    """A certificate for the job; None, and a registered key, where certificates are unwanted or unknown."""
    unwanted = os.environ.get("PAI_SSH_CERTIFICATE", "").lower() in ("no", "0", "false")
    wanted = None if unwanted else access.certificate(client, reached)
    if wanted is None:
        access.register_key(client, reached.files)
    return wanted


def end_made_job(uid: str) -> bool:
    """Stop a job that was made for a kernel, and say whether it was. Raises ClientError."""
    query: dict[str, str | int | None] = {
        "tagsContain": MADE_FOR_KERNEL,
        "state": "WAITING,RUNNING",
        "limit": MOST_MADE,
    }
    with connected(start=False) as client:
        answer = client.thread.run(client.api.request("GET", "/api/v2/jobs", query=query))
        made = any(job["uid"] == uid for job in cast("list[Summary]", decoded(answer.body)))
        if made:
            client.stop(uid)
        return made


@contextlib.asynccontextmanager
async def _renewed(wanted: WantedCertificate | None) -> AsyncIterator[None]:
    """Meanwhile renew the certificate, as ``pai ssh`` does."""
    from jupyter_pai import certificates

    if wanted is None:
        yield
        return
    with connected() as client:
        renewing = certificates.renewed(client, wanted)
        renewing.__enter__()
        try:
            yield
        finally:
            await asyncio.to_thread(renewing.__exit__, None, None, None)
