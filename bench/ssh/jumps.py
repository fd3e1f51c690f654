"""The socket by which jumps come to the task whose SSH server is Debian's sshd; in a pod the launcher serves it.

``python -m bench.ssh.jumps CONFIG KEYS`` prints a line when it listens, and serves until it is ended: each connection
gets an sshd of its own with that configuration, which accepts the key of the first line alone (``engine.jumps``).
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from itertools import count
from pathlib import Path

from pai_backend.engine.jumps import JUMP_SOCKET


def _serve(config: Path, keys: Path) -> None:
    socket_path = Path(JUMP_SOCKET)
    made = [each for each in socket_path.parents if not each.exists()]
    socket_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(JUMP_SOCKET)  # fails where a task, or another bench, listens
    try:
        listener.listen(512)
        print("ready", flush=True)
        for number in count():
            connection, _ = listener.accept()
            with connection:
                _begin(connection, config, keys / str(number))
    finally:
        socket_path.unlink()
        for directory in made:
            directory.rmdir()


def _begin(connection: socket.socket, config: Path, keys: Path) -> None:
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = connection.recv(1)
        if not byte:
            return
        line += byte
    keys.write_bytes(line)
    program = shutil.which("sshd") or "/usr/sbin/sshd"
    words = ["-i", "-f", str(config), "-o", f"AuthorizedKeysFile={keys}"]
    subprocess.Popen(
        [program, *words], stdin=connection.fileno(), stdout=connection.fileno(), stderr=subprocess.DEVNULL
    )


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # each sshd is taken off by the kernel
    os.umask(0o077)
    _serve(Path(sys.argv[1]), Path(sys.argv[2]))
