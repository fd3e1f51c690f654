"""Names of the files that engine, shim and agent share, and the two records of a task's life.

``<root>/tasks/<uid>/``  a task that is live, or whose exit is not yet recorded elsewhere
``<root>/done/<uid>/``   a forgotten one: its logs stay readable, and its uid can never start again
``<root>/interpreters/`` what tasks with the same Python have in common, see ``overlay``
``<root>/homes/<uid>/``  of accounts without a home of their own, see ``accounts``

A task directory appears whole, by one rename. In it, in the order in which they come to be:
``plan.json``, ``launch``, ``job-info.json``, ``exit.reserve``, ``lock``, ``control``, ``work/``, ``bin/``,
``python/``, ``terminals/``, perhaps ``debugger/``, ``stage.json``, ``ssh_config``, ``peer_key`` and ``known_hosts``;
then ``staging`` while inputs are fetched, ``started.json`` before the command is executed, and ``exit.json`` after
everything of it is gone.
``stop`` is a wish to stop, written before it is announced.
A task whose exit says that it is kept serves SSH until it is stopped or forgotten.

``started.json`` and ``exit.json`` are written once each, by the holder of the task's lock, and are either absent or
whole. The exit record is written into room taken beforehand, so that a full disk cannot lose an exit code.

Locks on files are advisory, and held until the descriptor is closed or the process ends.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time

TASKS = "tasks"
DONE = "done"
INTERPRETERS = "interpreters"
HOMES = "homes"
ACCOUNTS = "accounts.json"  # whose the accounts are, by uid
ACCOUNTS_LOCK = "accounts.lock"  # flock held while that is changed
EVENTS_FIFO = "events.fifo"  # read by the watching engine: one uid a line, a hint to look
AGENT_FIFO = "agent.fifo"  # the same, read by the agent
HOLDER = "holder.json"  # the database that these tasks belong to, with a heartbeat: see ``engine.holding``
HOLDER_LOCK = "holder.lock"  # flock held while that is changed
JOBS = "jobs"  # folder with one sealed file a job: what a database that lost the job takes it back from
WATCH_LOCK = "watch.lock"  # flock held by the watching engine
AGENT_LOCK = "agent.lock"  # flock held by the agent
SUCCESSOR = "successor"  # what an agent that waits for this lock writes into the FIFO

PLAN = "plan.json"  # the TaskPlan but for what has a file of its own; SSH keys included
LAUNCH = "launch"  # what the shim needs of it, see ``shim.command``
GROUPS = "groups"  # the directories of its control groups, one a line; absent when it has none
COMMAND = "command"  # its text for bash; without a name as soon as it is open
RESERVE = "exit.reserve"  # room for the exit record, taken while there is some
LOCK = "lock"  # flock held by the one shim
CONTROL = "control"  # FIFO that the shim reads; no reader means no shim
STAGE = "stage.json"  # what the staging program is to fetch and make; absent when there is nothing
STAGING = "staging"  # exists once that program was started
STARTED = "started.json"
EXIT = "exit.json"
STOP = "stop"  # the grace in milliseconds
SESSIONS = "sessions"  # exists once a process was started in the task from outside (SSH)
SSH_STATE = "ssh.json"  # what became of the task's SSH listener
SHIM_LOG = "shim.log"  # standard error of the shim itself: empty unless it has a fault
WORK = "work"  # the task's working directory
PYTHON = "python"  # its environment of Python, with all that it installs; removed when the task is forgotten
SHELL_START = "python/bashrc"  # what bash reads at the start of a login, and that has it read its user's own
TERMINALS = "terminals"  # sockets of its persistent terminals, in a folder for each user
DEBUGGER = "debugger"  # what lets debuggers attach, and its socket; absent unless its job's document says so
CONTAINER = "container"  # what the container is made of that the task runs in; absent for a process of the machine
STORAGES = "mnt"  # in it: links to the team storages that the job's document names
RECORD = "record"  # sealed: the job's state and this task, for a database that lost them
JOB_INFO = "job-info.json"  # what PAI_JOB_INFO_FILE names; replaced as a whole by ``refresh``
BIN = "bin"  # put first on the task's PATH
SSH_CONFIG = "ssh_config"  # what ``ssh`` on that PATH reads of the job's tasks; follows the job info
PEER_KEY = "peer_key"  # what it logs in to them with
KNOWN_HOSTS = "known_hosts"  # what it recognises them by

LOOPBACK = "127.0.0.1"  # every node of a local engine is this machine
LOOPBACK_6 = "::1"
"""Where programs listen to which ``localhost`` is this address alone, as it is to Node.js since version 17."""
SECRET_FILES = (PLAN, LAUNCH, COMMAND, STAGE, PEER_KEY, RECORD)  # removed when the task is forgotten
LIVE_FOLDERS = (PYTHON, CONTAINER)  # the same
MARK = "PAI_TASK_UID"  # environment variable that every process of a task has


def send_line(fifo: str, line: str) -> bool:
    """Write one line to a FIFO without waiting; whether a process has it open to read.

    A full FIFO counts as heard: its reader has hints enough to look. Raises OSError other than that.
    """
    try:
        fd = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as exc:
        if exc.errno == errno.ENXIO:
            return False
        raise
    try:
        os.write(fd, f"{line}\n".encode())
    except (BlockingIOError, BrokenPipeError):
        return True
    finally:
        os.close(fd)
    return True


def has_reader(fifo: str) -> bool:
    """Whether some process has the FIFO open to read: the way to ask if a shim lives.

    It disturbs no process, costs two system calls, and the kernel answers truly after any kind of death.
    """
    try:
        os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as exc:
        if exc.errno in (errno.ENXIO, errno.ENOENT, errno.ENOTDIR):
            return False
        raise
    return True


def nudge(root: str, uid: str) -> None:
    """Tell the watching engine and the agent, if they listen, to look at this task."""
    for name in (EVENTS_FIFO, AGENT_FIFO):
        send_line(os.path.join(root, name), uid)


HANDOVER_S = 2.0  # see ``patience_s``
_RETRY_S = 0.02


def take_lock(path: str | os.PathLike[str], patience_s: float = 0.0) -> int | None:
    """A descriptor that holds the lock of the file, making the file if need be; None when another has it.

    A process that is killed while it spawns another leaves its locks, for the moment until that one
    has executed its program, to the half-born child: its successor must be patient.
    Raises OSError when the file cannot be opened. Blocks for ``patience_s`` seconds at most.
    """
    deadline = time.monotonic() + patience_s
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(fd)
                return None
            time.sleep(_RETRY_S)
        else:
            return fd


RESERVE_BYTES = 4096  # one block of any usual file system; an exit record is below 1 KiB
_MESSAGE_LIMIT = 600  # characters, so that the record fits the reserve even when all are escaped

UNEXPLAINED = "unexplained"  # a field of the exit record, as ``TaskExit`` has it
LIFE = "life"  # a field of the start record, see ``processes.machine_life``
KEPT = "kept"  # a field of the exit record, present when the task's SSH server stays

Field = str | int | float | None


def to_json(fields: dict[str, Field]) -> str:
    """A flat JSON object. The ``json`` module costs the shim 5 ms and imports what it may not find later."""
    return "{" + ", ".join(f"{_quoted(key)}: {_value(value)}" for key, value in fields.items()) + "}"


def _value(value: Field) -> str:
    if value is None:
        return "null"
    return _quoted(value) if isinstance(value, str) else repr(value)


def _quoted(text: str) -> str:
    out = []
    for char in text:
        if char in '"\\':
            out.append("\\" + char)
        elif " " <= char <= "~":
            out.append(char)
        elif ord(char) < 0x10000:
            out.append(f"\\u{ord(char):04x}")
        else:
            rest = ord(char) - 0x10000
            out.append(f"\\u{0xD800 + (rest >> 10):04x}\\u{0xDC00 + (rest & 0x3FF):04x}")
    return '"' + "".join(out) + '"'


def sync_directory(path: str) -> None:
    """Make the names in a directory durable."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_durable(directory: str) -> None:
    """Let a new task survive a crash of the machine: its launch file, its entries, and its own name."""
    fd = os.open(os.path.join(directory, LAUNCH), os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    sync_directory(directory)
    sync_directory(os.path.join(directory, os.pardir))


def write_started(directory: str, life: str) -> None:
    """Record that the command is about to be executed, in which life of the machine.

    Raises FileExistsError when it was before.
    """
    path = os.path.join(directory, STARTED)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(fd, to_json({"pid": os.getpid(), "at": time.time(), LIFE: life}).encode())
        os.fsync(fd)
    finally:
        os.close(fd)
    sync_directory(directory)


def write_exit(
    directory: str,
    *,
    code: int | None = None,
    signal: int | None = None,
    reason: str,
    message: str,
    causer: str,
    kept: bool = False,
    unexplained: bool = False,
) -> None:
    """Record how the task ended, atomically and durably. Raises OSError when the directory is gone.

    ``kept`` is part of the record, so that there is no instant in which a task is over and not yet kept.
    """
    fields: dict[str, Field] = {"code": code, "signal": signal, "reason": reason}
    fields |= {"message": message[:_MESSAGE_LIMIT], "causer": causer, "at": time.time()}
    if kept:
        fields[KEPT] = 1
    if unexplained:
        fields[UNEXPLAINED] = 1
    data = to_json(fields).encode()
    reserve = os.path.join(directory, RESERVE)
    fd = os.open(reserve, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(fd, data, 0)
        os.ftruncate(fd, len(data))
        os.fsync(fd)
    finally:
        os.close(fd)
    os.rename(reserve, os.path.join(directory, EXIT))
    sync_directory(directory)
