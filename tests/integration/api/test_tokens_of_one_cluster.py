"""Tokens that are limited to the jobs of one virtual cluster: to their program there are no other jobs."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pai_backend.access.broker.lookup import by_public_key, entrance
from pai_backend.access.keys import make_ed25519
from pai_backend.model.job import Desired, State
from pai_backend.store.base import Sight
from tests.integration.api.test_groups import acls, put, submits
from tests.integration.api.test_key_commands import Pai
from tests.integration.api.test_scopes import TABLE, path_of, token_of
from tests.integration.api.test_users import asked, pai
from tests.support.api_site import ALICE, BOB, ROOT, ApiSite

pytestmark = pytest.mark.asyncio
__all__ = ["pai"]

ALL_SCOPES = "read,jobs,files,ssh,admin"
OF_ITS_USER = r"/(templates|drafts|usage|budgets|audit|notifications|secrets|images)(/|$)|/holdings$"
"""Paths without a job that concern all that the user has."""
SOME_VERBS = {
    ("delete", "/api/v2/addresses/{address}"),
    ("put", "/api/v2/users"),
    ("post", "/api/v2/users"),
    *(
        (verb, f"/api/{user}")
        for user in ("v2/users/{user}", "v2/user/{user}", "v1/user/{user}")
        for verb in ("put", "delete")
    ),
}
FOR_ANY_TOKEN = re.compile(
    r"/(info|jobs|validate|trial|prices|schema/job|events/stream|announcement|healthz|readyz|openapi.json|gateway|check)$"
    r"|/(cluster|virtual-clusters|storages|kubernetes|inspect|groups|users?|authn|tokens|certificates|lockouts|shares|keys|addresses|reservations)(/|$)"
    r"|/fs/|/ssh-keys/"
)
"""Paths without a job: of the cluster or the caller, for administrators, or of a scope of their own."""


async def limited(api: ApiSite, owner: str, vc: str, scopes: str = "") -> str:
    return str((await token_of(api, owner, scopes, virtualCluster=vc))["token"])


async def names(api: ApiSite, token: str) -> list[str]:
    return sorted(each["name"] for each in (await asked(api, "GET", "jobs", token))[1])


async def test_each_operation_is_about_a_job_or_the_cluster_or_is_refused(api: ApiSite) -> None:
    token = await limited(api, ALICE, "research", ALL_SCOPES)
    async with api.client(token) as client:
        for verb, template, _ in TABLE:
            if verb == "head":
                continue
            answer = await client.request(verb, path_of(template), content=b"x")
            concerns_all = "is about all that its user has" in answer.text
            if "{job}" in template:
                assert not concerns_all, (verb, template)
                continue
            is_refused = bool(re.search(OF_ITS_USER, template)) or (verb, template) in SOME_VERBS
            assert concerns_all is is_refused, (verb, template, answer.text)
            assert is_refused or FOR_ANY_TOKEN.search(template), f"say which it is: {verb} {template}"


async def test_jobs_elsewhere_do_not_exist_for_it_by_any_operation(api: ApiSite) -> None:
    async with api.client() as alice:
        assert await submits(alice, "here", "research") == 201
        assert await submits(alice, "there", "default") == 201
    token = await limited(api, ALICE, "research", ALL_SCOPES)
    assert await names(api, token) == ["here"]
    refused = 0
    async with api.client(token) as client:
        for verb, template, _ in TABLE:
            about_job = "{job}" in template and "user/{user}" not in template and not template.endswith("healthz")
            if about_job and (verb, template) != ("put", "/api/v1/jobs/{job}"):
                answer = await client.request(verb, path_of(template, "alice~there"), content=b'{"value": "STOP"}')
                assert answer.status_code in (400, 404), (verb, template, answer.text)
                refused += 1
        assert refused > 25
        assert await submits(client, "more", "research") == 201
        assert await submits(client, "other", "default") == 403
        listed = await client.get("/api/v2/jobs", params={"vc": "default"})
        assert listed.json() == []
    there = await api.store.jobs.find("alice~there")
    assert (there.state, there.desired) == (State.WAITING, Desired.START)


async def test_events_and_lists_of_the_store_end_at_the_cluster(api: ApiSite) -> None:
    start = (await api.store.events.recent(None, Sight()))[1]
    async with api.client() as alice, api.client(BOB) as bob:
        await submits(alice, "here", "research")
        await submits(alice, "there", "default")
        await submits(bob, "theirs", "research")
    uid = {name: (await api.store.jobs.find(name)).uid for name in ("alice~here", "bob~theirs")}
    for sight, seen in (
        (Sight("alice", within="research"), {uid["alice~here"]}),
        (Sight(within="research"), set(uid.values())),
        (Sight("alice", ("research", "default"), "research"), set(uid.values())),
    ):
        events, _ = await api.store.events.recent(start, sight)
        assert {event.job for event in events} == seen, sight


async def test_what_others_share_elsewhere_is_not_for_it(api: ApiSite) -> None:
    async with api.client(BOB) as bob:
        for name, vc in (("near", "research"), ("far", "default")):
            assert await submits(bob, name, vc) == 201
            assert (await bob.post(f"/api/v2/jobs/{name}/shares", json={"user": "alice"})).status_code == 201
    for token, seen in ((ALICE, (200, 200)), (await limited(api, ALICE, "research"), (200, 404))):
        shown = [(await asked(api, "GET", f"jobs/bob~{name}/ssh", token))[0] for name in ("near", "far")]
        assert tuple(shown) == seen
        listed = (await asked(api, "GET", "shares", token))[1]["data"]
        assert sorted(each["job"] for each in listed) == ["bob~far", "bob~near"][seen[1] // 404 :]


async def test_it_opens_services_of_its_cluster_alone(api: ApiSite) -> None:
    async with api.client() as alice:
        for name, vc in (("near", "research"), ("far", "default")):
            assert await submits(alice, name, vc) == 201
    async with api.client(await limited(api, ALICE, "research")) as client:
        port = client.base_url.port
        near, far = [
            (await client.get("/", headers={"Host": f"{name}--http.localhost:{port}"})).status_code
            for name in ("near", "far")
        ]
    async with api.client(ALICE) as client:
        own = (await client.get("/", headers={"Host": f"far--http.localhost:{port}"})).status_code
    assert (near, far) == (own, 403)


async def test_certificates_that_it_makes_name_jobs_of_its_cluster_alone(api: ApiSite) -> None:
    async with api.client() as alice:
        for name, vc in (("near", "research"), ("far", "default")):
            assert await submits(alice, name, vc) == 201
    wanted: dict[str, Any] = {"publicKey": make_ed25519("")[1], "lifetimeS": 600}
    async with api.client(await limited(api, ALICE, "research")) as client:
        made = await client.post("/api/v2/certificates", json=wanted)
        assert made.json()["principals"] == ["near"], made.text
        assert (await client.post("/api/v2/certificates", json={**wanted, "job": "far"})).status_code == 404
        named = await client.post("/api/v2/certificates", json={**wanted, "principals": ["near", "far"]})
        assert named.status_code == 400
        other = (await asked(api, "POST", "certificates", ALICE, json=wanted))[1]["serial"]
        listed = (await client.get("/api/v2/certificates")).json()["data"]
        assert [each["serial"] for each in listed] == [made.json()["serial"]]
        assert (await client.delete(f"/api/v2/certificates/{other}")).status_code == 404
        assert (await client.delete(f"/api/v2/certificates/{made.json()['serial']}")).status_code in (200, 204)


async def test_keys_that_it_registers_open_jobs_of_its_cluster_alone(api: ApiSite) -> None:
    async with api.client() as alice:
        for name, vc in (("near", "research"), ("far", "default")):
            assert await submits(alice, name, vc) == 201
    token = await limited(api, ALICE, "research")
    mine, its = (make_ed25519("")[1] for _ in range(2))
    kept = (await asked(api, "POST", "keys", ALICE, json={"publicKey": mine}))[1]["fingerprint"]
    made = (await asked(api, "POST", "keys", token, json={"publicKey": its}))[1]["fingerprint"]
    now = api.ctx.clock()

    async def enters(fingerprint: str) -> list[bool]:
        credential = await by_public_key(api.store, fingerprint, now)
        assert credential is not None
        jobs = [await api.store.jobs.find(f"alice~{name}") for name in ("near", "far")]
        return [await entrance(api.store, credential, job, now) is not None for job in jobs]

    assert (await enters(made), await enters(kept)) == ([True, False], [True, True])
    assert [each["fingerprint"] for each in (await asked(api, "GET", "keys", token))[1]["data"]] == [made]
    # It neither removes, replaces nor narrows a key that it has not registered.
    assert (await asked(api, "DELETE", f"keys/{kept}", token))[0] == 404
    replacing = {"publicKey": make_ed25519("")[1], "replaces": kept}
    assert (await asked(api, "POST", "keys", token, json=replacing))[0] == 403
    assert (await asked(api, "POST", "keys", token, json={"publicKey": mine}))[0] == 201
    assert await enters(kept) == [True, True]
    # What its user registers without it is the user's own, and what it leaves ends with it.
    assert (await asked(api, "POST", "keys", ALICE, json={"publicKey": its}))[0] == 201
    assert await enters(made) == [True, True]
    assert (await asked(api, "DELETE", f"keys/{made}", token))[0] == 404


async def test_an_administrator_or_manager_by_it_is_one_of_its_cluster(api: ApiSite) -> None:
    async with api.client() as alice:
        await submits(alice, "here", "research")
        await submits(alice, "there", "default")
    await put(api, "users/bob", manages=["research", "default"])
    for owner, scopes, seen in (
        (BOB, "read", []),
        (BOB, "read,admin", ["here"]),
        (ROOT, "read,admin", ["here"]),
        (ROOT, "read", []),
    ):
        assert await names(api, await limited(api, owner, "research", scopes)) == seen, (owner, scopes)
    by_root = await limited(api, ROOT, "research", ALL_SCOPES)
    assert (await asked(api, "GET", "lockouts", by_root))[0] == 403
    assert (await asked(api, "PUT", "jobs/alice~here/executionType", by_root, json={"value": "STOP"}))[0] == 202
    assert (await asked(api, "PUT", "jobs/alice~there/executionType", by_root, json={"value": "STOP"}))[0] == 404


async def test_it_is_made_for_a_cluster_that_its_user_may_use(api: ApiSite) -> None:
    await put(api, "groups/default", extension=acls(virtualClusters=["default"]))
    await put(api, "users/bob", virtualCluster=["research"])
    for owner, vc, status in ((BOB, "reserach", 404), (ALICE, "research", 404), (BOB, "research", 200)):
        code, answer = await asked(api, "POST", "tokens/application", owner, params={"virtualCluster": vc})
        assert code == status, answer
    token = await limited(api, BOB, "research")
    async with api.client(token) as client:
        assert await submits(client, "early", "research") == 201
        await put(api, "users/bob", virtualCluster=[])
        assert await submits(client, "late", "research") == 403, "a grant that ends counts for it, too"


async def test_the_command_line_makes_and_shows_it(pai: Pai, api: ApiSite) -> None:
    made = await pai.json("token", "add", "ci", "--vc", "research", token=ALICE)
    _, shown, _ = await pai("token", "list", token=ALICE)
    (line,) = (each for each in shown.splitlines() if each.startswith(made["id"]))
    assert line.split()[1:6] == ["ci", "jobs", "read", "ssh", "research"]
    code, shown, said = await pai("list", token=made["token"])
    assert code == 0, said
