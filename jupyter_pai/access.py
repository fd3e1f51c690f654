"""Puts the backend's SSH answers into files: the user's key, names of running tasks, one command."""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from jupyter_pai.connect import files as ssh_files
from jupyter_pai.connect import keys
from jupyter_pai.connect.files import ClusterFiles, FileChange
from jupyter_pai.connect.guide import EntryTerms, Guide, GuideTask, guide
from jupyter_pai.connect.ssh_config import (
    HostEntry,
    config_text,
    has_jumps,
    include_line,
    known_hosts_text,
    path_word,
)
from jupyter_pai.doctor.facts import Facts
from jupyter_pai.doctor.running import OpenSshRoute
from jupyter_pai.errors import LOCKED_OUT, ClientError, Denied, NotFound
from jupyter_pai.share_text import owner
from jupyter_pai.wire_types import SshAnswer, SshEntry
from pai_backend.model.text import Text

if TYPE_CHECKING:
    from jupyter_pai.certificates import WantedCertificate
    from jupyter_pai.doctor.diagnosing import AccountFacts
    from jupyter_pai.doctor.examining import DoctorReport
    from jupyter_pai.doctor.findings import Finding
    from jupyter_pai.doctor.running import ProgramExit
    from jupyter_pai.sync import Client
    from jupyter_pai.wire_types import ShareWire

MAX_JOBS = 200  # an included file with more names than this does not help to choose
JUMP_LIFE = timedelta(hours=24)
"""How long certificates for jumps last: they are renewed only by the next ``pai ssh-config``."""
JUMP_SPARE = timedelta(hours=23)
"""So that it replaces those that are more than an hour old."""


def cluster(client: Client) -> str:
    """The backend's name as a directory name."""
    return re.sub(r"[^a-z0-9-]+", "-", client.info()["name"].lower()).strip("-") or "pai"


@dataclass
class SshNames:
    """SSH names of all tasks that the user can enter now, and what they are recognised by.

    ``jumps``: the uids of jobs whose tasks may be jumped to, by alias; a limited login may not. ``shares``: by alias,
    by which others' jobs may be entered.
    """

    logins: list[HostEntry] = field(default_factory=list)
    known_hosts: list[str] = field(default_factory=list)
    jumps: dict[str, str] = field(default_factory=dict)
    shares: dict[str, ShareWire] = field(default_factory=dict)


def make_key(files: ClusterFiles) -> str:
    """The user's public key for this cluster, made when there is none. Raises ClientError."""
    return keys.ensure_key(files.identity, f"{getpass.getuser()}@{socket.gethostname()}")


def register_key(client: Client, files: ClusterFiles) -> None:
    """Make the user's key when there is none and let the gateway accept it. Repeating it is fine."""
    client.add_key(make_key(files), comment=f"pai ssh-config on {socket.gethostname()}")


def logins(answer: SshAnswer) -> list[HostEntry]:
    """The names that lead somewhere now."""
    place = answer["host"], answer["port"], answer["hostKeyAlias"]
    found = [HostEntry(entry["alias"], *place) for entry in answer["entries"] if entry["reachable"] or _starts(answer)]
    name = answer.get("address", "")
    return (
        [*found, HostEntry(name, *place, user=found[0].alias)] if found and name not in ("", found[0].alias) else found
    )


def _starts(answer: SshAnswer) -> bool:
    """Whether the job has ended and runs again when its owner logs in."""
    return bool(answer.get("starts", False))


def installation(client: Client, files: ClusterFiles, *, register: bool = True) -> list[FileChange]:
    """What must change so that every task of the user that can be entered has its SSH name.

    Makes and registers the key, unless ``register`` is False (a dry run).
    """
    if register:
        register_key(client, files)
    return changes(files, names(client), jumps=jumps(files))


def jumps(files: ClusterFiles) -> bool:
    """Whether the files have names for jumps now."""
    return has_jumps(ssh_files.read(files.config) or "")


def changes(files: ClusterFiles, found: SshNames, *, jumps: bool = False) -> list[FileChange]:
    """What must change so that the files have these names, and with ``jumps`` those of jumps."""
    listed = [_jumping(login, files, found) for login in found.logins] if jumps else found.logins
    return ssh_files.install(files, config_text(listed, files.places), known_hosts_text(found.known_hosts))


def _jumping(login: HostEntry, files: ClusterFiles, found: SshNames) -> HostEntry:
    job = job_alias(login)
    return replace(login, jump_certificate=files.spelt(files.jump_certificate(job))) if job in found.jumps else login


def job_alias(login: HostEntry) -> str:
    """The alias of the login's job. Source: docs/architecture.md, Addresses."""
    return (login.user or login.alias).partition("--")[0]


def names(client: Client) -> SshNames:
    """What the backend tells about all jobs that the user may enter."""
    found = SshNames()
    for uid, share in _entered(client).items():
        try:
            answer = client.ssh(uid)
        except NotFound:
            continue  # it went away, or its share ended, since the list was read
        added = logins(answer)
        found.logins += added
        found.known_hosts += [*answer["knownHosts"], answer.get("certAuthority", "")]
        if share is not None:
            found.shares[share["alias"]] = share
        if added and (share is None or not share["only"]):
            found.jumps[job_alias(added[0])] = uid
    return found


