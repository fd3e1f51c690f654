"""A task's SSH server whose sessions start no process: thousands of them cost this machine nothing but memory.

``python -m bench.ssh.quiet PORT HOST_KEY AUTHORIZED_KEYS`` prints a line when it listens, and serves until it is ended.
"""

from __future__ import annotations

import asyncio
import sys

import asyncssh


async def _idle(process: asyncssh.SSHServerProcess[bytes]) -> None:
    """A session that says it is there, then nothing, until the client ends it."""
    process.stdout.write(b"here\n")
    await process.stdin.read()
    process.exit(0)


async def _serve(port: int, host_key: str, authorized: str) -> None:
    server = await asyncssh.listen(
        "127.0.0.1",
        port,
        server_host_keys=[host_key],
        authorized_client_keys=authorized,
        process_factory=_idle,
        encoding=None,
        line_editor=False,
        backlog=512,
    )
    print("ready", flush=True)
    await server.wait_closed()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), sys.argv[2], sys.argv[3]))
