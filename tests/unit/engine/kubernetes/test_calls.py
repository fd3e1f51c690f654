"""Requests are bounded and repeated only where that is safe; the wire and the clock are scripted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import Any

import pytest

from pai_backend.engine.kubernetes.calls import Calls, Patch
from pai_backend.engine.kubernetes.client import Ask, LineStream
from pai_backend.engine.kubernetes.cluster_time import ClusterTime
from pai_backend.engine.kubernetes.failures import (
    AlreadyExists,
    ApiConflict,
    ApiForbidden,
    ApiNotFound,
    ApiUnauthorized,
    Busy,
    Malformed,
    Unreachable,
    Untrusted,
    refusal,
)
from pai_backend.engine.kubernetes.retrying import Backoff

NOW = datetime(2026, 11, 21, tzinfo=UTC)
PODS = "/api/v1/namespaces/team/pods"
POD: dict[str, Any] = {"metadata": {"name": "task-1"}}

Answer = int | tuple[int, str] | dict[str, Any] | str | Callable[[Ask], Exception]


def cut(ask: Ask) -> Exception:
    return Unreachable(f"{ask.request}: cut", sent=True)


def refused_connection(ask: Ask) -> Exception:
    return Unreachable(f"{ask.request}: refused", sent=False)


def not_trusted(ask: Ask) -> Exception:
    return Untrusted(f"{ask.request}: unknown authority")


class Wire:
    """Answers in the order of the script; time passes only in pauses and as scripted."""

    time = ClusterTime()

    def __init__(self, *script: Answer, renews: bool = True, slowness_s: float = 0.0) -> None:
        self._script = list(script)
        self._renews = renews
        self._slowness_s = slowness_s
        self.asks: list[Ask] = []
        self.pauses: list[float] = []
        self.renewed = 0
        self.now = 0.0

    async def send(self, ask: Ask) -> bytes:
        self.asks.append(ask)
        self.now += min(self._slowness_s, ask.timeout_s)
        answer = self._script.pop(0)
        if isinstance(answer, dict):
            return json.dumps(answer).encode()
        if isinstance(answer, str):
            return answer.encode()
        if callable(answer):
            raise answer(ask)
        code, extra = answer if isinstance(answer, tuple) else (answer, "")
        body = json.dumps({"kind": "Status", "reason": extra}).encode() if not extra.isdigit() else b""
        raise refusal(ask.request, code, body, extra if extra.isdigit() else None, NOW)

    def stream(self, ask: Ask) -> AbstractAsyncContextManager[LineStream]:
        raise AssertionError("no stream is opened here")

    async def renew_credentials(self) -> bool:
        self.renewed += 1
        return self._renews

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def calls(self, parallel: int = 4) -> Calls:
        return Calls(
            self,
            parallel=parallel,
            backoff=Backoff(base_s=1.0, cap_s=8.0),
            chance=lambda: 0.5,
            clock=lambda: self.now,
            pause=self.pause,
        )

    @property
    def done(self) -> bool:
        return not self._script


@pytest.mark.asyncio
@pytest.mark.parametrize("failure", [429, 500, 502, 503, 504, cut, refused_connection])
async def test_a_passing_failure_is_tried_again(failure: Answer) -> None:
    wire = Wire(failure, failure, POD)
    assert await wire.calls().get(f"{PODS}/task-1") == POD
    assert wire.pauses == [0.5, 1.0]  # half of 1 s, half of 2 s


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("failure", "kind"), [(404, ApiNotFound), (403, ApiForbidden), (501, Busy), (not_trusted, Untrusted)]
)
async def test_a_final_failure_is_told_at_once(failure: Answer, kind: type[Exception]) -> None:
    wire = Wire(failure)
    with pytest.raises(kind):
        await wire.calls().get(f"{PODS}/task-1")
    assert wire.pauses == []


@pytest.mark.asyncio
async def test_the_server_is_not_asked_again_before_it_wants_to_be() -> None:
    wire = Wire((429, "7"), POD)
    await wire.calls().get(f"{PODS}/task-1")
    assert wire.pauses == [7.5]


@pytest.mark.asyncio
async def test_a_deadline_ends_the_repetitions_and_bounds_each_try() -> None:
    wire = Wire(*[503] * 20, slowness_s=3.0)
    with pytest.raises(Busy):
        await wire.calls().get(f"{PODS}/task-1", deadline_s=20.0)
    assert wire.now <= 20.0
    assert [ask.timeout_s for ask in wire.asks] == [10.0, 10.0, 10.0, 7.5, 0.5]


@pytest.mark.asyncio
async def test_a_deadline_that_passes_in_a_pause_tells_what_was_wrong_before() -> None:
    async def sleep_in(_: float) -> None:
        wire.now += 1000.0

    wire = Wire(503, POD)
    with pytest.raises(Busy, match="answers 503"):
        await Calls(wire, clock=lambda: wire.now, pause=sleep_in).get(f"{PODS}/task-1")
    assert not wire.done


@pytest.mark.asyncio
async def test_no_pause_is_begun_that_would_outlast_the_deadline() -> None:
    wire = Wire((429, "3600"))
    with pytest.raises(Busy):
        await wire.calls().get(f"{PODS}/task-1")
    assert wire.pauses == []


@pytest.mark.asyncio
async def test_new_credentials_are_fetched_once() -> None:
    wire = Wire(401, POD)
    assert await wire.calls().get(f"{PODS}/task-1") == POD
    assert wire.renewed == 1
    for script, renews in (([401, 401], True), ([401], False)):
        wire = Wire(*script, renews=renews)
        with pytest.raises(ApiUnauthorized):
            await wire.calls().get(f"{PODS}/task-1")
        assert wire.renewed == 1
        assert wire.done


@pytest.mark.asyncio
@pytest.mark.parametrize("unknown", [cut, 500, 504])
async def test_a_creation_whose_outcome_is_unknown_may_find_its_own_object(unknown: Answer) -> None:
    made = {"metadata": {"name": "task-1", "uid": "u"}}
    wire = Wire(unknown, (409, "AlreadyExists"), made)
    assert await wire.calls().create(PODS, POD) == made
    assert [(ask.method, ask.request.path) for ask in wire.asks][-1] == ("GET", f"{PODS}/task-1")


@pytest.mark.asyncio
@pytest.mark.parametrize("known", [[], [429], [refused_connection]])
async def test_a_name_that_was_taken_before_the_first_try_is_an_error(known: list[Answer]) -> None:
    wire = Wire(*known, (409, "AlreadyExists"))
    with pytest.raises(AlreadyExists):
        await wire.calls().create(PODS, POD)
    assert wire.done


@pytest.mark.asyncio
async def test_an_object_without_a_name_is_not_created() -> None:
    wire = Wire()
    with pytest.raises(ValueError, match="name of their own"):
        await wire.calls().create(PODS, {"metadata": {"generateName": "task-"}})
    assert wire.asks == []


@pytest.mark.asyncio
async def test_deleting_is_idempotent_and_takes_the_named_uid_only() -> None:
    wire = Wire(cut, 404)
    await wire.calls().delete(f"{PODS}/task-1", uid="u", grace_s=5)
    assert wire.asks[0].body == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "propagationPolicy": "Background",
        "preconditions": {"uid": "u"},
        "gracePeriodSeconds": 5,
    }
    await Wire((409, "ApiConflict")).calls().delete(f"{PODS}/task-1", uid="u")
    with pytest.raises(ApiConflict):
        await Wire((409, "ApiConflict")).calls().delete(f"{PODS}/task-1")


@pytest.mark.asyncio
async def test_a_json_patch_is_not_applied_twice() -> None:
    wire = Wire(cut)
    with pytest.raises(Unreachable):
        await wire.calls().patch(f"{PODS}/task-1", [{"op": "remove", "path": "/metadata/finalizers/0"}], Patch.JSON)
    wire = Wire(429, refused_connection, POD)
    assert await wire.calls().patch(f"{PODS}/task-1", [], Patch.JSON) == POD
    wire = Wire(cut, POD)
    assert await wire.calls().patch(f"{PODS}/task-1", {}, Patch.MERGE, query=[("fieldManager", "us")]) == POD
    assert wire.asks[0].content_type == "application/merge-patch+json"
    assert wire.asks[0].query == [("fieldManager", "us")]


@pytest.mark.asyncio
async def test_a_list_is_read_page_by_page() -> None:
    pages = [
        {"metadata": {"resourceVersion": "9", "continue": "more"}, "items": [{"n": 1}, {"n": 2}]},
        {"metadata": {"resourceVersion": "9"}, "items": [{"n": 3}]},
    ]
    wire = Wire(*pages)
    assert [obj async for obj in wire.calls().list(PODS, query=[("labelSelector", "ours")])] == [
        {"n": 1},
        {"n": 2},
        {"n": 3},
    ]
    assert [list(ask.query) for ask in wire.asks] == [
        [("labelSelector", "ours"), ("limit", "500")],
        [("labelSelector", "ours"), ("limit", "500"), ("continue", "more")],
    ]


@pytest.mark.asyncio
@pytest.mark.parametrize("page", ["<html>Sign in</html>", "[]"])
async def test_an_answer_that_is_no_object_is_an_error(page: str) -> None:
    with pytest.raises(Malformed):
        await Wire(page).calls().get(PODS)


@pytest.mark.asyncio
async def test_only_so_many_requests_are_under_way_at_once() -> None:
    under_way, most = 0, 0
    gate = asyncio.Event()

    class Slow(Wire):
        async def send(self, ask: Ask) -> bytes:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            if under_way == 3:
                gate.set()
            await gate.wait()
            under_way -= 1
            return b"{}"

    calls = Slow().calls(parallel=3)
    async with asyncio.timeout(60):
        await asyncio.gather(*(calls.get(f"{PODS}/{number}") for number in range(12)))
    assert most == 3


@pytest.mark.asyncio
async def test_a_request_that_pauses_leaves_its_place_to_others() -> None:
    async def pause(_: float) -> None:
        assert await calls.get("/version") == {"served": "meanwhile"}

    wire = Wire(503, {"served": "meanwhile"}, POD)
    calls = Calls(wire, parallel=1, pause=pause)
    async with asyncio.timeout(60):
        assert await calls.get(f"{PODS}/task-1") == POD
