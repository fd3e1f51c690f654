"""What was asked of the API server and what it answered, for metrics: counts only, and few series of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


class RequestCounts:
    """Requests by verb and answer: a status, or ``unreachable``."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, verb: str, answer: str) -> None:
        """Count one request, each try of a repeated one too."""
        self._counts[verb, answer] += 1

    def total(self, *verbs: str) -> int:
        """How many requests there were, of these verbs or of all."""
        return sum(count for (verb, _), count in self._counts.items() if not verbs or verb in verbs)

    def __iter__(self) -> Iterator[tuple[str, str, int]]:
        return ((verb, answer, count) for (verb, answer), count in sorted(self._counts.items()))


CUT_OFF_S: Final = 10.0
"""How long a resource may fail to be watched before that is reported: a new connection takes a second or two."""


@dataclass(frozen=True)
class ReflectorHealth:
    """How well a reflector knows its resource."""

    resource: str
    listed: bool  # the first list is complete
    watching: bool  # a watch is open now
    age_s: float  # seconds since its knowledge was last known to be current; infinite before the first list
    objects: int
    trouble: str  # why it does not watch, for people; "" when it does
    trouble_s: float = 0.0  # seconds for which it has failed

    def ready(self, patience_s: float) -> bool:
        """Whether it can be relied on: listed, not older than that, and not cut off for long."""
        return self.listed and self.age_s <= patience_s and self.trouble_s <= CUT_OFF_S

    def complaint(self, patience_s: float) -> str:
        """Why it cannot be relied on; empty when it can."""
        if self.ready(patience_s):
            return ""
        why = f": {self.trouble}" if self.trouble else ""
        if not self.listed:
            return f"{self.resource} were never listed{why}"
        return f"{self.resource} were last known to be current {self.age_s:.0f} s ago{why}"


class ClusterCollector(Collector):
    """The figures of one cluster for a Prometheus registry, read when they are scraped."""

    def __init__(self, requests: RequestCounts, reflectors: Callable[[], Iterable[ReflectorHealth]]) -> None:
        self._requests = requests
        self._reflectors = reflectors

    def collect(self) -> Iterator[Metric]:
        """Called by the registry."""
        asked = CounterMetricFamily(
            "pai_kubernetes_requests", "Requests to the API server, each try counted.", labels=["verb", "answer"]
        )
        for verb, answer, count in self._requests:
            asked.add_metric([verb, answer], count)
        yield asked
        age = GaugeMetricFamily(
            "pai_kubernetes_knowledge_age_seconds",
            "Time since what is known of a resource was last known to be current; bookmarks renew it once a minute.",
            labels=["resource"],
        )
        objects = GaugeMetricFamily("pai_kubernetes_objects", "Objects known of a resource.", labels=["resource"])
        for health in self._reflectors():
            age.add_metric([health.resource], health.age_s)
            objects.add_metric([health.resource], health.objects)
        yield age
        yield objects
