"""How long nodes have not been heard of, by their leases."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.failures import ApiForbidden, ApiNotFound, Unreachable
from pai_backend.engine.kubernetes.objects import Object
from pai_backend.engine.kubernetes.silence import MOST, Silences, late_s

pytestmark = pytest.mark.asyncio

NOW = datetime(2026, 11, 24, tzinfo=UTC)


def lease(age_s: float, lasts_s: int = 40) -> Object:
    renewed = (NOW - timedelta(seconds=age_s)).isoformat()
    return {"spec": {"renewTime": renewed, "leaseDurationSeconds": lasts_s}}


class Leases(Calls):
    """Answers from a table; an exception in it is raised."""

    def __init__(self, table: dict[str, Object | Exception]) -> None:
        self.table, self.asked = table, list[str]()

    def now(self) -> datetime:
        return NOW

    async def get(self, path: str, **_: object) -> Object:
        name = path.rsplit("/", 1)[1]
        self.asked.append(name)
        await asyncio.sleep(0)
        found = self.table[name]
        if isinstance(found, Exception):
            raise found
        return found


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (lease(11), 0.0),  # renewed every 10 s
        (lease(12), 12.0),
        (lease(4, lasts_s=8), 4.0),
        (lease(-3600), 0.0),  # a node whose clock is ahead
        ({}, 0.0),
        ({"spec": {"renewTime": "soon", "leaseDurationSeconds": 40}}, 0.0),
        ({"spec": {"renewTime": NOW.isoformat(), "leaseDurationSeconds": "40"}}, 0.0),
    ],
)
async def test_a_lease_that_should_have_been_renewed_tells_since_when(found: Object, said: float) -> None:
    assert late_s(found, NOW.timestamp()) == said


async def test_each_node_is_asked_about_once_in_a_while_and_the_unknown_are_left_out() -> None:
    gone = ApiNotFound("no such lease", status=404)
    calls = Leases({"carol": lease(3), "dan": lease(12), "eve": gone})
    silences = Silences()
    for _ in range(2):
        assert await silences.of(calls, ["carol", "dan", "eve", "dan"]) == {"dan": 12.0}
    assert sorted(calls.asked) == ["carol", "dan", "eve"]
    many = [f"n{number}" for number in range(100)]
    calls = Leases(dict.fromkeys(many, lease(12)))
    assert len(await Silences().of(calls, many)) == MOST == len(calls.asked)


async def test_a_cluster_that_is_away_or_forbids_it_is_no_reason_to_tell_nothing_else() -> None:
    away = Leases({"dan": Unreachable("refused", sent=False)})
    silences = Silences()
    assert await silences.of(away, ["dan"]) == {}
    away.table["dan"] = lease(12)
    assert await silences.of(away, ["dan"]) == {"dan": 12.0}, "asked again"
    closed = Leases({"dan": ApiForbidden("not yours", status=403)})
    silences = Silences()
    for _ in range(3):
        assert await silences.of(closed, ["dan"]) == {}
    assert closed.asked == ["dan"]
