"""Reservations over HTTP and by `pai reserve`: who makes, sees and removes them, and what is refused with numbers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from pai_backend.api.context import CellRules
from pai_backend.model.job import NewEvent, Phase, State
from pai_backend.store.auditing import AuditFilter
from pai_backend.testing.builders import make_job, make_placement, make_role, make_spec, make_uid
from tests.integration.api.test_cells import document, machine
from tests.integration.api.test_groups import acls
from tests.integration.api.test_groups import put as put_group
from tests.integration.api.test_key_commands import Pai
from tests.integration.api.test_scopes import token_of
from tests.support.api_site import ALICE, BOB, ROOT, ApiSite, running_api
from tests.support.lab_config import one_vc, two_vcs

PATH = "/api/v2/reservations"
HOUR = timedelta(hours=1)
START = datetime.now(UTC)


@pytest_asyncio.fixture
async def lab(tmp_path: Path) -> AsyncIterator[ApiSite]:
    """Everyone may use ``default``, which owns a GPU of each of two nodes, and bob manages it."""
    async with running_api(tmp_path, cells=CellRules(one_vc()), nodes=[machine("carol"), machine("dan")]) as site:
        await put_group(site, "groups/default", extension=acls(virtualClusters=["default"]))
        await put_group(site, "users/bob", manages=["default"])
        yield site


async def post(site: ApiSite, token: str = BOB, *, hours: int = 1, lasts: int = 1, **more: Any) -> tuple[int, Any]:
    """Reserve a GPU for a course, from so many hours from now."""
    begin = START + hours * HOUR
    body = {
        "virtualCluster": "default",
        "name": "course",
        "gpus": 1,
        "begins": begin.isoformat(),
        "ends": (begin + lasts * HOUR).isoformat(),
        **more,
    }
    async with site.client(token) as client:
        answer = await client.post(PATH, json=body)
        return answer.status_code, answer.json()


async def listed(site: ApiSite, token: str) -> list[dict[str, Any]]:
    async with site.client(token) as client:
        return list((await client.get(PATH)).raise_for_status().json()["data"])


@pytest.mark.asyncio
async def test_managers_make_and_remove_them_and_who_may_use_the_virtual_cluster_sees_them(lab: ApiSite) -> None:
    code, refused = await post(lab, ALICE)
    assert (code, refused["code"]) == (403, "ForbiddenUserError")
    code, made = await post(lab, BOB, users=["alice"])
    assert (code, made["mayRemove"], made["isYours"], made["madeBy"]) == (201, True, False, "bob")
    (seen,) = await listed(lab, ALICE)
    assert (seen["name"], seen["users"], seen["mayRemove"], seen["isYours"]) == ("course", ["alice"], False, True)
    async with lab.client(ALICE) as alice, lab.client(BOB) as bob:
        assert (await alice.delete(f"{PATH}/{made['id']}")).status_code == 403
        assert (await bob.delete(f"{PATH}/{made['id']}")).status_code == 204
        assert (await bob.delete(f"{PATH}/{made['id']}")).status_code == 400
    assert await listed(lab, ALICE) == []
    events = await lab.store.audit.page(AuditFilter(types=("reservation.made", "reservation.removed"), limit=10))
    told = [(each.type, each.by, each.subject) for each in reversed(events) if each.result == "done"]
    assert told == [("reservation.made", "bob", "default"), ("reservation.removed", "bob", "default")]
    assert "1 GPUs for course (alice), " in events[0].detail
    assert {each.by for each in events if each.result != "done"} == {"alice"}


@pytest.mark.asyncio
async def test_a_token_of_one_virtual_cluster_is_for_that_one_alone(tmp_path: Path) -> None:
    async with running_api(tmp_path, cells=CellRules(two_vcs()), nodes=[machine("carol"), machine("dan")]) as site:
        token = str((await token_of(site, ROOT, "read,admin", virtualCluster="vc1"))["token"])
        assert (await post(site, token))[0] == 403
        assert (await post(site, ROOT))[0] == 201
        assert (await post(site, token, virtualCluster="vc1"))[0] == 201
        assert [each["virtualCluster"] for each in await listed(site, token)] == ["vc1"]
        reader = str((await token_of(site, ROOT, "read"))["token"])
        assert (await post(site, reader, virtualCluster="vc1"))[0] == 403


@pytest.mark.asyncio
async def test_without_configured_cells_only_administrators_reserve(tmp_path: Path) -> None:
    async with running_api(tmp_path, nodes=[machine("carol")]) as site:
        await put_group(site, "users/bob", manages=["default"])
        code, refused = await post(site, BOB)
        assert (code, refused["hint"]) == (403, "Ask an administrator.")
        assert (await post(site, ROOT))[0] == 201
        code, refused = await post(site, ROOT)
        assert code == 400
        assert "owns 1 GPUs of one kind, and has no room for 1 more beside what is reserved" in refused["message"]


@pytest.mark.asyncio
async def test_more_than_is_owned_at_that_time_is_refused_with_the_numbers(lab: ApiSite) -> None:
    code, refused = await post(lab, gpus=3)
    assert code == 400
    assert refused["message"] == "The virtual cluster default owns 2 GPUs of one kind, and not 3."
    code, refused = await post(lab, gpus=2, oneNode=True)
    assert refused["message"] == "The virtual cluster default does not own 2 GPUs of one kind in one node."
    assert (await post(lab, gpus=1, hours=1, lasts=2))[0] == 201
    assert (await post(lab, gpus=1, hours=2, lasts=2, name="exam"))[0] == 201
    code, refused = await post(lab, gpus=1, hours=2, lasts=1)
    assert code == 400
    assert refused["message"].endswith("beside what is reserved at that time: course (1), exam (1).")
    assert (await post(lab, gpus=1, hours=4))[0] == 201, "they are over by then"
    assert (await post(lab, gpus=1, hours=1, lasts=1))[0] == 201, "exam begins when it is over"
    assert (await post(lab, gpuType="none"))[0] == 400
    assert (await post(lab, gpuType="GPU", hours=9))[0] == 201


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "wrong",
    [
        {"gpus": 0},
        {"gpus": "all"},
        {"name": ""},
        {"name": "two\nlines"},
        {"ends": "2026-01-01T00:00:00Z", "begins": None},
        {"ends": "2026-01-01T00:00:00", "begins": None},
        {"begins": "2999-01-01T00:00:00Z", "ends": "2999-01-02T00:00:00Z"},
        {"begins": "2026-01-02T00:00:00Z", "ends": "2026-01-01T00:00:00Z"},
        {"users": ["nobody"]},
        {"groups": ["nobody"]},
        {"groups": ["default"]},
        {"virtualCluster": "nowhere"},
        {"colour": "red"},
    ],
)
async def test_what_is_not_right_changes_nothing(lab: ApiSite, wrong: dict[str, Any]) -> None:
    code, refused = await post(lab, ROOT, **wrong)
    assert code in (400, 404)
    assert refused["message"]
    assert await lab.store.bookings.all() == ()


async def run(lab: ApiSite, number: int, node: str, **changes: Any) -> str:
    """A job of alice's that holds the GPU of a node, as if it ran there for some time."""
    uid, now = make_uid(number), datetime.now(UTC)
    spec = make_spec(f"job{number}", roles=[make_role(gpus=1)]).model_copy(update=changes)
    job = make_job(spec.name, uid=uid, user="alice", spec=spec, submitted_at=now)
    job = await lab.store.jobs.submit(job, b"{}", "", "", [NewEvent("job.submitted")])
    lease = await lab.store.leadership.acquire("test", 60, now, force=True)
    assert lease is not None
    place = make_placement(node=node, gpus=(0,)).model_copy(
        update={"cells": (0,), "chain": "GPU-NODE", "owned": "GPU-NODE"}
    )
    (task,) = job.tasks
    begun = {"placement": place, "state": State.RUNNING, "phase": Phase.RUNNING, "started_at": now}
    running = task.model_copy(update=begun)
    after = job.model_copy(update={"tasks": (running,), "state": State.RUNNING, "launched_at": now})
    await lab.store.jobs.save(after, seen=job, epoch=lease.epoch, events=[], at=now)
    return f"alice~job{number}"


