"""Figures over HTTP, for Prometheus: one port of its own for each process of the gateway.

Processes that share a port for logins cannot share one for figures: each scrape would meet another of them.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server


@asynccontextmanager
async def serve_figures(registry: CollectorRegistry, host: str, port: int) -> AsyncIterator[int]:
    """Answer HTTP with the figures as long as the block runs; gives the real port.

    Raises OSError when the port cannot be bound. It runs in threads, so that a scrape does not delay a login.
    """
    server, thread = await asyncio.to_thread(start_http_server, port, host, registry)
    try:
        yield server.server_port
    finally:
        await asyncio.to_thread(_end, server, thread)


def _end(server: WSGIServer, thread: threading.Thread) -> None:
    server.shutdown()
    server.server_close()
    thread.join()
