"""Making a task's directory so that it appears whole or not at all.

Whole is not yet durable: callers that rely on that call ``layout.make_durable``. A start does so while
the shim's interpreter comes up, and the shim does so again before it executes anything: six flushes
one after the other would be most of a start on a busy disk (measured: 100 of 156 ms).
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import shutil
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from pai_backend.engine import debugger
from pai_backend.engine.base import TaskPlan
from pai_backend.engine.local import layout, simulated_smi
from pai_backend.engine.local.account import SystemAccount
from pai_backend.engine.local.environment import task_environment
from pai_backend.engine.local.interpreter import Interpreter
from pai_backend.engine.local.nodes import SIMULATED_GPU_MEMORY_MB
from pai_backend.engine.local.overlay import build_overlay
from pai_backend.engine.local.owners import PASSABLE, give
from pai_backend.engine.local.peers import peer_files
from pai_backend.engine.local.shim.command import Launch, encode

_UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,127}", re.ASCII)

_BUILDING = ".new-"
_ELSEWHERE = {"command", "env", "job_info", "job_record", "task_record", "image_login", "ssh"}
_OWN = secrets.token_hex(4)  # tells what this process is building from what a killed one left behind


def clear_abandoned(folder: Path) -> None:
    """Remove what another process, killed since, was building in the folder of tasks."""
    for path in folder.glob(f"{_BUILDING}*"):
        if _OWN not in path.name:
            shutil.rmtree(path, ignore_errors=True)


def checked_uid(uid: str) -> bool:
    """Whether the uid is safe as a file name and in an environment variable."""
    return _UID.fullmatch(uid) is not None


def build_task(
    directory: Path, plan: TaskPlan, log_bytes: int, python: Interpreter, account: SystemAccount | None = None
) -> None:
    """Make the directory of a new task, upon this Python; no-op when it is there already.

    With an account the task runs as that one, and has what it may read of this directory; the rest is root's.
    Raises OSError when the disk refuses, ValueError when the plan can never be executed.
    """
    root = directory.parent.parent
    env = task_environment(plan, directory, os.environ, python, root, account)
    launch = Launch(
        plan.uid,
        log_bytes,
        plan.command,
        env,
        keep=plan.keep_on_failure,
        ports=_own_ports(plan),
        directories=_local_directories(plan),
    )
    with Draft(directory) as draft:
        fresh = draft.path
        draft.write_common(plan, launch, account)
        (fresh / layout.BIN).mkdir(mode=0o700)
        (fresh / layout.TERMINALS).mkdir(mode=0o700)
        if plan.debugger:
            (fresh / layout.DEBUGGER).mkdir(mode=0o700)
            _write(fresh / layout.DEBUGGER / debugger.PROGRAM, debugger.program())
        build_overlay(fresh, python, root)
        _link_storages(fresh / layout.WORK / layout.STORAGES, plan)
        _write(fresh / layout.JOB_INFO, plan.job_info.encode())
        if plan.inputs or plan.outputs:
            draft.write_stage(plan, plan.outputs)
        if plan.placement.simulated_gpu and plan.placement.gpus:
            _add_simulated_smi(fresh / layout.BIN, plan)
        own = f"{directory / layout.BIN}{os.pathsep}"
        for file in peer_files(plan, directory, env["PATH"].removeprefix(own)):
            _write(fresh / file.name, file.content.encode(), file.mode)
        if account is not None:
            _open_to(fresh, account)
        draft.publish()


class Draft:
    """A task's directory that is being made, and that nothing is left of unless it is published."""

    def __init__(self, directory: Path) -> None:
        """``directory`` is where it will be."""
        self._directory = directory
        self.path = _new_directory(directory)

    def __enter__(self) -> Draft:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            shutil.rmtree(self.path, ignore_errors=True)

    def write_common(
        self, plan: TaskPlan, launch: Launch, account: SystemAccount | None = None, *, contained: bool = False
    ) -> None:
        """What every task has. The SSH server of one that is ``contained`` is not the agent's.

        Raises OSError, and ValueError when no process can be given its variables.
        """
        _write(self.path / layout.LAUNCH, encode(launch))
        (self.path / layout.WORK).mkdir(mode=0o700)
        os.mkfifo(self.path / layout.CONTROL, 0o600)
        _write(self.path / layout.PLAN, _plan_text(plan, account, contained=contained))
        if plan.task_record:
            _write(self.path / layout.RECORD, plan.task_record.encode())
        _write(self.path / layout.RESERVE, bytes(layout.RESERVE_BYTES))

    def write_stage(self, plan: TaskPlan, outputs: tuple[str, ...]) -> None:
        """What is fetched before the command runs, and the outputs that are made then."""
        _write(self.path / layout.STAGE, _stage_text(plan, outputs, self._directory))

    def publish(self) -> bool:
        """Give it its name; False when another start or stop came first."""
        return _publish(self.path, self._directory)


