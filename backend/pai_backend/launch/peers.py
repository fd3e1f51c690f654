"""What ``ssh`` in a task knows of the other tasks of its job, so that ``ssh worker-0`` works without a question.

It is a client configuration made from the job info file, and follows it: of an incremental job tasks come and move.
A peer is recognised by its host certificate, not by its address: the name that must be in the certificate is the one
that the job info file calls ``sshName``. Source of the keywords: ssh_config(5) of OpenSSH 7.3 and later.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from pydantic import ValidationError

from pai_backend.launch.job_info import JobInfo, TaskPart

SSH_LABEL: Final = "ssh"
TRIES: Final = 30
"""Of a connection, a second apart: tasks do not start at the same moment, and scripts should not have to wait."""
OWN_FILES: Final = ("~/.ssh/config", "/etc/ssh/ssh_config")
"""What a client reads that is given no configuration; they hold for every host that is no peer."""

_REMEMBERED: Final = 8  # jobs that are being started at once; some hundred KB for one of thousands of tasks


def ssh_config(job_info: str, identity: str, known_hosts: str) -> str:
    """The configuration for a job; ``identity`` and ``known_hosts`` are absolute paths of files in the task.

    Text that is no job info names no peers: an engine passes on what it is given. Raises ValueError for a path that
    cannot be written into such a file.
    """
    addresses, others = _of_job(job_info)
    own = (f"    {line}" for line in _of_peers(identity, known_hosts))
    return "\n".join([*addresses, *(own if addresses else ()), *others]) + "\n"


@lru_cache(maxsize=_REMEMBERED)
def _of_job(job_info: str) -> tuple[Sequence[str], Sequence[str]]:
    """What all tasks of a job have, remembered: lines before and behind those of :func:`_of_peers`."""
    peers = _peers(job_info)
    names = [peer.name for peer in peers]
    addresses = []
    for peer in peers:
        addresses += [
            f"Host {peer.name}",
            f"    HostName {peer.host}",
            f"    Port {peer.ports[SSH_LABEL][0]}",
            f"    HostKeyAlias {peer.ssh_name}",
        ]
    if names:
        addresses.append(f"Host {' '.join(names)}")
    others = [" ".join(["Host *", *(f"!{name}" for name in names)]), *(f"    Include {path}" for path in OWN_FILES)]
    return tuple(addresses), tuple(others)


def known_hosts_line(host_ca: str) -> str:
    """The only line of the file ``known_hosts``: who has a certificate of this CA for the name is that task."""
    return f"@cert-authority * {host_ca}\n"


def _peers(job_info: str) -> Sequence[TaskPart]:
    """Tasks that have an SSH port somewhere, this one included."""
    try:
        tasks = JobInfo.model_validate_json(job_info).tasks
    except ValidationError:
        return ()
    return [task for task in tasks if task.host is not None and task.ports.get(SSH_LABEL)]


def _of_peers(identity: str, known_hosts: str) -> list[str]:
    """What holds for all peers. Nothing is asked: what one key cannot open stays shut."""
    return [
        f"IdentityFile {_path(identity)}",
        "IdentitiesOnly yes",
        "IdentityAgent none",
        "PreferredAuthentications publickey",
        f"UserKnownHostsFile {_path(known_hosts)}",
        "GlobalKnownHostsFile /dev/null",
        "StrictHostKeyChecking yes",
        "CheckHostIP no",
        "UpdateHostKeys no",
        f"ConnectionAttempts {TRIES}",
        "ServerAliveInterval 30",
    ]


def _path(path: str) -> str:
    """A path as these keywords take it: quoted, with ``%`` doubled, as a single one would begin a token."""
    if any(sign in path for sign in '"\n\\') or "${" in path or not path.startswith("/"):
        raise ValueError(f"{path!r} cannot be written into a configuration of ssh: choose a plainer directory")
    return f'"{path.replace("%", "%%")}"'
