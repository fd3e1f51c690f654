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
import socket
import sys

import asyncssh

VERSION = 3  # as OpenSSH's
CLIENT = "OpenSSH"
"""Of links all clients name the target first, as OpenSSH's server wants it; asyncssh asks for the client's version."""
PIECE_BYTES = 1 << 16
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


class _Anybody(asyncssh.SSHServer):
    """Asks nothing: the one client is this program itself."""

    def begin_auth(self, username: str) -> bool:
        """Called by asyncssh."""
        return False


async def _serve() -> None:
    """Serve SFTP on the standard streams. asyncssh has documented ways for connections only, so there is one."""
    near, far = socket.socketpair()
    key = asyncssh.generate_private_key("ssh-ed25519")
    served = asyncssh.run_server(
        far, config=None, server_factory=_Anybody, server_host_keys=[key], sftp_factory=True, sftp_version=VERSION
    )
    asking = asyncssh.connect(
        *("sftp", 0),
        sock=near,
        config=None,
        known_hosts=None,
        username="task",
        client_keys=None,
        agent_path=None,
        client_version=CLIENT,
    )
    server, client = await asyncio.gather(served, asking)
    async with server, client:
        requests, answers, _ = await client.open_session(subsystem="sftp", encoding=None)
        feeding = asyncio.create_task(_feed(requests))
        while data := await answers.read(PIECE_BYTES):
            await asyncio.to_thread(_write, data)
        feeding.cancel()


async def _feed(requests: asyncssh.SSHWriter[bytes]) -> None:
    """Copy standard input, which may block: there is one client, and this is all that the program does."""
    while data := await asyncio.to_thread(os.read, sys.stdin.fileno(), PIECE_BYTES):
        requests.write(data)
        await requests.drain()
    requests.write_eof()


def _write(data: bytes) -> None:
    """Write to standard output. Raises OSError when its reader is gone."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(sys.stdout.fileno(), rest) :]


if __name__ == "__main__":
    asyncio.run(_serve())
