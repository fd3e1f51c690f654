"""Who is told of which GPU and CPU hours."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import cast

import httpx
import pytest
import pytest_asyncio

from jupyter_pai.commands.usage import _csv, _text
from jupyter_pai.wire_types import Usage
from pai_backend.model.account import Group, VcGrants
from pai_backend.model.job import Job, Phase, State
from pai_backend.model.node import Placement
from pai_backend.store.grants import Act, UserUpdate
from pai_backend.testing.builders import T0, make_job, make_role, make_spec, make_uid
from tests.support.api_site import ALICE, BOB, ROOT, ApiSite, running_api

HOUR = timedelta(hours=1)


@pytest_asyncio.fixture
async def site(tmp_path: Path) -> AsyncIterator[ApiSite]:
    """Alice held 2 V100 for 3 h in default and Bob 1 A100 for 30 min in research."""
    async with running_api(tmp_path) as found:
        lease = await found.store.leadership.acquire("one", 3600, T0, force=True)
        assert lease is not None
        epoch = lease.epoch
        await ran(found, epoch, 1, "alice", "default", "V100", 2, 3 * HOUR)
        await ran(found, epoch, 2, "bob", "research", "A100", 1, HOUR / 2)
        yield found


async def ran(
    site: ApiSite, epoch: int, number: int, user: str, cluster: str, kind: str, gpus: int, lasted: timedelta
) -> Job:
    """A job that began at T0 and has ended."""
    spec = make_spec(f"job-{number}", roles=[make_role(cpus=4, gpus=gpus)], virtual_cluster=cluster)
    job = await site.store.jobs.submit(make_job(spec.name, uid=make_uid(number), user=user, spec=spec), b"", "", "", [])
    place = Placement(node="n", address="127.0.0.1", machine="m", gpus=tuple(range(gpus)), gpu_type=kind, owned="q")
    for at, phase, state in ((T0, Phase.RUNNING, State.RUNNING), (T0 + lasted, Phase.ENDED, State.SUCCEEDED)):
        task = job.tasks[0].model_copy(update={"phase": phase, "placement": place, "state": state})
        after = job.model_copy(update={"tasks": (task,), "state": state})
        job = await site.store.jobs.save(after, seen=job, epoch=epoch, events=[], at=at)
    return job


async def asked(site: ApiSite, token: str, **query: str) -> httpx.Response:
    times = {"since": T0.isoformat(), "until": (T0 + 24 * HOUR).isoformat()}
    async with site.client(token) as client:
        return await client.get("/api/v2/usage", params={**times, **query})


async def rows(site: ApiSite, token: str, by: str, *names: str) -> list[tuple[object, ...]]:
    found = (await asked(site, token, by=by)).raise_for_status().json()["data"]
    return [tuple(row[name] for name in (*names, "gpuHours", "cpuHours", "runs")) for row in found]


@pytest.mark.asyncio
async def test_users_are_told_of_their_own_hours_and_administrators_of_all(site: ApiSite) -> None:
    alices, bobs = ("alice", "default", "V100", 6.0, 12.0, 1), ("bob", "research", "A100", 0.5, 2.0, 1)
    names = ("user", "virtualCluster", "gpuType")
    assert await rows(site, ALICE, "user,vc,type", *names) == [alices]
    assert await rows(site, BOB, "user,vc,type", *names) == [bobs]
    assert await rows(site, ROOT, "user,vc,type", *names) == [alices, bobs]
    assert await rows(site, ROOT, "", *names) == [(None, None, None, 6.5, 14.0, 2)]
    day = T0.date().isoformat()
    assert await rows(site, ROOT, "day,quota", "day", "quota") == [(day, "guaranteed", 6.5, 14.0, 2)]


@pytest.mark.asyncio
async def test_managers_are_told_of_their_virtual_clusters(site: ApiSite) -> None:
    update = UserUpdate(grants=VcGrants(frozenset(), frozenset({"research"})))
    await site.store.grants.change_user("alice", update, Act("root", site.ctx.clock()), session="")
    site.ctx.identity.forget()
    assert {row[0] for row in await rows(site, ALICE, "user", "user")} == {"alice", "bob"}
    assert {row[0] for row in await rows(site, BOB, "user", "user")} == {"bob"}


@pytest.mark.asyncio
async def test_hours_of_a_part_of_the_time_are_a_part(site: ApiSite) -> None:
    for since, until, hours in ((-2, 1, 2.0), (1, 2, 2.0), (2, 24, 2.0), (3, 24, 0), (-9, 0, 0)):
        times = {"since": (T0 + since * HOUR).isoformat(), "until": (T0 + until * HOUR).isoformat()}
        found = (await asked(site, ALICE, by="user", **times)).json()["data"]
        assert sum(row["gpuHours"] for row in found) == hours, (since, until)


@pytest.mark.asyncio
async def test_what_cannot_be_told_is_refused(site: ApiSite) -> None:
    long = {"since": (T0 - 401 * 24 * HOUR).isoformat()}
    for query in ({"by": "colour"}, long, {"since": (T0 + 25 * HOUR).isoformat()}, {"since": "2026-11-25"}, {"x": "1"}):
        answer = await asked(site, ROOT, **query)
        assert (answer.status_code, answer.json()["code"]) == (400, "InvalidParametersError"), query
        assert answer.json()["hint"] or answer.json()["errors"]


@pytest.mark.asyncio
async def test_hours_stay_when_their_job_is_deleted(site: ApiSite) -> None:
    before = await rows(site, ALICE, "job", "job")
    async with site.client(ALICE) as client:
        (await client.delete("/api/v2/jobs/alice~job-1")).raise_for_status()
    assert await rows(site, ALICE, "job", "job") == before


@pytest.mark.asyncio
async def test_text_and_lines_for_a_spreadsheet_say_the_same(site: ApiSite) -> None:
    found = (await asked(site, ROOT, by="user,type")).json()
    text = _text(found, ["user", "type"])
    assert text.splitlines()[1].split() == ["alice", "V100", "6.0", "12.0", "1"]
    assert text.endswith("Together 6.5 GPU hours and 14.0 CPU hours.")
    lines = list(csv.DictReader(io.StringIO(_csv(found, ["user", "type"]))))
    assert [(line["user"], float(line["gpuHours"]), line["runs"]) for line in lines] == [
        ("alice", 6.0, "1"),
        ("bob", 0.5, "1"),
    ]
    empty = {**found, "data": []}
    assert _text(cast(Usage, empty), ["user"]) == "Nothing was held in that time."


@pytest.mark.asyncio
async def test_costs_are_told_where_there_are_prices(site: ApiSite) -> None:
    free = (await asked(site, ROOT, by="user")).json()
    assert (free["currency"], free["total"]["cost"], free["data"][0]["cost"]) == (None, None, None)
    async with site.client(ROOT) as client:
        for kind, hourly, since in (("V100", "2.50", T0), ("V100", "1", T0 + HOUR), ("A100", "0.000001", T0)):
            body = {"type": kind, "hourly": hourly, "since": since.isoformat(), "currency": "EUR"}
            (await client.put("/api/v2/prices", json=body)).raise_for_status()
    found = (await asked(site, ROOT, by="user,type")).json()
    assert [row["cost"] for row in found["data"]] == ["9.00", "0.000001"], "half a millionth is rounded up"
    assert (found["currency"], found["total"]) == ("EUR", {"gpuHours": 6.5, "cpuHours": 14.0, "cost": "9.000001"})
    own = (await asked(site, BOB, by="")).json()
    assert (own["total"]["cost"], own["data"][0]["cost"]) == ("0.000001", "0.000001"), "their own alone"
    text = _text(found, ["user", "type"]).splitlines()
    assert text[0].split()[-1] == "COST"
    assert text[1].split() == ["alice", "V100", "6.0", "12.0", "1", "9.00"]
    assert text[-1] == "Together 6.5 GPU hours and 14.0 CPU hours, which cost 9.00 EUR."
    lines = list(csv.DictReader(io.StringIO(_csv(found, ["user"]))))
    assert [(line["user"], line["cost"], line["currency"]) for line in lines] == [
        ("alice", "9.00", "EUR"),
        ("bob", "0.000001", "EUR"),
    ]


@pytest.mark.asyncio
async def test_each_row_has_its_hours_of_each_day_where_that_is_asked_for(site: ApiSite) -> None:
    times = {"since": (T0 - 24 * HOUR).isoformat(), "until": (T0 + 24 * HOUR).isoformat()}
    found = (await asked(site, ROOT, by="user", daily="true", **times)).json()
    assert len(found["days"]) in (2, 3)
    at = found["days"].index(T0.date().isoformat())
    for row, hours in zip(found["data"], (6.0, 0.5), strict=True):
        assert sum(row["daily"]["gpuHours"]) == row["gpuHours"] == hours
        assert row["daily"]["gpuHours"][at] == hours
        assert row["daily"]["cost"] is None
    assert (await asked(site, ROOT, by="user")).json()["data"][0]["daily"] is None
    answer = await asked(site, ROOT, by="day", daily="true")
    assert (answer.status_code, answer.json()["message"]) == (400, "By day, each row is one day.")


@pytest.mark.asyncio
async def test_by_group_managers_and_members_see_the_groups_of_whom_they_see(site: ApiSite) -> None:
    act = Act("root", site.ctx.clock())
    await site.store.groups.add(Group("vision", members=("alice", "bob")), act)
    await site.store.groups.add(Group("audio", members=("bob",)), act)
    assert await rows(site, ROOT, "group", "group") == [("vision", 6.5, 14.0, 2), ("audio", 0.5, 2.0, 1)]
    assert await rows(site, ALICE, "group", "group") == [("vision", 6.0, 12.0, 1)]
    whole = (await asked(site, ROOT, by="group")).json()["total"]
    assert whole["gpuHours"] == 6.5, "Bob's hours once, though he is in two groups"
