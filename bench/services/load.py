"""The client: ``python -m bench.services.load PORT CONNECTIONS REQUESTS`` with the request's header at its input.

Each connection stays and has one request under way. Prints a JSON object when all are answered: the time that passed,
and the 50th and 99th percentile of the time for one. Raises when an answer is not the server's.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from bench.figures import percentile
from bench.services.upstream import BODY


class _Client(asyncio.Protocol):
    def __init__(self, request: bytes, left: list[int], taken: list[float]) -> None:
        self._request, self._left, self._taken = request, left, taken
        self._answer = b""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        self._answer += data
        end = self._answer.find(b"\r\n\r\n")
        if end < 0 or len(self._answer) < end + 4 + len(BODY):
            return
        if not self._answer.startswith(b"HTTP/1.1 200 ") or not self._answer.endswith(BODY):
            self._fail(RuntimeError(f"not the server's answer: {self._answer[:2000]!r}"))
            return
        self._taken.append(time.perf_counter() - self._sent_at)
        self._answer = b""
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(error or ConnectionError("the proxy closed the connection"))

    def _send(self) -> None:
        if not self._left[0]:
            self.done.set_result(None)
            self._transport.close()
            return
        self._left[0] -= 1
        self._sent_at = time.perf_counter()
        self._transport.write(self._request)

    def _fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)


async def _main(port: int, connections: int, requests: int, head: bytes) -> dict[str, float]:
    left, taken, loop = [requests], list[float](), asyncio.get_running_loop()
    begun = time.perf_counter()
    opening = (
        loop.create_connection(lambda: _Client(head, left, taken), "127.0.0.1", port) for _ in range(connections)
    )
    for _, client in await asyncio.gather(*opening):
        await client.done
    wall_s = time.perf_counter() - begun
    assert len(taken) == requests, f"{len(taken)} of {requests} were answered"
    return {"wall_s": wall_s, "p50_ms": 1000 * percentile(taken, 0.5), "p99_ms": 1000 * percentile(taken, 0.99)}


if __name__ == "__main__":
    port, connections, requests = map(int, sys.argv[1:4])
    print(json.dumps(asyncio.run(_main(port, connections, requests, sys.stdin.buffer.read()))))
