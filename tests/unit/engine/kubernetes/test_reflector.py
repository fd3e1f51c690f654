"""The I/O around a reflection: what is asked, what is paused, what is logged; streams are scripted."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.client import Ask, LineStream, LineTooLong
from pai_backend.engine.kubernetes.cluster_time import ClusterTime
from pai_backend.engine.kubernetes.counts import ClusterCollector, ReflectorHealth, RequestCounts
from pai_backend.engine.kubernetes.failures import AccessError, ApiUnauthorized, Busy, Invalid, Unreachable
from pai_backend.engine.kubernetes.handover import Change, Handover, ResourceListed, Seen
from pai_backend.engine.kubernetes.objects import INITIAL_EVENTS_END, metadata, version_of
from pai_backend.engine.kubernetes.reflector import Reflector, Resource, Timing
from pai_backend.engine.kubernetes.retrying import Backoff

PODS = Resource("pods", "/api/v1/namespaces/team/pods", (("labelSelector", "ours"),))
Script = list[Any]  # of each watch: an error to raise when it begins, or its batches; an error in them is raised there


def event(kind: str, version: int, uid: str = "a", **annotations: str) -> bytes:
    metadata = {"uid": uid, "name": uid, "resourceVersion": str(version), "annotations": annotations}
    return json.dumps({"type": kind, "object": {"metadata": metadata}}).encode()


def listed(version: int) -> bytes:
    return event("BOOKMARK", version, **{INITIAL_EVENTS_END: "true"})


class Scripted(LineStream):
    """A stream that says what the script has for it, then ends; without a script it says nothing."""

    def __init__(self, batches: list[Any] | None) -> None:
        self._batches = batches

    async def batches(self) -> AsyncIterator[list[bytes]]:
        if self._batches is None:
            await asyncio.Event().wait()
        for batch in self._batches or []:
            if isinstance(batch, Exception):
                raise batch
            yield batch


class Wire:
    """Streams in the order of the script, then one that is silent."""

    time = ClusterTime()

    def __init__(self, *script: Any) -> None:
        self._script = list(script)
        self.asks: list[Ask] = []
        self.pauses: list[float] = []
        self.renewed = 0
        self.finished = asyncio.Event()

    async def send(self, ask: Ask) -> bytes:
        self.asks.append(ask)
        return json.dumps({"metadata": {"resourceVersion": "50"}, "items": []}).encode()

    @asynccontextmanager
    async def stream(self, ask: Ask) -> AsyncIterator[LineStream]:
        self.asks.append(ask)
        if not self._script:
            self.finished.set()
        said = self._script.pop(0) if self._script else None
        if isinstance(said, Exception):
            raise said
        yield Scripted(said)

    async def renew_credentials(self) -> bool:
        self.renewed += 1
        return True

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


async def played(wire: Wire, handover: Handover, resource: Resource | None = None, **options: Any) -> Reflector:
    """A reflector after the script has been read."""
    resource = resource or PODS
    timing = options.pop("timing", Timing(backoff=Backoff(1.0, 8.0)))
    reflector = Reflector(
        Calls(wire), resource, handover, timing=timing, chance=lambda: 0.5, pause=wire.pause, **options
    )
    task = asyncio.create_task(reflector.run())
    try:
        async with asyncio.timeout(60):
            await wire.finished.wait()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    return reflector


def query(ask: Ask) -> dict[str, str]:
    return dict(ask.query)


@pytest.mark.asyncio
async def test_texts_that_objects_have_in_common_are_kept_once() -> None:
    wire = Wire([[event("ADDED", 3, "a", role="worker"), event("ADDED", 4, "b", role="worker"), listed(7)]])
    reflector = await played(wire, Handover())
    one, other = (metadata(found)["annotations"] for found in reflector.objects.values())
    assert one["role"] is other["role"] == "worker"
    assert next(iter(one)) is next(iter(other))


@pytest.mark.asyncio
async def test_a_list_is_streamed_and_a_watch_goes_on_from_the_last_version() -> None:
    wire = Wire([[event("ADDED", 3)], [listed(7), event("MODIFIED", 8)]], [[event("MODIFIED", 9)]])
    handover = Handover()
    reflector = await played(wire, handover)
    common = {"labelSelector": "ours", "watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": "450"}
    streamed = {**common, "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    assert [query(ask) for ask in wire.asks] == [
        streamed,
        {**common, "resourceVersion": "8"},
        {**common, "resourceVersion": "9"},
    ]
    assert wire.pauses == [0.0, 0.0]
    assert [type(change) for change in await handover.take()] == [Seen, ResourceListed]
    assert [version_of(obj) for obj in reflector.objects.values()] == ["9"]


@pytest.mark.asyncio
async def test_pages_are_read_where_the_server_refuses_to_stream() -> None:
    wire = Wire(Invalid("sendInitialEvents is forbidden", status=422))
    await played(wire, Handover())
    assert [query(ask).get("limit") for ask in wire.asks] == [None, "500", None]
    assert query(wire.asks[-1])["resourceVersion"] == "50"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "fault",
    [b"no JSON", b"[]", b'{"type": "ERROR", "object": {"code": 410}}', LineTooLong("a line"), b'{"type": "ADDED"}'],
    ids=str,
)
async def test_a_stream_that_cannot_be_relied_on_is_followed_by_a_new_list(fault: bytes | Exception) -> None:
    wire = Wire([[listed(7)], fault if isinstance(fault, Exception) else [fault]])
    await played(wire, Handover())
    assert query(wire.asks[-1])["sendInitialEvents"] == "true"
    assert wire.pauses == [0.5]


@pytest.mark.asyncio
async def test_a_connection_that_breaks_is_a_watch_that_ended() -> None:
    wire = Wire([[listed(7)], [event("ADDED", 8)], Unreachable("cut", sent=True)])
    await played(wire, Handover())
    assert query(wire.asks[-1])["resourceVersion"] == "8"


@pytest.mark.asyncio
async def test_silence_is_followed_by_a_new_list() -> None:
    wire = Wire([[listed(7)]], None)
    await played(wire, Handover(), timing=Timing(silence_s=0.05, backoff=Backoff(1.0, 8.0)))
    assert [query(ask).get("sendInitialEvents") for ask in wire.asks] == ["true", None, "true"]


@pytest.mark.asyncio
async def test_failures_are_followed_by_longer_pauses_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    away = [Unreachable("the API server is away", sent=False) for _ in range(5)]
    wire = Wire([[listed(7)]], *away, AccessError("no credentials"), Busy("429", status=429, retry_after_s=9.0))
    with caplog.at_level(logging.INFO):
        reflector = await played(wire, Handover())
    assert wire.pauses == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0, 4.0, 13.0]
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warnings == [
        f"pods cannot be watched: {reason}" for reason in ("the API server is away", "no credentials", "429")
    ]
    assert reflector.health.listed


@pytest.mark.asyncio
async def test_what_is_a_help_and_cannot_be_listed_is_waited_for_by_nobody(caplog: pytest.LogCaptureFixture) -> None:
    handover = Handover()
    helpful = replace(PODS, without="It would help.")
    await played(Wire(AccessError("forbidden"), AccessError("forbidden")), handover, helpful)
    assert handover.take_nowait() == [ResourceListed("pods")]
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [
        "pods cannot be watched: forbidden. It would help."
    ]
    needed = Handover()
    await played(Wire(AccessError("forbidden")), needed)
    assert needed.take_nowait() == []


@pytest.mark.asyncio
async def test_credentials_are_renewed_after_a_refusal() -> None:
    wire = Wire(ApiUnauthorized("401", status=401), [[listed(7)]])
    await played(wire, Handover())
    assert wire.renewed == 1


@pytest.mark.asyncio
async def test_reading_pauses_while_the_consumer_is_behind_and_goes_on_from_there() -> None:
    handover = Handover(limit=2)
    told: list[Change] = []

    async def consume() -> None:
        while True:
            told.extend(await handover.take())

    lines = [event("ADDED", 10 + number, f"uid-{number}") for number in range(3)]
    wire = Wire([[listed(7)], lines, [b"never read"]], [[event("ADDED", 20, "later")]])
    consumer = asyncio.create_task(consume())
    try:
        reflector = await played(wire, handover)
    finally:
        consumer.cancel()
        await asyncio.gather(consumer, return_exceptions=True)
    assert query(wire.asks[1])["resourceVersion"] == "12"
    assert len(reflector.objects) == 4


@pytest.mark.asyncio
async def test_nothing_is_known_before_the_first_list() -> None:
    health = Reflector(Calls(Wire()), PODS, Handover()).health
    assert (health.listed, health.watching, health.age_s) == (False, False, math.inf)
    assert not health.ready(1e9)
    assert health.trouble == "the list is still to come"


class Content:
    """A body that comes in these pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces

    async def iter_any(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


class Response:
    def __init__(self, *pieces: bytes) -> None:
        self.content = Content(*pieces)


@pytest.mark.asyncio
async def test_lines_are_whole_wherever_the_network_cuts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = LineStream(Response(b"on", b"e\ntwo\n\nth", b"ree", b"\n", b"cut off"), None)  # type: ignore[arg-type]
    assert [batch async for batch in stream.batches()] == [[b"one", b"two"], [b"three"]]
    monkeypatch.setattr("pai_backend.engine.kubernetes.client.LINE_MAX", 10)
    with pytest.raises(LineTooLong):
        _ = [batch async for batch in LineStream(Response(b"x" * 6, b"x" * 6), None).batches()]  # type: ignore[arg-type]


def test_the_figures_of_a_cluster_are_metrics() -> None:
    counts = RequestCounts()
    for answer in ("200", "200", "unreachable"):
        counts.add("watch", answer)
    registry = CollectorRegistry()
    health = ReflectorHealth("pods", listed=True, watching=True, age_s=12.5, objects=3, trouble="")
    registry.register(ClusterCollector(counts, lambda: [health]))
    text = generate_latest(registry).decode()
    assert 'pai_kubernetes_requests_total{answer="200",verb="watch"} 2.0' in text
    assert 'pai_kubernetes_requests_total{answer="unreachable",verb="watch"} 1.0' in text
    assert 'pai_kubernetes_knowledge_age_seconds{resource="pods"} 12.5' in text
    assert 'pai_kubernetes_objects{resource="pods"} 3.0' in text
    assert health.ready(12.5)
    assert not health.ready(12.4)


def test_what_cannot_be_watched_is_told_after_a_few_seconds_and_not_when_it_is_old() -> None:
    cut = ReflectorHealth(
        "nodes", listed=True, watching=False, age_s=14.0, objects=1, trouble="no answer", trouble_s=10.0
    )
    assert cut.complaint(180) == ""
    assert replace(cut, trouble_s=11.0).complaint(180) == "nodes were last known to be current 14 s ago: no answer"


@pytest.mark.asyncio
async def test_the_time_that_it_tries_in_vain_begins_with_the_first_failure_and_ends_with_a_watch() -> None:
    away = Unreachable("the API server is away", sent=False)
    wire, seen = Wire([[listed(7)]], away, away), list[float]()

    async def pause(_seconds: float) -> None:
        seen.append(reflector.health.trouble_s)

    reflector = Reflector(Calls(wire), PODS, Handover(), chance=lambda: 0.5, pause=pause)
    task = asyncio.create_task(reflector.run())
    try:
        async with asyncio.timeout(60):
            await wire.finished.wait()
        assert reflector.health.trouble_s == 0.0, "the last watch is open"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert [each > 0 for each in seen] == [False, True, True]
    assert seen[1] < seen[2]
