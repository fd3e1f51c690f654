"""What a shim (and the agent) must know to run something in a task, in a form that is quick to read.

The file is a sequence of NUL-terminated fields: uid, bytes a log may have before it is rotated, whether a failed
task is kept, ports as ``label:port,port;``, number of directories, the directories, command, then ``KEY=VALUE`` of
the whole environment. NUL is the one byte none of them can hold.
"""

from __future__ import annotations

TEXT = ("utf-8", "surrogateescape")  # of the file, whatever the locale of who reads it
_KEPT = "keep"
VARIABLE_BYTES = 131_072  # Linux takes no longer one, with its NUL: execve(2), MAX_ARG_STRLEN with 4 KiB pages


class Launch:
    """The command of a task and the world it runs in. (``dataclasses`` and ``typing`` cost the shim 9 ms.)"""

    def __init__(
        self,
        uid: str,
        log_bytes: int,
        command: str,
        env: dict[str, str],
        *,
        keep: bool = False,
        ports: dict[str, tuple[int, ...]] | None = None,
        directories: tuple[str, ...] = (),
    ) -> None:
        """``ports`` are those that the command may listen on, by label; ``directories`` are made before it runs."""
        self.uid = uid
        self.log_bytes = log_bytes
        self.command = command
        self.env = env
        self.keep = keep
        self.ports = ports or {}
        self.directories = directories
        self.life = ""  # of the machine, when the shim has begun
        self.account = ""  # that the task runs as, see ``account``; empty: the shim's own


def encode(launch: Launch) -> bytes:
    """The file's content. Raises ValueError when no process can be given these fields; it repeats no value."""
    for key, value in launch.env.items():
        if not key or "=" in key:
            raise ValueError(f"environment variable name {key!r} is empty or holds '='")
        if len(value) > VARIABLE_BYTES // 4 and (size := len(f"{key}={value}".encode(*TEXT)) + 1) > VARIABLE_BYTES:
            raise ValueError(
                f"environment variable {key} has {size:,} bytes, and a process can be given at most "
                f"{VARIABLE_BYTES:,} in one; put the value into a file"
            )
    ports = "".join(f"{label}:{','.join(map(str, numbers))};" for label, numbers in launch.ports.items())
    fields = [launch.uid, str(launch.log_bytes), _KEPT if launch.keep else "", ports]
    fields += [str(len(launch.directories)), *launch.directories, launch.command]
    fields += [f"{key}={value}" for key, value in launch.env.items()]
    text = "\0".join(fields) + "\0"
    if text.count("\0") != len(fields):
        raise ValueError("a command or environment variable holds a NUL byte, which no process can be given")
    return text.encode(*TEXT)


def decode(data: bytes) -> Launch:
    """The reverse of :func:`encode`. Raises ValueError for anything else."""
    uid, log_bytes, keep, ports, count, *rest = data.decode(*TEXT).split("\0")[:-1]
    directories, (command, *env) = rest[: int(count)], rest[int(count) :]
    pairs = (entry.partition("=") for entry in env)
    return Launch(
        uid,
        int(log_bytes),
        command,
        {key: value for key, _, value in pairs},
        keep=keep == _KEPT,
        ports=dict(map(_port_group, ports.split(";")[:-1])),
        directories=tuple(directories),
    )


def _port_group(text: str) -> tuple[str, tuple[int, ...]]:
    label, _, numbers = text.partition(":")
    return label, tuple(map(int, numbers.split(",")))


def read(path: str) -> Launch:
    """The launch file at ``path``. Raises OSError or ValueError."""
    with open(path, "rb") as file:
        return decode(file.read())
