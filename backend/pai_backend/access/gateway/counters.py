"""Figures of one gateway process for Prometheus. No label has a value that a client chose."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector

from pai_backend.access.gateway.activity import LoginUse
from pai_backend.access.gateway.reasons import RefusalReason


class Counters:
    """Counted since the process began."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._gauges: dict[str, Gauge] = {}
        self.logins = self._counter("pai_gateway_logins", "Logins, by what proved itself.", "credential")
        self.refusals = self._counter("pai_gateway_refusals", "Refusals of users who proved themselves.", "reason")
        self.strangers = self._counter("pai_gateway_strangers", "Connections that never logged in.", "reason")
        self._ends = Counter("pai_gateway_ends", "Logins that have ended.", ["kind", "reason"], registry=self.registry)
        self._bytes = self._counter("pai_gateway_bytes", "Bytes of channels of logins that have ended.", "direction")

    def _counter(self, name: str, meaning: str, label: str) -> Counter:
        return Counter(name, meaning, [label], registry=self.registry)

    def gauge(self, name: str, meaning: str, read: Callable[[], float]) -> None:
        """A figure that is read when it is scraped; of the last who says how, as a gateway may try several ports."""
        if name not in self._gauges:
            self._gauges[name] = Gauge(name, meaning, registry=self.registry)
        self._gauges[name].set_function(read)

    def ended(self, kind: LoginUse, reason: RefusalReason, bytes_in: int, bytes_out: int) -> None:
        """A login has ended."""
        self._ends.labels(kind.value, reason.value).inc()
        self._bytes.labels("in").inc(bytes_in)
        self._bytes.labels("out").inc(bytes_out)
