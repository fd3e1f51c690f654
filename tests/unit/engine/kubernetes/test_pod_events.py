"""Events of pods: what a server gets, and that neither many nor refused ones are in anything's way."""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pai_backend.engine.kubernetes import pod_events
from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.client import Ask
from pai_backend.engine.kubernetes.cluster_time import ClusterTime
from pai_backend.engine.kubernetes.failures import Unreachable, refusal
from pai_backend.engine.kubernetes.objects import Object
from pai_backend.engine.kubernetes.pod_events import EventReason, PodEvents

pytestmark = pytest.mark.asyncio

NOW = datetime(2026, 11, 29, 12, 0, 0, 250_000, tzinfo=UTC)
EVENTS = "/apis/events.k8s.io/v1/namespaces/team/events"


class Server:
    """Takes Events, or refuses them; its time is set by hand."""

    def __init__(self) -> None:
        self.at = NOW
        self.time = ClusterTime(lambda: self.at)
        self.asks: list[Ask] = []
        self.answer = 201
        self.answers: list[int] = []
        self.open = asyncio.Event()
        self.open.set()

    async def send(self, ask: Ask) -> bytes:
        self.asks.append(ask)
        await self.open.wait()
        answer = self.answers.pop(0) if self.answers else self.answer
        if answer == 0:
            raise Unreachable("cut", sent=True)
        if answer >= 400:
            reason = "AlreadyExists" if answer == 409 else "Forbidden"
            body = json.dumps({"kind": "Status", "reason": reason, "message": "no"}).encode()
            raise refusal(ask.request, answer, body, None, NOW)
        return b"{}"

    def stream(self, ask: Ask) -> Any:
        raise AssertionError("nothing is watched here")

    async def renew_credentials(self) -> bool:
        return False

    @property
    def notes(self) -> list[str]:
        return [ask.body["note"] for ask in self.asks if isinstance(ask.body, dict) and "note" in ask.body]


def pod(name: str = "t1", namespace: str = "team") -> Object:
    return {"metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"}}


def events(server: Server) -> PodEvents:
    return PodEvents(Calls(server, pause=lambda _: asyncio.sleep(0)), "lab", pause_s=0)


async def settled() -> None:
    for _ in range(200):
        await asyncio.sleep(0)


async def test_an_event_regards_its_pod_and_says_who_did_what_and_why() -> None:
    server = Server()
    events(server).tell(pod(), EventReason.GIVEN_UP, "its image cannot be fetched")
    await settled()
    (ask,) = server.asks
    assert (ask.method, ask.request.path) == ("POST", EVENTS)
    assert isinstance(ask.body, dict)
    name = ask.body["metadata"].pop("name")
    assert name.startswith("t1.")
    assert ask.body == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "team"},
        "eventTime": "2026-11-29T12:00:00.250000Z",
        "reportingController": "jupyter-pai",
        "reportingInstance": "lab",
        "action": "Stopping",
        "reason": "GivenUp",
        "note": "its image cannot be fetched",
        "type": "Warning",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "team", "name": "t1", "uid": "uid-t1"},
    }


async def test_what_is_told_again_is_counted_once_a_minute_in_the_same_event() -> None:
    server = Server()
    told = events(server)
    for _ in range(5):
        told.tell(pod(), EventReason.GANG_WAITING, "waits")
    server.at += pod_events.SERIES
    told.tell(pod(), EventReason.GANG_WAITING, "waits")
    await settled()
    made, counted = server.asks
    assert isinstance(made.body, dict)
    assert counted.request.path == f"{EVENTS}/{made.body['metadata']['name']}"
    assert counted.body == {"series": {"count": 6, "lastObservedTime": "2026-11-29T12:01:00.250000Z"}}


async def test_one_pod_gets_so_many_different_events_and_others_go_on() -> None:
    server = Server()
    told = events(server)
    for number in range(50):
        told.tell(pod(), EventReason.GANG_WAITING, f"{number} of 50")
    told.tell(pod("t2"), EventReason.PLACED, "on carol")
    await settled()
    assert server.notes == [*(f"{number} of 50" for number in range(pod_events.OF_POD_MAX)), "on carol"]


async def test_without_the_right_it_is_said_once_and_tried_again_much_later(caplog: pytest.LogCaptureFixture) -> None:
    server = Server()
    server.answer = 403
    told = events(server)
    with caplog.at_level(logging.WARNING):
        for number in range(3):
            told.tell(pod(f"t{number}"), EventReason.PLACED, "on carol")
            await settled()
        assert len(server.asks) == 1
        told.tell(pod(namespace="other"), EventReason.PLACED, "on carol")
        await settled()
        server.at += pod_events.PERIOD
        server.answer = 201
        told.tell(pod("t9"), EventReason.PLACED, "on dan")
        await settled()
    assert [ask.request.path for ask in server.asks] == [EVENTS, EVENTS.replace("team", "other"), EVENTS]
    assert sum("namespace team get no Events" in each.message for each in caplog.records) == 1


async def test_a_server_that_hangs_or_is_away_holds_nobody_up_and_what_is_old_is_dropped() -> None:
    server = Server()
    server.open.clear()
    told = events(server)
    for number in range(2 * pod_events.QUEUE_MAX):
        told.tell(pod(f"t{number}"), EventReason.PLACED, "on carol")
    await settled()
    assert len(server.asks) == 1, "one request at a time"
    server.at += pod_events.OLD + timedelta(seconds=1)
    server.open.set()
    await settled()
    assert len(server.asks) == 1
    server.answer = 500
    told.tell(pod("late"), EventReason.PLACED, "on carol")
    await told.aclose()


async def test_an_event_whose_answer_is_lost_is_not_looked_for_which_would_need_another_right() -> None:
    server = Server()
    server.answers = [0, 409]
    events(server).tell(pod(), EventReason.PLACED, "on carol")
    await settled()
    assert [ask.method for ask in server.asks] == ["POST", "POST"]


async def test_a_note_is_no_longer_than_a_server_takes() -> None:
    server = Server()
    events(server).tell(pod(), EventReason.GIVEN_UP, "é" * 2000)
    await settled()
    (note,) = server.notes
    assert len(note.encode()) <= pod_events.NOTE_MAX
    assert note.endswith("…")
