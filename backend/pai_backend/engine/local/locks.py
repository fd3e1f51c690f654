"""Advisory locks on files, held until the descriptor is closed or the process ends."""

from __future__ import annotations

import fcntl
import os
import time

HANDOVER_S = 2.0  # see ``patience_s``
_RETRY_S = 0.02


def take_lock(path: str | os.PathLike[str], patience_s: float = 0.0) -> int | None:
    """A descriptor that holds the lock of the file, making the file if need be; None when another has it.

    A process that is killed while it spawns another leaves its locks, for the moment until that one
    has executed its program, to the half-born child: whoever takes over from it must be patient.
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
