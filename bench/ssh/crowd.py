"""Many clients in a process of their own: a client takes more CPU than the server it talks to.

``python -m bench.ssh.crowd WHAT PORT USER KEY COUNT`` with ``logins`` logs in so often and leaves at once, and prints
when it began and ended; with ``sessions`` it opens so many, prints a line when all are there, and stays until its
standard input ends. With ``silent`` it does so with connections that never say a word, from many loopback addresses.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator

import asyncssh

from bench.ssh.site import CIPHER, KEX

SOURCES = 200  # loopback addresses that silent connections come from
TOGETHER = 8  # logins under way at once in one process


async def _logins(options: asyncssh.SSHClientConnectionOptions, count: int) -> None:
    began = time.monotonic()

    async def one(numbers: Iterator[int]) -> None:
        for _ in numbers:
            async with asyncssh.connect(options.host, options.port, options=options):
                pass

    numbers = iter(range(count))
    await asyncio.gather(*(one(numbers) for _ in range(TOGETHER)))
    print(json.dumps({"began": began, "ended": time.monotonic()}))


async def _sessions(options: asyncssh.SSHClientConnectionOptions, count: int) -> None:
    async def some(numbers: Iterator[int]) -> list[asyncssh.SSHClientConnection]:
        mine = []
        for _ in numbers:
            connection = await asyncssh.connect(options.host, options.port, options=options)
            process = await connection.create_process(encoding=None)
            assert await process.stdout.readline() == b"here\n"
            mine.append(connection)
        return mine

    numbers = iter(range(count))
    groups = await asyncio.gather(*(some(numbers) for _ in range(TOGETHER)))
    print("there", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for connection in [each for group in groups for each in group]:
        connection.abort()


async def _silent(port: int, count: int) -> None:
    """Connections that are held as long as the gateway lets them be."""
    held = []
    for number in range(count):
        address = f"127.0.1.{1 + number % SOURCES}"
        held.append(await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0)))
    print("there", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for _, writer in held:
        writer.close()


async def _main() -> None:
    what, port, user, key, count = sys.argv[1:]
    if what == "silent":
        return await _silent(int(port), int(count))
    options = await asyncssh.SSHClientConnectionOptions.construct(
        host="127.0.0.1",
        port=int(port),
        username=user,
        client_keys=[key],
        known_hosts=None,  # the server is this bench's own, and looking keys up is not what is measured
        config=None,
        agent_path=None,
        kex_algs=[KEX],
        encryption_algs=[CIPHER],
        keepalive_interval=0,
    )
    await (_logins if what == "logins" else _sessions)(options, int(count))


if __name__ == "__main__":
    asyncio.run(_main())