def _open_to(fresh: Path, account: SystemAccount) -> None:
    """Give the account its part of the directory, which it passes through and does not write to."""
    own: tuple[str, ...] = (layout.WORK, layout.PYTHON, layout.BIN, layout.JOB_INFO, layout.STAGE)
    own += (layout.TERMINALS, layout.DEBUGGER, layout.PEER_KEY, layout.SSH_CONFIG, layout.KNOWN_HOSTS)
    for name in own:
        if (fresh / name).exists():
            give(fresh / name, account.uid, account.gid)
    fresh.chmod(PASSABLE)


def _link_storages(folder: Path, plan: TaskPlan) -> None:
    """Links to the team storages that are directories of this machine; of others the task has the URI."""
    for storage in plan.storages:
        if storage.uri.startswith("/"):
            folder.mkdir(exist_ok=True)
            (folder / storage.name).symlink_to(storage.uri)


def build_tombstone(directory: Path, *, reason: str, message: str, causer: str, unexplained: bool = False) -> bool:
    """Make the directory of a task that ended without ever beginning, durably; False when it is there already."""
    with Draft(directory) as draft:
        layout.write_exit(str(draft.path), reason=reason, message=message, causer=causer, unexplained=unexplained)
        if not draft.publish():
            return False
        layout.sync_directory(str(directory.parent))
    return True


def _new_directory(directory: Path) -> Path:
    fresh = directory.parent / f"{_BUILDING}{directory.name}-{_OWN}-{secrets.token_hex(4)}"
    fresh.mkdir(mode=0o700)
    return fresh


def _publish(fresh: Path, directory: Path) -> bool:
    """Give the finished directory its name; False when another start or stop came first."""
    if directory.exists():
        shutil.rmtree(fresh)
        return False
    try:
        os.rename(fresh, directory)
    except OSError:
        if not directory.is_dir():
            raise
        shutil.rmtree(fresh)  # lost the race: rename(2) does not replace a directory that has entries
        return False
    return True


def _own_ports(plan: TaskPlan) -> dict[str, tuple[int, ...]]:
    """The ports that the command may listen on: all but the one of the task's SSH server."""
    taken = plan.ssh.port if plan.ssh else None
    own = {label: tuple(n for n in ports if n != taken) for label, ports in plan.placement.ports.items()}
    return {label: ports for label, ports in own.items() if ports}


def _local_directories(plan: TaskPlan) -> tuple[str, ...]:
    """The outputs, when they are all that is to be staged and lie on this machine: most tasks have just that.

    The shim makes them itself; starting the staging program for it would be half of such a task's start.
    """
    if plan.inputs or not all(output.startswith("/") for output in plan.outputs):
        return ()
    return plan.outputs


def _stage_text(plan: TaskPlan, outputs: tuple[str, ...], directory: Path) -> bytes:
    fields = {
        "inputs": [item.model_dump(mode="json") for item in plan.inputs],
        "outputs": list(outputs),
        "work_dir": str(directory / layout.WORK),
        "user": plan.user,
    }
    return json.dumps(fields).encode()


def _plan_text(plan: TaskPlan, account: SystemAccount | None, *, contained: bool) -> bytes:
    """The plan but for what has a file of its own, with SSH's secret in clear: only its owner can read the file."""
    fields = plan.model_dump(mode="json", exclude=_ELSEWHERE)
    fields["account"] = None if account is None else asdict(account)
    fields["ssh"] = None
    if plan.ssh is not None and not contained:
        host_key = plan.ssh.host_key.get_secret_value()
        fields["ssh"] = plan.ssh.model_dump(mode="json", exclude={"peers"}) | {"host_key": host_key}
    return json.dumps(fields).encode()


def replace_file(path: Path, data: bytes) -> None:
    """Give a file new content so that a reader sees the old one whole or the new one whole. Raises OSError.

    Whose the old one was, the new one is.
    """
    fresh = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        _write(fresh, data)
        with suppress(FileNotFoundError):
            about = os.lstat(path)
            if about.st_uid != os.geteuid():
                os.chown(fresh, about.st_uid, about.st_gid)
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _write(path: Path, data: bytes, mode: int = 0o600) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with open(fd, "wb") as file:
        file.write(data)


def _add_simulated_smi(folder: Path, plan: TaskPlan) -> None:
    indices = ",".join(str(index) for index in plan.placement.gpus)
    words = [sys.executable, "-I", "-S", simulated_smi.__file__]
    words += [plan.placement.gpu_type or "GPU", indices, str(SIMULATED_GPU_MEMORY_MB)]
    script = f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n'
    _write(folder / "nvidia-smi", script.encode(), mode=0o700)
