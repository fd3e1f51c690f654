"""Whose tasks run in a namespace: the ConfigMap that says so, and what is not seen of another database's."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pai_backend.engine.holding import (
    ALIVE_S,
    ControllerClaim,
    EngineHolder,
    HeldByAnother,
    claimed,
    handed_over,
    is_contested,
)
from pai_backend.engine.kubernetes import naming
from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.client import Ask
from pai_backend.engine.kubernetes.cluster_time import ClusterTime
from pai_backend.engine.kubernetes.failures import refusal
from pai_backend.engine.kubernetes.holder_map import HolderMap
from pai_backend.engine.kubernetes.marks import marks_of, recalled
from pai_backend.engine.kubernetes.places import ApiPaths
from pai_backend.model.job import TaskExit

NOW = datetime(2026, 11, 24, tzinfo=UTC)
OURS, THEIRS = ControllerClaim("ours", "laptop-1", 4), ControllerClaim("theirs", "laptop-2", 9)


class Server:
    """An API server with one ConfigMap, which another controller may change between a read and a write."""

    time = ClusterTime()

    def __init__(self) -> None:
        self.map: dict[str, Any] | None = None
        self.before_write: list[str] = []

    async def send(self, ask: Ask) -> bytes:
        method = ask.method
        if method == "GET":
            if self.map is None:
                raise _no(ask, 404)
            return json.dumps(self.map).encode()
        body = json.loads(json.dumps(ask.body))
        if self.before_write:
            self._put({"data": {"holder": self.before_write.pop()}})
        if method == "POST":
            if self.map is not None:
                raise _no(ask, 409, b'{"kind": "Status", "reason": "AlreadyExists"}')
            self._put(body)
        else:
            assert self.map is not None
            if body["metadata"]["resourceVersion"] != self.map["metadata"]["resourceVersion"]:
                raise _no(ask, 409)
            self._put(body)
        return json.dumps(self.map).encode()

    def _put(self, body: dict[str, Any]) -> None:
        version = int(self.map["metadata"]["resourceVersion"]) + 1 if self.map else 1
        self.map = {**body, "metadata": {"name": "n", "uid": "u", "resourceVersion": str(version)}}

    async def renew_credentials(self) -> bool:
        return False


def _no(ask: Ask, status: int, body: bytes = b"") -> Exception:
    return refusal(ask.request, status, body, None, NOW)


def claim(server: Server, one: ControllerClaim, *, renewing: bool = False) -> Any:
    record = HolderMap(Calls(server), ApiPaths("team"), "pai")  # type: ignore[arg-type]
    return record.change(lambda found: claimed(found, one, NOW, record.place, renewing=renewing))


@pytest.mark.asyncio
async def test_a_second_database_of_one_cluster_name_is_refused_with_both_ways_out() -> None:
    server = Server()
    await claim(server, OURS)
    with pytest.raises(HeldByAnother) as refused:
        await claim(server, THEIRS)
    for told in ("ours", "theirs", "laptop-1", "cluster_name", "pai_backend adopt", "namespace team"):
        assert told in str(refused.value)
    held = await HolderMap(Calls(server), ApiPaths("team"), "pai").read()  # type: ignore[arg-type]
    assert held is not None
    assert held.identity == "ours"


@pytest.mark.asyncio
async def test_of_two_that_claim_at_once_one_is_refused() -> None:
    server = Server()
    server.before_write = [claimed(None, OURS, NOW, "").model_dump_json()]
    with pytest.raises(HeldByAnother):
        await claim(server, THEIRS)


@pytest.mark.asyncio
async def test_a_record_that_cannot_be_read_lets_nobody_act_and_can_be_handed_over() -> None:
    server = Server()
    server._put({"data": {"holder": "{"}})
    with pytest.raises(HeldByAnother, match="cannot be read"):
        await claim(server, OURS)
    record = HolderMap(Calls(server), ApiPaths("team"), "pai")  # type: ignore[arg-type]
    await record.change(lambda found: handed_over(found, "ours", NOW), unreadable_is_none=True)
    assert (await claim(server, OURS)).identity == "ours"


def test_of_two_copies_of_one_database_one_acts_at_a_time() -> None:
    first = claimed(None, ControllerClaim("ours", "a", 5), NOW, "")
    copy = ControllerClaim("ours", "b", 6)  # its database was copied while the first one was at work
    assert not is_contested(first, copy, NOW)
    second = claimed(first, copy, NOW, "")
    with pytest.raises(HeldByAnother, match="copy of this database"):
        claimed(second, ControllerClaim("ours", "a", 5), NOW, "", renewing=True)
    again = ControllerClaim("ours", "a", 6)
    assert is_contested(second, again, NOW)
    assert not is_contested(second, again, NOW + timedelta(seconds=ALIVE_S + 1))
    assert claimed(second, copy, NOW, "", renewing=True).beat_at == NOW


def test_earlier_holders_stay_known() -> None:
    once = handed_over(EngineHolder(identity="a", beat_at=NOW), "b", NOW)
    twice = handed_over(once, "c", NOW)
    assert twice.identities == {"a", "b", "c"}
    assert handed_over(twice, "a", NOW).previous == ("b", "c")
    assert claimed(twice, ControllerClaim("c", "x", 1), NOW, "").previous == ("a", "b")


def test_a_forgotten_task_ends_again_as_it_did() -> None:
    exit_ = TaskExit(code=5, at=NOW)
    about = {naming.TASK: "j1-0-0-0", naming.FORGOTTEN: "2026-11-24T00:00:00Z"}
    secret = {"metadata": {"annotations": {**about, naming.VERDICT: exit_.model_dump_json()}}}
    marks = marks_of(secret)
    assert marks is not None
    assert (seen := recalled(marks)) is not None
    assert seen.exit == exit_
    for unread in ({}, {naming.VERDICT: "{"}):
        marks = marks_of({"metadata": {"annotations": {**about, **unread}}})
        assert marks is not None
        assert (seen := recalled(marks)) is not None
        assert seen.exit is not None
        assert seen.exit.reason == "lost"
