"""Tokens that are limited: the table of operation, role, relation and scope is made of the routes and asked whole."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from pai_backend.access.keys import make_ed25519
from pai_backend.api.operation import OPERATIONS
from pai_backend.api.routes import ROUTES
from pai_backend.model.scope import Scope
from tests.integration.api.test_groups import put, submits
from tests.integration.api.test_key_commands import Pai
from tests.integration.api.test_users import asked, pai
from tests.support.api_site import ALICE, BOB, ROOT, ApiSite

pytestmark = pytest.mark.asyncio
__all__ = ["pai"]

TABLE = [
    (verb, route.template, route.handler.scope_of(verb))
    for route in ROUTES
    for verb in map(str.lower, route.handler.verbs())
    if not route.handler.public and getattr(route.handler, verb) in OPERATIONS
]
WRITES = {"post", "put", "delete"}


async def token_of(api: ApiSite, owner: str, scopes: str, **more: Any) -> dict[str, Any]:
    code, made = await asked(api, "POST", "tokens/application", owner, params={"scopes": scopes, **more})
    assert code == 200, made
    return dict(made)


def path_of(template: str, job: str = "0") -> str:
    return re.sub(r"\{.*?\}", "0", template.replace("{job}", job))


async def test_the_table_has_each_scope_where_it_belongs() -> None:
    assert len(TABLE) > 80
    assert {scope for *_, scope in TABLE} == set(Scope)
    for verb, template, scope in TABLE:
        if "/fs/" in template:
            assert scope is Scope.FILES, template
        elif template == "/api/v2/shares":
            assert scope is Scope.READ
        elif re.search(r"/(ssh|key|keys|shares|links|ticket|certificates)(/|$)", template):
            assert scope is Scope.SSH, template
        elif re.search(r"/(orphans|images/{path}|config|config/history|lockouts)(/|$)", template) and (
            "{job}" not in template
        ):
            assert scope is Scope.ADMIN, template
        elif verb in WRITES and re.search(r"/users?(/{user})?$", template):
            assert scope is Scope.SSH, "a profile has the keys of its user"
        elif verb in WRITES and template == "/api/v2/announcement":
            assert scope is Scope.ADMIN, "any user reads it"
        elif verb in WRITES and template == "/api/v2/virtual-clusters/{vc}/rules":
            assert scope is Scope.ADMIN, "its users read them"
        elif verb in WRITES and template.startswith("/api/v2/budgets"):
            assert scope is Scope.ADMIN, "whom they concern reads them"
        elif verb in WRITES and template == "/api/v2/prices":
            assert scope is Scope.ADMIN, "all users read them"
        elif verb in WRITES and template.startswith("/api/v2/reservations"):
            assert scope is Scope.ADMIN, "users of the virtual cluster read them"
        elif verb in WRITES:
            assert scope is Scope.JOBS, (verb, template)


async def test_each_operation_refuses_each_token_of_another_scope_and_no_other(api: ApiSite) -> None:
    tokens = {scope: (await token_of(api, ALICE, scope))["token"] for scope in Scope}
    async with api.client() as client:
        for verb, template, needed in TABLE:
            for scope, token in tokens.items():
                answer = await client.request(
                    verb, path_of(template), headers={"Authorization": f"Bearer {token}"}, content=b"x"
                )
                if verb == "head":
                    assert scope is needed or answer.status_code == 403, (verb, template, scope)
                else:
                    assert ("needs the scope" in answer.text) is (scope is not needed), (verb, template, scope)


async def test_jobs_of_others_are_for_their_manager_and_administrators(api: ApiSite) -> None:
    """Role and relation: whoever may not see a job is told that it does not exist, by every operation on it."""
    async with api.client() as alice, api.client(BOB) as bob:
        assert await submits(alice, "theirs", "research") == 201
        refused = []
        for verb, template, _ in TABLE:
            # `healthz` of a job tells nothing but that the API answers; PUT of a job of v1 submits one.
            about_job = "{job}" in template and "user/{user}" not in template and not template.endswith("healthz")
            if about_job and (verb, template) != ("put", "/api/v1/jobs/{job}"):
                answer = await bob.request(verb, path_of(template, "alice~theirs"), content=b'{"value": "STOP"}')
                assert answer.status_code in (400, 404), (verb, template, answer.text)
                refused.append(answer.status_code)
        assert len(refused) > 25
        await put(api, "users/bob", manages=["research"])
        for scopes, status in (("read", 404), ("read,admin", 200)):
            token = (await token_of(api, BOB, scopes))["token"]
            assert (await asked(api, "GET", "jobs/alice~theirs", token))[0] == status, scopes
    for scopes, listed in (("read", 0), ("read,admin", 1)):
        token = (await token_of(api, ROOT, scopes))["token"]
        assert len((await asked(api, "GET", "jobs", token))[1]) == listed, "only `admin` brings administrator rights"


@pytest.mark.parametrize("path", ["users/me", "users"])
async def test_a_token_for_jobs_gives_its_user_no_key(api: ApiSite, path: str) -> None:
    token = (await token_of(api, ALICE, "read,jobs,files,admin"))["token"]
    keys = [{"title": "mine", "value": make_ed25519("")[1]}]
    change = {"patch": True, "data": {"username": "alice", "extension": {"sshKeys": keys}}}
    before = (await asked(api, "GET", "keys", ALICE))[1]
    assert (await asked(api, "PUT", path, token, json=change))[0] == 403
    assert (await asked(api, "GET", "keys", ALICE))[1] == before
    assert (await asked(api, "PUT", path, ALICE, json=change))[0] == 200
    assert (await asked(api, "GET", "keys", ALICE))[1] != before


async def test_a_limited_token_enters_no_service(api: ApiSite) -> None:
    async with api.client() as alice:
        assert await submits(alice, "web", "default") == 201
    for scopes in ("read,jobs,files", "ssh"):
        token = (await token_of(api, ALICE, scopes))["token"]
        async with api.client(token) as client:
            answer = await client.get("/", headers={"Host": f"web--http.localhost:{client.base_url.port}"})
        assert (answer.status_code == 401) is (scopes != "ssh"), answer.text[:200]


async def test_what_a_token_makes_expires_with_it_and_it_takes_no_job_key(api: ApiSite) -> None:
    made = await token_of(api, ALICE, "", lifetimeS=3600, name="ci")
    async with api.client() as alice:
        await submits(alice, "keyed", "default")
    async with api.client(made["token"]) as ci:
        key = (await ci.post("/api/v2/keys", json={"publicKey": make_ed25519("")[1]})).json()
        certificate = (
            await ci.post("/api/v2/certificates", json={"publicKey": make_ed25519("")[1], "lifetimeS": 36_000})
        ).json()
        share = (await ci.post("/api/v2/jobs/keyed/shares", json={"user": "bob"})).json()
        taken = await ci.get("/api/v2/jobs/keyed/key")
    (token,) = await api.store.tokens.of_user("alice", api.ctx.clock())
    assert token.expires_at is not None
    end = token.expires_at.isoformat().replace("+00:00", "Z")
    assert [each["expiresAt"][:19] for each in (key, certificate, share)] == [end[:19]] * 3
    assert (taken.status_code, taken.json()["code"]) == (403, "ForbiddenUserError")
    assert token.last_used_at is not None
    assert token.name == "ci"
    later = api.ctx.clock() + timedelta(hours=2)
    assert await api.store.tokens.get(token.digest, later) is None


async def test_the_command_line_makes_lists_and_revokes(pai: Pai, api: ApiSite) -> None:
    made = await pai.json("token", "add", "ci", "--scope", "read", "--scope", "jobs", "--for", "30d", token=ALICE)
    assert (await asked(api, "GET", "tokens/check", made["token"]))[0] == 200
    assert (await pai("list", token=made["token"]))[0] == 0, "to look at jobs takes `read` alone"
    code, shown, _ = await pai("token", "list", token=ALICE)
    (line,) = (each for each in shown.splitlines() if each.startswith(made["id"]))
    assert (code, line.split()[1:4]) == (0, ["ci", "jobs", "read"])
    assert line.count("UTC") == 2, "its end and its last use"
    assert await pai.json("token", "revoke", made["id"], token=ALICE) == {"revoked": made["id"]}
    assert (await asked(api, "GET", "tokens/check", made["token"]))[0] == 401
    code, answer = await asked(api, "POST", "tokens/application", ALICE, params={"scopes": "read,everything"})
    assert (code, answer["code"]) == (400, "InvalidParametersError")
