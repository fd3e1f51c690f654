"""The two records of a task's life, ``started.json`` and ``exit.json``: who may write them, and how.

Each is written once, by the holder of the task's lock, and is either absent or whole. The exit
record is written into room taken beforehand, so that a full disk cannot lose an exit code.
"""

from __future__ import annotations

import os
import time

from pai_backend.engine.local import layout

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
    fd = os.open(os.path.join(directory, layout.LAUNCH), os.O_RDONLY)
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
    path = os.path.join(directory, layout.STARTED)
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
    reserve = os.path.join(directory, layout.RESERVE)
    fd = os.open(reserve, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(fd, data, 0)
        os.ftruncate(fd, len(data))
        os.fsync(fd)
    finally:
        os.close(fd)
    os.rename(reserve, os.path.join(directory, layout.EXIT))
    sync_directory(directory)
