"""Groups, grants of virtual clusters, managers, and users who are disabled: over REST and by ``pai``."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from jupyter_pai.errors import OK
from pai_backend.access.keys import make_ed25519
from pai_backend.model.job import Desired, Phase, State
from pai_backend.store.auditing import AuditFilter
from tests.integration.api.test_key_commands import Pai
from tests.integration.api.test_openpai_jobs import saved, submitted
from tests.integration.api.test_streams import connect
from tests.integration.api.test_users import added, asked, pai, refusal
from tests.support.api_site import ALICE, BOB, ROOT, ApiSite
from tests.support.documents import scm_document

pytestmark = pytest.mark.asyncio
__all__ = ["pai"]


async def submits(client: httpx.AsyncClient, name: str, vc: str) -> int:
    answer = await client.post("/api/v1/jobs", content=scm_document(name, virtualCluster=vc))
    return answer.status_code


async def put(api: ApiSite, path: str, token: str = ROOT, **data: Any) -> Any:
    code, answer = await asked(api, "PUT", path, token, json={"data": data})
    assert code == 200, answer
    return answer


def acls(**values: list[str]) -> dict[str, Any]:
    return {"acls": values}


async def test_everyone_uses_all_until_grants_of_everyone_count_and_grants_add_up(api: ApiSite) -> None:
    async with api.client() as alice, api.client(BOB) as bob:
        assert await submits(alice, "first", "research") == 201
        changed = await put(api, "groups/default", extension=acls(virtualClusters=["default"]))
        assert changed["extension"]["acls"]["everything"] is False
        assert await submits(alice, "second", "research") == 403
        assert await submits(alice, "third", "default") == 201
        use = (await alice.get("/api/v2/cluster/use")).json()["virtualClusters"]
        assert {each["name"]: each["granted"] for each in use} == {"default": True, "research": False}
        restarted = await alice.put("/api/v2/jobs/first/executionType", json={"value": "START"})
        assert restarted.status_code == 202, "what runs goes on"

        group = {"groupname": "vision", "members": ["alice"], "extension": acls(virtualClusters=["research"])}
        assert (await asked(api, "POST", "groups", json=group))[0] == 201
        assert await submits(alice, "fourth", "research") == 201
        assert await submits(bob, "fifth", "research") == 403
        await put(api, "users/bob", virtualCluster=["research"])
        assert await submits(bob, "sixth", "research") == 201
        assert (await asked(api, "GET", "users/me", ALICE))[1]["grouplist"] == ["default", "vision"]

        assert (await asked(api, "DELETE", "groups/vision"))[0] == 204
        assert await submits(alice, "seventh", "research") == 403
        assert (await asked(api, "DELETE", "groups/default"))[0] == 204
        assert await submits(alice, "eighth", "research") == 201


async def test_a_job_does_not_run_again_where_its_user_may_no_longer_submit(api: ApiSite) -> None:
    async with api.client() as alice:
        job = await submitted(api, alice, "old")
        await saved(api, job, {"state": State.FAILED, "phase": Phase.ENDED, "ended_at": job.submitted_at})
        await put(api, "groups/default", extension=acls(virtualClusters=["research"]))
        path = f"jobs/{job.uid}/executionType"
        for token in (ALICE, ROOT):  # an administrator's wish does not widen what the owner may
            code, answer = await asked(api, "PUT", path, token, json={"value": "START"})
            assert (code, answer["code"]) == (403, "ForbiddenUserError")


async def test_a_manager_sees_and_changes_the_jobs_of_a_virtual_cluster_and_no_others(api: ApiSite) -> None:
    async with api.client() as alice, api.client(BOB) as bob:
        assert await submits(alice, "theirs", "research") == 201
        assert await submits(alice, "hidden", "default") == 201
        path = "/api/v2/jobs/alice~theirs"
        assert (await bob.get(path)).status_code == 404
        await put(api, "users/bob", manages=["research"])
        assert (await bob.get(path)).status_code == 200
        assert (await bob.get("/api/v2/jobs/alice~hidden")).status_code == 404
        listed = (await bob.get("/api/v2/jobs")).json()
        assert [each["name"] for each in listed] == ["theirs"]
        config = await bob.get(f"{path}/config")
        assert config.headers.get("X-Pai-Masked") in (None, "true")
        assert (await bob.get(f"{path}/key")).status_code in (403, 405), "to see is not to enter"
        events = await connect(api, "/api/v2/events/stream", BOB)
        assert (await bob.put(f"{path}/executionType", json={"value": "STOP"})).status_code == 202
        async with asyncio.timeout(60):
            told = json.loads(str(await events.read_message()))
            assert told["event"]["job"], told
            await put(api, "users/bob", manages=[])
            while await events.read_message() is not None:
                """The stream of a right that has ended."""
        assert (await bob.get(path)).status_code == 404


async def test_a_manager_grants_what_they_manage_and_nothing_else(api: ApiSite) -> None:
    await put(api, "groups/default", extension=acls(virtualClusters=["default"]))
    await put(api, "users/bob", manages=["research"])
    granted = await put(api, "users/alice", BOB, virtualCluster=["research"])
    assert granted["virtualCluster"] == ["default", "research"]
    assert (granted["email"], granted["extension"]["sshKeys"]) == ("", [])
    refused: list[dict[str, object]] = [
        {"manages": ["research"]},
        {"virtualCluster": ["default", "research"]},
        {"admin": True},
        {"grouplist": []},
        {"disabled": True},
        {"newPassword": "taken over now"},
        {"email": "x@example.org"},
    ]
    for data in refused:
        assert await refusal(api, "PUT", "users/alice", BOB, json={"data": data}) in (
            (403, "ForbiddenUserError"),
            (400, "NotImplementedError"),
        ), data
    eve = await added(api)
    assert await refusal(api, "PUT", "users/eve", BOB, json={"data": {"newPassword": "taken over now"}}) == (
        403,
        "ForbiddenUserError",
    )
    assert await refusal(api, "PUT", "users/alice", eve, json={"data": {"virtualCluster": []}}) == (
        403,
        "ForbiddenUserError",
    )
    program = (await asked(api, "POST", "tokens/application", BOB))[1]["token"]
    change: dict[str, object] = {"data": {"virtualCluster": []}}
    assert await refusal(api, "PUT", "users/alice", program, json=change) == (403, "ForbiddenUserError")
    told = [event.detail for event in await api.store.audit.page(AuditFilter("alice")) if event.type == "user.changed"]
    assert told == ["virtual clusters: research"]


@pytest.mark.parametrize(
    ("path", "data", "said"),
    [
        ("users/alice", {"virtualCluster": ["reserach"]}, "research"),
        ("users/alice", {"grouplist": ["vison"]}, "group list"),
        ("groups/default", {"members": ["alice"]}, "another name"),
        ("groups/default", {"extension": {"acls": {"admin": True}}}, "--admin"),
    ],
)
async def test_a_wrong_right_is_refused_with_a_remedy(api: ApiSite, path: str, data: Any, said: str) -> None:
    code, answer = await asked(api, "PUT", path, json={"data": data})
    assert code in (400, 404)
    assert said in answer["hint"]
    assert (await api.store.groups.directory()).own == {}


async def test_the_command_line_tells_beforehand_what_becomes_of_a_user_and_transfers(pai: Pai, api: ApiSite) -> None:
    assert (await pai("group", "add", "vision", "--vc", "research", "--description", "Vision", token=ROOT))[0] == OK
    await added(api, "olga")
    session = await added(api, "eve", grouplist=["vision"])
    async with api.client(session) as eve:
        await eve.post("/api/v2/keys", json={"publicKey": make_ed25519("")[1]})
        document = scm_document("bench", address="lab")
        assert (await eve.post("/api/v1/jobs", content=document)).status_code == 201
        await eve.put("/api/v2/templates/mine", content=scm_document("mine"))
    code, shown, said = await pai("user", "disable", "eve", "--stop-jobs", "--yes", token=ROOT)
    assert code == OK
    for words in ("active jobs: bench", "workspace names: lab", "templates: 1", "keys: 1"):
        assert words in said, said
    assert (await asked(api, "GET", "users/me", session))[0] == 403
    job = await api.store.jobs.find("eve~bench", None)
    assert job.desired is Desired.STOP
    code, shown, _ = await pai("user", "list", token=ROOT)
    assert [line for line in shown.splitlines() if line.startswith("eve") and "disabled" in line and "vision" in line]
    refused = await pai("user", "remove", "eve", "--transfer-to", "olga", "--yes", token=ROOT)
    assert (refused[0], "bench" in refused[2]) == (2, True), refused
    await saved(api, job, {"state": State.STOPPED, "phase": Phase.ENDED, "ended_at": job.submitted_at})
    assert (await pai("user", "remove", "eve", "--transfer-to", "olga", "--yes", token=ROOT))[0] == OK
    assert [each.name for each in await api.store.addresses.of_user("olga")] == ["lab"]
    assert (await api.store.grants.holdings("olga", api.ctx.clock())).templates == 1
    left = await api.store.grants.holdings("eve", api.ctx.clock())
    assert (left.addresses, left.keys, left.tokens, left.templates, left.ended_jobs) == ((), 0, 0, 0, 1)
    assert (await api.store.groups.directory()).groups["vision"].members == ()


async def test_a_file_of_users_names_every_wrong_line_before_anybody_is_added(
    pai: Pai, api: ApiSite, tmp_path: Path
) -> None:
    file = tmp_path / "users.csv"
    file.write_text("name,email,admin,groups,vc\neve,,,vision,\nEve,,,,\n,,,,\n", encoding="utf-8")
    code, _, error = await pai("user", "import", file, token=ROOT)
    assert code == 2
    assert "line 3" in error
    assert "line 4" in error
    file.write_text("name,email,admin,groups,vc\neve,,,vision,research\n", encoding="utf-8")
    code, _, error = await pai("user", "import", file, token=ROOT)
    assert (code, f"{file}, line 2: No group has the name 'vision'" in error) == (2, True), error
    before = (await asked(api, "GET", "users"))[1]
    file.write_text("name,email,admin,groups,vc\nzoe,,,,\nno/name,,,,\nmia,,,,vizion\nALICE,,,,\n", encoding="utf-8")
    for more in ((), ("--dry-run",)):
        code, _, error = await pai("user", "import", file, *more, token=ROOT)
        assert code == 2, more
        for words in ("line 3: username", "line 4: The virtual cluster 'vizion'", "line 5: There is a user ALICE"):
            assert f"{file}, {words}" in error, error
        assert (await asked(api, "GET", "users"))[1] == before, "zoe is not added either"
    file.write_text("name,email,admin,groups,vc\neve,,,vision,research\n", encoding="utf-8")
    await pai("group", "add", "vision", token=ROOT)
    assert [each["result"] for each in await pai.json("user", "import", file, token=ROOT)] == ["added"]
    eve = (await asked(api, "GET", "users/eve"))[1]
    assert (eve["grouplist"], eve["own"]["use"]) == (["default", "vision"], ["research"])
