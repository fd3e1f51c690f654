"""Reading one small file of any storage as a given user, in a process of its own.

A process because the libraries block, some cannot be told to give up, and HDFS knows its user by the environment:
what hangs is killed, and what belongs to one user is never read as another. :func:`fetch` starts it;
``python -P -m pai_backend.storage.fetch`` is it: the request comes on standard input, because it may hold secrets.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from pai_backend.storage.faults import Away, StorageFault, explained
from pai_backend.storage.filesystems import HDFS_USER, filesystem, path_in, secret_texts
from pai_backend.storage.uris import StorageLocation, parse

FAULT, AWAY = 1, 3
"""Exit statuses of the process: it cannot be read as it is; the storage does not answer now."""


async def fetch(
    place: StorageLocation, user: str, max_bytes: int, options: Mapping[str, Any], timeout_s: float
) -> bytes:
    """All of a file of at most ``max_bytes``. Raises StorageFault, and Away when trying again may help."""
    request = {"uri": place.uri, "user": user, "max_bytes": max_bytes, "options": dict(options)}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "pai_backend.storage.fetch"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, HDFS_USER: user},
    )
    try:
        async with asyncio.timeout(timeout_s):
            data, said = await process.communicate(json.dumps(request).encode())
    except TimeoutError:
        raise Away(f"{place.shown} does not answer within {timeout_s:g} s", "check that its server runs") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode == 0:
        return data
    reason = said.decode("utf-8", "replace").strip().rpartition("\n")[2] or f"{place.shown} could not be read"
    raise (Away if process.returncode == AWAY else StorageFault)(reason)


def read(place: StorageLocation, user: str, max_bytes: int, options: Mapping[str, Any]) -> bytes:
    """The same, here and now: blocks. Raises StorageFault."""
    try:
        if place.local:
            with open(os.open(place.path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
                data = file.read(max_bytes + 1) or b""
        else:
            system = filesystem(place, options, user)
            with system.open(path_in(system, place), "rb") as file:
                data = file.read(max_bytes + 1)
    except Exception as error:  # noqa: BLE001 - each library has errors of its own
        raise explained(error, place, secret_texts(options)) from None
    if len(data) > max_bytes:
        raise StorageFault(f"{place.shown} is larger than {max_bytes} bytes", "name the right file")
    return data


def main() -> int:
    """Answer the request on standard input; the exit status."""
    request = json.load(sys.stdin)
    try:
        data = read(parse(request["uri"]), request["user"], request["max_bytes"], request["options"])
    except StorageFault as fault:
        sys.stderr.write(fault.line() + "\n")
        return AWAY if isinstance(fault, Away) else FAULT
    sys.stdout.buffer.write(data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
