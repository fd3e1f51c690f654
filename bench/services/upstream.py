"""What the proxies stand in front of: ``python -m bench.services.upstream`` prints its port and serves until killed.

Answers requests with 1 KiB on a connection that stays, in as little Python as there can be. A few paths do something
else: ``/socket`` sends back what comes, ``/down/BYTES`` and ``/up/BYTES`` move a body, ``/slow`` takes 10 ms.
"""

from __future__ import annotations

import asyncio

BODY = b"x" * 1024
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 1024\r\n\r\n" + BODY
_EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
_SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
_CLOSING = _ANSWER.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
_DOWN = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
_PIECE = bytes(1 << 18)
SLOW_S = 0.01


class _Answering(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._head = b""
        self._coming = self._going = 0
        self._is_socket = self._is_full = False

    def data_received(self, data: bytes) -> None:
        if self._is_socket:
            self._transport.write(data)
            return
        if self._coming:
            data = self._take(data)
        self._head += data
        while (end := self._head.find(b"\r\n\r\n")) >= 0:
            head, self._head = self._head[:end], self._head[end + 4 :]
            path, _, size = head.split(b" ", 2)[1][1:].partition(b"/")
            if path == b"socket":
                self._is_socket = True
                self._transport.write(_SWITCH)
            elif path == b"down":
                self._going = int(size)
                self._transport.write(_DOWN % self._going)
                self._send()
            elif path == b"up":
                self._coming = int(size)
                self._head = self._take(self._head)
            elif path == b"slow":
                asyncio.get_running_loop().call_later(SLOW_S, self._transport.write, _EMPTY)
            else:
                closes = b"\r\nconnection: close" in head.lower()
                self._transport.write(_CLOSING if closes else _ANSWER)
                if closes:
                    self._transport.close()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._send()

    def _send(self) -> None:
        while self._going and not self._is_full:
            piece = _PIECE[: self._going]
            self._going -= len(piece)
            self._transport.write(piece)

    def _take(self, data: bytes) -> bytes:
        """Count what comes of a body; what is behind it is given back."""
        taken = min(len(data), self._coming)
        self._coming -= taken
        if not self._coming:
            self._transport.write(_EMPTY)
        return data[taken:]


async def _main() -> None:
    server = await asyncio.get_running_loop().create_server(_Answering, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main())
