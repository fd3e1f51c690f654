"""Reading from connections into one buffer that all of a thread share: what a read brings is copied out at once."""

from __future__ import annotations

import asyncio
import threading

READ_BYTES = 65536


class _Shared(threading.local):
    def __init__(self) -> None:
        self.buffer = memoryview(bytearray(READ_BYTES))


_shared = _Shared()


class SharedBufferProtocol(asyncio.BufferedProtocol):
    """A protocol that gets bytes; a connection that is idle holds no memory for them."""

    def __init__(self) -> None:
        self._buffer = _shared.buffer

    def get_buffer(self, sizehint: int) -> memoryview:
        """Called by asyncio."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Called by asyncio, before it reads anything else."""
        self.data_received(bytes(self._buffer[:nbytes]))

    def data_received(self, data: bytes) -> None:
        """Take what has come."""
        raise NotImplementedError
