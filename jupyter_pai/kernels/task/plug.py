"""The program of an SSH session: it joins the session's input and output with the holder of a kernel.

It is sent as text on its own input and ends with the session. The holder lives on.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from typing import Any, NoReturn

MAGIC = b"\0pai-kernel 1\0"
"""Says where what a login prints by itself ends."""
HOLDER = "import sys; sys.path.insert(0, {0!r}); from program.holder import main; main({0!r}, {1!r})"


def refuse(word: str, detail: str = "") -> NoReturn:
    """Say why there is no link, and end."""
    payload = json.dumps({"error": word, "detail": detail}).encode()
    sys.stdout.buffer.write(struct.pack(">cI", b"E", len(payload)) + payload)
    sys.stdout.buffer.flush()
    raise SystemExit(1)


def own(directory: str) -> bool:
    """Whether it is a directory that only this user can use."""
    try:
        found = os.lstat(directory)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077


def remove_leftovers(prefix: str) -> None:
    """Remove directories of holders that were killed."""
    for directory in glob.glob(prefix + "*"):
        if own(directory):
            probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                probe.connect(os.path.join(directory, "link"))
            except ConnectionRefusedError:
                shutil.rmtree(directory, ignore_errors=True)
            except OSError:
                pass  # one that is beginning
            finally:
                probe.close()


def begin(directory: str, program: dict[str, str], keep_s: float | None) -> subprocess.Popen[bytes]:
    """Start a holder in a new directory."""
    try:
        os.mkdir(directory, 0o700)
        os.mkdir(os.path.join(directory, "program"))
        for name, text in program.items():
            with open(os.path.join(directory, "program", name), "w", encoding="utf-8") as file:
                file.write(text)
        log = open(os.path.join(directory, "holder.log"), "ab")  # noqa: SIM115  # the holder's, until it ends
        command = [sys.executable, "-c", HOLDER.format(directory, keep_s)]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    except OSError as error:
        refuse("no-place", str(error))


def connect(directory: str, holder: subprocess.Popen[bytes] | None) -> socket.socket:
    """A connection to the holder; a new one is waited for."""
    path = os.path.join(directory, "link")
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(path)
            return connection
        except OSError as error:
            connection.close()
            if holder is None:
                refuse("gone", str(error))
            if holder.poll() is not None:
                with open(os.path.join(directory, "holder.log"), errors="replace") as file:
                    refuse("no-holder", file.read()[-2000:])
            time.sleep(0.02)


def copy_input(connection: socket.socket) -> None:
    """What the session gets, to the holder."""
    try:
        while True:
            data = sys.stdin.buffer.read1(65536)  # type: ignore[union-attr]  # a BufferedReader
            if not data:
                break
            connection.sendall(data)
    except OSError:
        pass
    os._exit(0)


def main(request: dict[str, Any]) -> None:
    """Join the session with the holder that ``request`` names. Returns when the holder has closed the link."""
    sys.stdout.buffer.write(MAGIC)
    sys.stdout.buffer.flush()
    directory, holder = request["directory"], None
    if request["begin"] and not os.path.lexists(directory):
        remove_leftovers(directory.rpartition("-")[0] + "-")
        holder = begin(directory, request["program"], request["keep_s"])
    elif not own(directory):
        refuse("gone" if not os.path.lexists(directory) else "not-ours")
    connection = connect(directory, holder)
    threading.Thread(target=copy_input, args=(connection,), daemon=True).start()
    try:
        while True:
            data = connection.recv(65536)
            if not data:
                break
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
    except OSError:
        pass
    os._exit(0)
