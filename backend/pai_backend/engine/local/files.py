"""SFTP as a program of the task: one for each session, on its standard input and output, as OpenSSH's server has it.

Not in the agent's process, which serves all tasks of the node: a file can make its reader wait for ever (a named pipe,
a lost mount), and a client can ask for gigabytes in one read and for any number of open files. All of that is then the
task's own, within its limits, and ends with it.

OpenSSH's program is used where the machine has it. ``python -m pai_backend.engine.local.files`` is for other machines.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import sys
from typing import IO, Any, cast

import asyncssh
from asyncssh.logging import logger
from asyncssh.sftp import SFTPServerHandler

VERSION = 3  # as OpenSSH's
OPENSSH = (
    "/usr/lib/openssh/sftp-server",  # Debian, Ubuntu
    "/usr/libexec/openssh/sftp-server",  # Fedora, RHEL
    "/usr/lib/ssh/sftp-server",  # Arch, Alpine, SUSE
    "/usr/libexec/sftp-server",  # macOS, BSD
)


def file_server() -> list[str]:
    """The command line of a program that serves SFTP from its working directory on.

    OpenSSH's ends at once for an account that has no name on this machine.
    """
    candidates: tuple[str, ...] = OPENSSH
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        candidates = ()
    for program in candidates:
        if os.access(program, os.X_OK):
            return [program]
    return [sys.executable, "-I", "-m", __name__]


class _Pipe:
    """A standard stream as asyncssh's server wants its two ends. It may block: there is one client, and this is all
    that the program does.
    """

    logger = logger

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.channel = self

    def get_extra_info(self, name: str, default: object = None) -> object:
        """Called for the client's version: of links all clients name the target first, as OpenSSH's server wants it."""
        return "OpenSSH" if name == "client_version" else default

    def is_closing(self) -> bool:
        """Called before each answer."""
        return self._stream.closed

    async def readexactly(self, size: int) -> bytes:
        """Called for each part of a request. Raises EOFError at the end of the input."""
        data = self._stream.read(size)
        if len(data) < size:
            raise EOFError
        return data

    def write(self, data: bytes) -> None:
        """Called with each answer. Raises OSError when its reader is gone."""
        self._stream.write(data)
        self._stream.flush()

    def close(self) -> None:
        """Called at the end."""
        self._stream.close()


async def _serve() -> None:
    reader, writer = _Pipe(sys.stdin.buffer), _Pipe(sys.stdout.buffer)
    server = asyncssh.SFTPServer(cast("asyncssh.SSHServerChannel[bytes]", writer))
    await SFTPServerHandler(server, cast("Any", reader), cast("Any", writer), VERSION).run()


if __name__ == "__main__":
    asyncio.run(_serve())