def _entered(client: Client) -> dict[str, ShareWire | None]:
    """Running jobs of the user's, workspaces that a login starts, and what others share, by uid with the share."""
    from jupyter_pai import broker, workspace_names

    own: dict[str, ShareWire | None] = {job["uid"]: None for job in client.jobs(state="RUNNING", limit=MAX_JOBS)}
    try:
        shared = {share["uid"]: share for share in client.thread.run(broker.shares(client.api))}
    except NotFound:
        shared = {}  # a backend that knows no shares
    try:
        held = client.thread.run(workspace_names.addresses(client.api))
    except NotFound:
        held = []  # a backend that knows no workspace names
    own |= {name["uid"]: None for name in held if name["uid"] is not None and name["starts"]}
    return {**own, **shared}  # an administrator's list has others' jobs, too


def certify_jumps(client: Client, files: ClusterFiles, found: SshNames) -> None:
    """Fetch certificates for jumps to these jobs, where those that are kept are not nearly new. Raises ClientError."""
    from jupyter_pai import certificates

    for alias, uid in found.jumps.items():
        path = files.jump_certificate(alias)
        life = int(JUMP_LIFE.total_seconds())
        try:
            certificates.ensure(
                client, certificates.WantedCertificate(files.identity, path, uid, alias, life, JUMP_SPARE)
            )
        except NotFound:
            continue  # the job went away, or its share ended, since the list was read


def certificate(client: Client, reached: Reached) -> WantedCertificate | None:
    """A certificate for the job of a task, fetched unless one that will do is kept; None when there are none here.

    Those of other jobs that have run out are deleted on the way. Raises ClientError.
    """
    from jupyter_pai import certificates

    make_key(reached.files)
    now = datetime.now(UTC)
    for path in reached.files.certificates:
        if certificates.over(path, now):
            path.unlink(missing_ok=True)
    alias = job_alias(reached.login)
    wanted = certificates.WantedCertificate(
        reached.files.identity, reached.files.certificate(alias), reached.job, alias
    )
    try:
        certificates.ensure(client, wanted)
    except NotFound:
        return None  # a backend that does not certify
    return wanted


