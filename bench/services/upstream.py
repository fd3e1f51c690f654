"""What the proxies stand in front of: ``python -m bench.services.upstream`` prints its port and serves until killed.

Answers every request with 1 KiB on a connection that stays, in as little Python as there can be.
"""

from __future__ import annotations

import asyncio

BODY = b"x" * 1024
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 1024\r\n\r\n" + BODY
_CLOSING = _ANSWER.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)


class _Answering(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._head = b""

    def data_received(self, data: bytes) -> None:
        self._head += data
        while (end := self._head.find(b"\r\n\r\n")) >= 0:
            head, self._head = self._head[:end].lower(), self._head[end + 4 :]
            closes = b"\r\nconnection: close" in head
            self._transport.write(_CLOSING if closes else _ANSWER)
            if closes:
                self._transport.close()


async def _main() -> None:
    server = await asyncio.get_running_loop().create_server(_Answering, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main())
