"""The files below ``layout.PLAN``: what the launcher of a task is told to run.

Variables and command of a job with thousands of tasks say the same things over and over: both are compressed (3,000
tasks: see docs/engine-kubernetes.md).
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator
from typing import Final

from pai_backend.engine import debugger
from pai_backend.engine.base import StartRefused
from pai_backend.engine.bundle import layout
from pai_backend.launch.peers import known_hosts_line
from pai_backend.launch.plan import path_variables
from pai_backend.launch.room import VARIABLE_BYTES, entry_bytes
from pai_backend.model.plan import SshPlan, StagedInput, TaskPlan

LEVEL: Final = 4  # of gzip: at 3,000 tasks 7 ms for each and 74 KB; 9 takes 60 ms for 72 KB (measured 2026-11-21)

_TEXT: Final = ("utf-8", "surrogateescape")


def plan_files(plan: TaskPlan, hosts_wait_s: float | None) -> dict[str, bytes]:
    """Contents by name. ``hosts_wait_s``: how long the launcher waits for the hosts file that it keeps; None: none.

    Raises StartRefused when no process can be given its variables; the message repeats no value.
    """
    files = {
        layout.COMMAND: compressed(plan.command.encode(*_TEXT)),
        layout.ENVIRON: compressed(entries(task_environment(plan).items())),
        layout.OPTIONS: entries(launcher_options(plan, hosts_wait_s)),
    }
    if plan.debugger:
        files[debugger.PROGRAM] = debugger.program()
    if plan.ssh is not None:
        files |= {name: text.encode() for name, text in _ssh_files(plan.ssh)}
    return files


def task_environment(plan: TaskPlan) -> dict[str, str]:
    """What the launcher adds to the image's own variables, and replaces of them."""
    paths = path_variables(plan.env, work_dir=layout.WORK, job_info_file=layout.JOB_INFO_FILE)
    place = os.path.dirname(debugger.DEBUG_SOCKET)
    more = debugger.debugger_variables(plan.env, layout.PLAN, place) if plan.debugger else {}
    return {**plan.env, **more, **paths, "PWD": layout.WORK, layout.MARK: plan.uid}


def launcher_options(plan: TaskPlan, hosts_wait_s: float | None) -> list[tuple[str, str]]:
    """What the launcher must know beside command and variables. A name may come several times."""
    options = [("uid", plan.uid), ("keep", "1" if plan.keep_on_failure else "0")]
    options += [("directory", path) for path in plan.outputs if _is_local(path)]
    if plan.ssh is not None:
        options.append(("ssh_port", str(plan.ssh.port)))
    taken = plan.ssh.port if plan.ssh else None
    for label, numbers in plan.placement.ports.items():
        options += [("port", f"{number} {label}") for number in numbers if number != taken]
    if hosts_wait_s is not None:
        options.append(("hosts_wait_s", str(hosts_wait_s)))
    return options


def remote_outputs(plan: TaskPlan) -> tuple[str, ...]:
    """Output directories that are no directories of the container: only the staging program can make them."""
    return tuple(uri for uri in plan.outputs if not _is_local(uri))


def stage_text(inputs: Iterable[StagedInput], outputs: tuple[str, ...], user: str) -> bytes:
    """What the staging program does in a container: see ``pai_backend.storage.stage``."""
    fields = {
        "inputs": [item.model_dump(mode="json") for item in inputs],
        "outputs": list(outputs),
        "work_dir": layout.WORK,
        "user": user,
    }
    return json.dumps(fields).encode()


def entries(pairs: Iterable[tuple[str, str]]) -> bytes:
    """``NAME=VALUE`` of each, ended by NUL, as in /proc/PID/environ.

    Raises StartRefused when no process can be given one of them; the message repeats no value.
    """
    found = []
    for name, value in pairs:
        if not name or "=" in name or "\0" in name + value:
            raise StartRefused(f"variable {name[:80]!r} cannot be given to a process: '=' in its name, or a NUL byte")
        if len(value) > VARIABLE_BYTES // 4 and (size := entry_bytes(name, value)) > VARIABLE_BYTES:
            raise StartRefused(
                f"variable {name[:80]} has {size:,} bytes, and a process can be given at most {VARIABLE_BYTES:,} in "
                "one; put the value into a file"
            )
        found.append(f"{name}={value}\0")
    return "".join(found).encode(*_TEXT)


def compressed(data: bytes) -> bytes:
    """Gzip without a time in it, so that the same data is the same file."""
    return gzip.compress(data, LEVEL, mtime=0)


def _ssh_files(ssh: SshPlan) -> Iterator[tuple[str, str]]:
    """What the task's SSH server and its clients have of the plan; their configuration the launcher makes."""
    yield layout.HOST_KEY, ssh.host_key.get_secret_value()
    yield layout.AUTHORIZED_KEYS, "".join(f"{key}\n" for key in ssh.authorized_keys)
    if ssh.host_certificate:
        yield layout.HOST_CERTIFICATE, f"{ssh.host_certificate}\n"
    if ssh.peers is not None:
        yield layout.PEER_KEY, ssh.peers.key.get_secret_value()
        yield layout.KNOWN_HOSTS, known_hosts_line(ssh.peers.host_ca)


def _is_local(uri: str) -> bool:
    return uri.startswith("/")
