"""The controller's own port: figures for Prometheus and the probes of those who watch over the process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import tornado.httpserver
import tornado.web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from tornado.netutil import bind_sockets


class _Figures(tornado.web.RequestHandler):
    def initialize(self, registry: CollectorRegistry) -> None:
        """Called by tornado."""
        self._registry = registry

    def get(self) -> None:
        """``/metrics``: read on the loop, which nothing else changes meanwhile."""
        self.set_header("Content-Type", CONTENT_TYPE_LATEST)
        self.write(generate_latest(self._registry))


class _Probe(tornado.web.RequestHandler):
    def initialize(self, trouble: Callable[[], str]) -> None:
        """Called by tornado."""
        self._trouble = trouble

    def get(self) -> None:
        """``/healthz`` and ``/readyz``: 503 with the reason while there is one."""
        trouble = self._trouble()
        self.set_status(503 if trouble else 200)
        self.set_header("Content-Type", "application/json")
        self.write(json.dumps({"ready": not trouble, "message": trouble}))


@contextmanager
def serve(registry: CollectorRegistry, host: str, port: int, trouble: Callable[[], str]) -> Iterator[int]:
    """Answer as long as the block runs; gives the real port. ``trouble``: why it is not ready; empty when it is.

    Raises OSError when the port cannot be bound.
    """
    application = tornado.web.Application(
        [
            ("/metrics", _Figures, {"registry": registry}),
            ("/healthz", _Probe, {"trouble": lambda: ""}),
            ("/readyz", _Probe, {"trouble": trouble}),
        ]
    )
    server = tornado.httpserver.HTTPServer(application)
    sockets = bind_sockets(port, host)
    server.add_sockets(sockets)
    try:
        yield sockets[0].getsockname()[1]
    finally:
        server.stop()