@pytest.mark.asyncio
async def test_jobs_in_the_way_are_named_and_only_stopped_when_that_was_asked_for(lab: ApiSite) -> None:
    await run(lab, 1, "carol", max_duration_s=600)
    second = await run(lab, 2, "dan")
    assert (await post(lab, gpus=1))[0] == 201, "the first is over by then"
    code, refused = await post(lab, gpus=1, name="exam")
    assert code == 400
    assert refused["message"].startswith("Jobs hold these GPUs that do not end before ")
    assert refused["message"].endswith(f": {second}.")
    code, refused = await post(lab, gpus=1, name="exam", hours=0, endOthers=True)
    assert (code, refused["hint"]) == (400, "Let the reservation begin later.")
    code, made = await post(lab, gpus=1, name="exam", endOthers=True)
    assert (code, made["stops"]) == (201, [second])
    async with lab.client(ALICE) as alice:
        end = (await alice.get(f"/api/v2/jobs/{second}")).json()["endAt"]
    assert datetime.fromisoformat(end) == datetime.fromisoformat(made["begins"]), "its owner sees when it ends"


@pytest.mark.asyncio
async def test_a_trial_knows_of_them(lab: ApiSite) -> None:
    assert (await post(lab, gpus=2))[0] == 201
    async with lab.client(ALICE) as alice:
        tried = (await alice.post("/api/v2/trial", content=document("hello", "default"))).json()
    assert tried["outcome"] == "waits"
    assert tried["waiting"]["cause"] == "booked"
    assert tried["waiting"]["changes"][0]["kind"] == "max-duration"


@pytest.mark.asyncio
async def test_pai_reserve_adds_lists_and_removes(
    lab: ApiSite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pai = Pai(lab, monkeypatch, capsys)
    code, out, _ = await pai("reserve", "list")
    assert (code, out.strip()) == (0, "Nothing is reserved.")
    begin = (datetime.now(UTC) + 3 * HOUR).replace(microsecond=0)
    words = ["course", "--gpus", "1", "--one-node", "--from", begin.isoformat(), "--for", "9h", "--user", "alice"]
    code, out, err = await pai("reserve", "add", *words, token=BOB)
    assert (code, err) == (0, "")
    assert out.startswith("Reserved 1 in one node for course: ")
    (made,) = await lab.store.bookings.all()
    assert (made.begins, made.ends, made.users, made.one_node) == (begin, begin + 9 * HOUR, ("alice",), True)
    code, out, _ = await pai("reserve", "list")
    assert "course" in out
    assert "alice" in out
    code, _, err = await pai("reserve", "add", *words)
    assert (code != 0, "managers" in err) == (True, True)
    for wrong in (["--from", "tomorrow", "--for", "1h"], []):
        with pytest.raises(SystemExit):
            await pai("reserve", "add", "x", "--gpus", "1", *wrong, token=BOB)
    code, out, _ = await pai("reserve", "remove", made.id, token=BOB)
    assert (code, await lab.store.bookings.all()) == (0, ())
