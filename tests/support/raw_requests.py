"""Bytes that no client library would send, and what comes back."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Iterator


def exchange(address: tuple[str, int], data: bytes, timeout_s: float) -> bytes:
    """All that comes back for ``data`` until the other side closes, which it may do before it has read it all.

    Raises TimeoutError, and ConnectionError when there is no connection at all.
    """
    heard = b""
    with socket.create_connection(address, timeout=timeout_s) as way:
        with _closing():
            way.sendall(data)
            way.shutdown(socket.SHUT_WR)
        with _closing():
            while piece := way.recv(65536):
                heard += piece
    return heard


@contextlib.contextmanager
def _closing() -> Iterator[None]:
    """The other side may close meanwhile. ENOTCONN is the only one of its errors without a class of its own."""
    try:
        yield
    except ConnectionError:
        pass
    except OSError as error:
        if error.errno != errno.ENOTCONN:
            raise
