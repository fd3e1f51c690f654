"""What a shim (and the agent) must know to run something in a task, in a form that is quick to read.

The file is a sequence of NUL-terminated fields: uid, bytes a log may have before it is rotated,
command, then ``KEY=VALUE`` of the whole environment. NUL is the one byte none of them can hold.
"""

from __future__ import annotations

_TEXT = ("utf-8", "surrogateescape")  # of the file, whatever the locale of who reads it


class Launch:
    """The command of a task and the world it runs in. (``dataclasses`` and ``typing`` cost the shim 9 ms.)"""

    def __init__(self, uid: str, log_bytes: int, command: str, env: dict[str, str]) -> None:
        self.uid = uid
        self.log_bytes = log_bytes
        self.command = command
        self.env = env


def encode(launch: Launch) -> bytes:
    """The file's content. Raises ValueError when a field holds a NUL or a variable's name is not one."""
    for key in launch.env:
        if not key or "=" in key:
            raise ValueError(f"environment variable name {key!r} is empty or holds '='")
    fields = [launch.uid, str(launch.log_bytes), launch.command, *(f"{k}={v}" for k, v in launch.env.items())]
    if any("\0" in field for field in fields):
        raise ValueError("a command or environment variable holds a NUL byte, which no process can be given")
    return b"".join(field.encode(*_TEXT) + b"\0" for field in fields)


def decode(data: bytes) -> Launch:
    """The reverse of :func:`encode`. Raises ValueError for anything else."""
    uid, log_bytes, command, *env = (field.decode(*_TEXT) for field in data.split(b"\0")[:-1])
    pairs = (entry.partition("=") for entry in env)
    return Launch(uid, int(log_bytes), command, {key: value for key, _, value in pairs})


def read(path: str) -> Launch:
    """The launch file at ``path``. Raises OSError or ValueError."""
    with open(path, "rb") as file:
        return decode(file.read())
