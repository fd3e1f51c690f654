"""The client: wrk, which is written in C. One in Python took more CPU for a request than nginx, and so was measured."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

_COUNTED = re.compile(r"^\s*(\d+) requests in ([\d.]+)(ms|s|m),", re.MULTILINE)
_SLOWEST = re.compile(r"^\s*99%\s+([\d.]+)(us|ms|s|m)$", re.MULTILINE)
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}
_WRONG = ("Non-2xx or 3xx responses", "Socket errors")


class NotAnswered(Exception):
    """Requests were not answered, or not with a success; the text is what wrk said."""


@dataclass(frozen=True)
class Load:
    """What a round of requests came to: how many were answered, in how many seconds, and the 99th percentile of one."""

    requests: int
    wall_s: float
    p99_s: float


async def load(program: str, port: int, connections: int, request: bytes, seconds: int) -> Load:
    """Send a request again and again on each of that many connections, which stay. Raises NotAnswered."""
    line, *fields = request.decode().split("\r\n")
    path = line.split()[1]
    # wrk says by itself that a connection stays.
    headers = [word for field in fields if field and not field.startswith("Connection:") for word in ("-H", field)]
    words = (
        *headers,
        "--latency",
        "--timeout",
        "60s",
        "-t1",
        f"-c{connections}",
        f"-d{seconds}s",
        f"http://127.0.0.1:{port}{path}",
    )
    client = await asyncio.create_subprocess_exec(
        program, *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said = (await client.communicate())[0].decode()
    if client.returncode:
        raise NotAnswered(said)
    return read(said)


def read(said: str) -> Load:
    """What wrk has printed. Raises NotAnswered."""
    counted, slowest = _COUNTED.search(said), _SLOWEST.search(said)
    if counted is None or slowest is None or not int(counted[1]) or any(each in said for each in _WRONG):
        raise NotAnswered(said)
    wall_s, p99_s = (float(number) * _SECONDS[unit] for number, unit in (counted.groups()[1:], slowest.groups()))
    return Load(int(counted[1]), wall_s, p99_s)
