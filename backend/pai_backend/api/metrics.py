"""What Prometheus scrapes, in a registry of our own so that two applications in one process do not collide."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """Counters of one API process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = Counter(
            "pai_api_requests", "Answered requests.", ["method", "route", "status"], registry=self.registry
        )
        self._latency = Histogram(
            "pai_api_request_seconds",
            "Time from the request to its whole answer, streams excepted.",
            ["method", "route"],
            buckets=BUCKETS_S,
            registry=self.registry,
        )
        self.file_bytes = Counter(
            "pai_api_file_bytes", "Bytes of uploaded files that were written.", registry=self.registry
        )
        self._jobs = Gauge("pai_jobs", "Jobs by state.", ["state"], registry=self.registry)
        self._lease = Gauge(
            "pai_controller_lease_seconds", "Time the controller's lease still holds.", registry=self.registry
        )
        self._orphans = Gauge("pai_orphans", "Running tasks that are not in the database.", registry=self.registry)
        self._under_way = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self.gauge("pai_api_requests_under_way", "Requests not yet answered.", lambda: self._under_way)
        self._streams = Gauge("pai_api_streams", "Open WebSockets.", registry=self.registry)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request; ``route`` is the path's template, so that the number of series is bounded."""
        self._requests.labels(method, route, str(status)).inc()
        self._latency.labels(method, route).observe(seconds)

    @contextmanager
    def request(self) -> Iterator[None]:
        """Around the answering of a request that is not a stream."""
        self._under_way += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()

    async def idle(self) -> None:
        """Return once no request is under way; streams do not count."""
        await self._idle.wait()

    def stream_opened(self) -> None:
        """A WebSocket is open now."""
        self._streams.inc()

    def stream_closed(self) -> None:
        """A WebSocket has ended."""
        self._streams.dec()

    def gauge(self, name: str, meaning: str, read: Callable[[], float]) -> None:
        """A figure of another part of this process, read when it is scraped."""
        Gauge(name, meaning, registry=self.registry).set_function(read)

    def text(self, jobs: dict[str, int], lease_s: float, orphans: int) -> bytes:
        """The exposition in Prometheus's text format: jobs by state, how long the lease holds, and orphans."""
        self._orphans.set(orphans)
        self._lease.set(lease_s)
        self._jobs.clear()
        for state, count in jobs.items():
            self._jobs.labels(state).set(count)
        return generate_latest(self.registry)
