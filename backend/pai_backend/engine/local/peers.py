"""``ssh``, ``scp`` and ``sftp`` on a task's PATH that know the other tasks of its job.

They are scripts which call the machine's own programs with a configuration of the task's. Nothing of the user's
``~/.ssh`` is touched: what is in it holds for every other host, and the key of the job is a file of the task.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pai_backend.engine.base import TaskPlan
from pai_backend.engine.local import layout
from pai_backend.launch.peers import known_hosts_line, ssh_config


@dataclass(frozen=True)
class PeerFile:
    """A file to be, below the task's directory."""

    name: str
    content: str
    mode: int = 0o600


def has_peers(plan: TaskPlan) -> bool:
    """Whether the task knows the other tasks of its job; it may be the only one, and log in to itself."""
    return plan.ssh is not None and plan.ssh.peers is not None


def peer_files(plan: TaskPlan, directory: Path, path: str) -> Iterator[PeerFile]:
    """What ``ssh`` in the task needs; ``path`` is the PATH that the programs are looked for on.

    Programs that this machine does not have are left out. Raises ValueError when the path of the directory cannot be
    written into a configuration of ssh.
    """
    if plan.ssh is None or plan.ssh.peers is None:
        return
    yield PeerFile(layout.PEER_KEY, plan.ssh.peers.key.get_secret_value())
    yield PeerFile(layout.KNOWN_HOSTS, known_hosts_line(plan.ssh.peers.host_ca))
    yield PeerFile(layout.SSH_CONFIG, config_text(plan.job_info, directory))
    ssh = str(directory / layout.BIN / "ssh")
    # scp and sftp would call the ssh that they were built for, by its absolute path.
    for name, option, value in (
        ("ssh", "-F", str(directory / layout.SSH_CONFIG)),
        ("scp", "-S", ssh),
        ("sftp", "-S", ssh),
    ):
        program = shutil.which(name, path=path)
        if program is not None:
            words = shlex.join([program, option, value])
            yield PeerFile(f"{layout.BIN}/{name}", f'#!/bin/sh\nexec {words} "$@"\n', mode=0o700)


def config_text(job_info: str, directory: Path) -> str:
    """The configuration of ``ssh`` in the task of that directory. Raises ValueError as above."""
    return ssh_config(job_info, str(directory / layout.PEER_KEY), str(directory / layout.KNOWN_HOSTS))