def by_certificate(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether logins prove themselves by a certificate, as they do by default."""
    return environ.get("PAI_SSH_CERTIFICATE", "").lower() not in ("no", "0", "false")


@contextlib.contextmanager
def proven(client: Client, reached: Reached, *, certify: bool) -> Iterator[list[str]]:
    """An OpenSSH command that logs in to a task; the certificate that it names is renewed in the meantime.

    Raises ClientError.
    """
    from jupyter_pai import certificates

    wanted = certificate(client, reached) if certify else None
    if wanted is None:
        if certify:
            register_key(client, reached.files)
        yield reached.command
        return
    # On the command line and in no file: what else logs in, at any time, would be put out when it ends.
    proof = ["-o", f"CertificateFile={path_word(wanted.path)}"]
    with certificates.renewed(client, wanted):
        yield [*reached.command[:-1], *proof, reached.command[-1]]


def require_openssh() -> None:
    """Raises ClientError where this machine has no OpenSSH client."""
    if shutil.which("ssh") is None:
        raise ClientError(
            "There is no ssh program on this machine.",
            code="InvalidParametersError",
            hint="Install OpenSSH's client (package openssh-client).",
        )


def removal(files: ClusterFiles) -> list[FileChange]:
    """What must change so that nothing of ours is in the user's configuration."""
    return ssh_files.remove(files)


def _entry(answer: SshAnswer, role: str | None, index: int | None) -> SshEntry:
    for entry in answer["entries"]:
        if role in (None, entry["role"]) and index in (None, entry["index"]):
            return entry
    raise NotFound(
        Text(
            "The job has no task {role}, index {index}.",
            role=role or Text("of any role"),
            index=index if index is not None else 0,
        ),
        code="NoTaskError",
        hint="See its tasks with `pai show`.",
    )


@dataclass(frozen=True)
class Reached:
    """A task that can be logged in to, with the files on this machine that lead to it.

    ``job`` is as it was named. ``share``: by which another's job may be entered.
    """

    files: ClusterFiles
    login: HostEntry
    host_key: str
    job: str
    share: ShareWire | None = None

    @property
    def command(self) -> list[str]:
        """An OpenSSH command that logs in to it."""
        return ["ssh", "-F", str(self.files.config), self.login.alias]

    @property
    def included(self) -> bool:
        """Whether the user's own configuration knows the name, so that editors find it."""
        return include_line(self.files.config) in (ssh_files.read(self.files.user_config) or "").splitlines()


def reach(
    client: Client,
    job: str,
    root: Path,
    *,
    role: str | None = None,
    index: int | None = None,
    register: bool = True,
) -> Reached:
    """Find a task and write the files that lead to it; make and register the user's key, unless ``register`` is False.

    Only our own directory is written to, never the user's configuration. Raises NotFound, and
    ClientError when the task does not run.
    """
    answer = client.ssh(job)
    entry = _entry(answer, role, index)
    if not entry["reachable"] and not _starts(answer):
        raise ClientError(
            Text(
                "Task {role}-{index} is {state}; there is nothing to log in to.",
                role=entry["role"],
                index=entry["index"],
                state=Text(entry["state"]),
            ),
            code="InvalidParametersError",
            hint=Text("Follow it with `pai status {job} --watch`.", job=job),
        )
    files = ClusterFiles(root, cluster(client))
    if register:
        register_key(client, files)
    found = names(client)
    for change in changes(files, found, jumps=jumps(files)):
        if change.path != files.user_config:
            change.apply()
    (login,) = [login for login in logins(answer) if login.alias == entry["alias"]]
    return Reached(files, login, answer["gatewayHostKey"], job, found.shares.get(job_alias(login)))


def guide_to(reached: Reached, directory: PurePosixPath | None = None) -> Guide:
    """How programs reach a task, which is asked for its directory and its Python where it may be asked.

    Raises ClientError when login is not possible.
    """
    share = reached.share
    terms = EntryTerms() if share is None else EntryTerms(owner(share), tuple(share["only"]), share["expiresAt"])
    facts = _asked(reached) if terms.commands else Facts()
    task = GuideTask(
        reached.login,
        reached.files.identity,
        reached.host_key,
        directory or facts.directory,
        facts.python_path,
        reached.included,
        facts.debugger,
        terms,
    )
    return guide(task)


def _asked(reached: Reached) -> Facts:
    from jupyter_pai.doctor import facts as fact
    from jupyter_pai.doctor.examining import ask

    facts, login = ask(OpenSshRoute(reached.files.config, reached.login.alias), fact.SYSTEM)
    if not login.worked:
        raise ClientError(
            Text("Login to {alias} is not possible. {detail}", alias=reached.login.alias, detail=login.detail),
            code="UnavailableError",
            hint="Run `pai doctor` to find out why.",
        )
    return facts


def examined(reached: Reached, clients: Sequence[str]) -> DoctorReport:
    """Which programs will work with a task; of all of them when none is named. Blocks, for a minute at the most."""
    from jupyter_pai.doctor.examining import observe, report

    way = OpenSshRoute(reached.files.config, reached.login.alias)
    return report(way, observe(way), clients)


def diagnosed(client: Client, reached: Reached, root: Path, clients: Sequence[str]) -> DoctorReport:
    """As :func:`examined`, with the user's own configuration, and the fault by name when it does not allow a login."""
    from jupyter_pai.doctor import diagnosing
    from jupyter_pai.doctor.examining import observe, report

    files = reached.files
    is_default = root == Path("~/.ssh").expanduser()
    way = OpenSshRoute(None if is_default else files.user_config, reached.login.alias)
    if not is_default and not files.user_config.exists():
        files.user_config.touch(mode=0o600)  # ssh -F wants a file; an empty one is a user who has none
    meant = diagnosing.Meant(reached.login, files.identity, files.config, files.user_config)

    def cause(ran: ProgramExit) -> Finding:
        return diagnosing.cause(meant, diagnosing.effective(way), ran, _account(client, files))

    return report(way, observe(way, cause), clients)


def _account(client: Client, files: ClusterFiles) -> AccountFacts:
    """What the backend knows of the user's key. Raises ClientError."""
    from jupyter_pai import broker, certificates
    from jupyter_pai.doctor.diagnosing import AccountFacts

    public = ssh_files.read(files.identity.with_name(f"{files.identity.name}.pub")) or ""
    try:
        keys = client.thread.run(broker.keys(client.api))
    except Denied as error:
        if error.code != LOCKED_OUT:
            raise
        return AccountFacts(is_locked_out=True)
    registered = {key["publicKey"].split()[1]: key for key in keys}
    beside = files.identity.with_name(f"{files.identity.name}-cert.pub")
    now = datetime.now(UTC)
    known = registered.get("".join(public.split()[1:2]))
    end = known["expiresAt"] if known is not None else None
    return AccountFacts(
        is_registered=known is not None,
        is_over=certificates.over(beside, now),
        is_key_over=end is not None and datetime.fromisoformat(end) <= now,
    )


def shut_out(job: str, clients: Sequence[str]) -> DoctorReport:
    """What :func:`diagnosed` finds for a user whom the backend does not even tell about the job."""
    from jupyter_pai.doctor.examining import report
    from jupyter_pai.doctor.findings import Finding
    from jupyter_pai.doctor.outcome import Observations, Probe, StepOutcome

    seen = Observations(Facts(), {Probe.LOGIN: StepOutcome(worked=False)}, cause=Finding("locked-out"))
    return report(OpenSshRoute(None, job), seen, clients)
