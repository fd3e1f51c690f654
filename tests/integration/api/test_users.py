"""Users who are added, changed and removed while the backend runs: over REST, and by ``pai user``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pai_backend.access.keys import make_ed25519
from pai_backend.auth.accounts import Accounts
from pai_backend.auth.identity import Identity
from pai_backend.auth.tokens import TokenTable
from pai_backend.model.job import Phase, State
from pai_backend.store.auditing import AuditFilter
from tests.integration.api.test_identity import everything_in
from tests.integration.api.test_key_commands import Pai
from tests.integration.api.test_openpai_jobs import saved, submitted
from tests.support.api_site import ALICE, ROOT, ApiSite

pytestmark = pytest.mark.asyncio

PASSWORD = "correct horse"


@pytest.fixture
def pai(api: ApiSite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Pai:
    return Pai(api, monkeypatch, capsys)


async def asked(api: ApiSite, method: str, path: str, token: str = ROOT, **how: Any) -> tuple[int, Any]:
    """Status and answer."""
    async with api.client(token) as client:
        answer = await client.request(method, f"/api/v2/{path}", **how)
    return answer.status_code, answer.json() if answer.content else None


async def added(api: ApiSite, name: str = "eve", **more: Any) -> str:
    """A session of a new user."""
    code, answer = await asked(api, "POST", "users", json={"username": name, "password": PASSWORD, **more})
    assert code == 201, answer
    return await signed_in(api, name)


async def signed_in(api: ApiSite, name: str, password: str = PASSWORD) -> str:
    code, answer = await asked(api, "POST", "authn/basic/login", json={"username": name, "password": password})
    assert code == 200, answer
    return str(answer["token"])


async def refusal(api: ApiSite, method: str, path: str, token: str = ROOT, **how: Any) -> tuple[int, str]:
    code, answer = await asked(api, method, path, token, **how)
    return code, answer["code"]


async def test_a_user_who_is_added_signs_in_submits_and_has_things_shared(api: ApiSite) -> None:
    session = await added(api, email="eve@example.org")
    code, me = await asked(api, "GET", "users/me", session)
    assert (code, me["username"], me["email"], me["admin"]) == (200, "eve", "eve@example.org", False)
    async with api.client(session) as eve, api.client(ALICE) as alice:
        assert (await submitted(api, eve, "hers")).user == "eve"
        job = await submitted(api, alice, "shared")
        share = await alice.post(f"/api/v2/jobs/{job.uid}/shares", json={"user": "eve"})
    assert share.status_code in (200, 201), share.text
    assert [each["username"] for each in (await asked(api, "GET", "users"))[1]] == ["alice", "bob", "eve", "root"]


async def test_another_process_of_the_backend_knows_a_change_within_a_second(api: ApiSite) -> None:
    now = [0.0]
    other = Identity(api.store, TokenTable([]), Accounts([], (), api.store.groups.directory, clock=lambda: now[0]))
    assert await other.accounts.get("eve") is None
    session = await added(api)
    now[0] += 1
    user = await other.of_token(session)
    assert user is not None
    assert not user.admin
    await asked(api, "PUT", "users/eve", json={"data": {"admin": True}})
    now[0] += 1
    user = await other.of_token(session)
    assert user is not None
    assert user.admin
    assert (await asked(api, "DELETE", "users/eve"))[0] == 204
    now[0] += 1
    assert await other.of_token(session) is None


async def test_only_administrators_add_change_and_remove_others(api: ApiSite) -> None:
    session = await added(api)
    new = {"username": "mallory", "password": PASSWORD, "admin": True}
    for method, path, how in (
        ("POST", "users", {"json": new}),
        ("PUT", "users/eve", {"json": {"data": {"admin": True}}}),
        ("PUT", "users/me", {"json": {"data": {"admin": True}}}),
        ("PUT", "users/root", {"json": {"data": {"newPassword": "mine from now on"}}}),
        ("DELETE", "users/eve", {}),
        ("DELETE", "users/me", {}),
    ):
        refused = await refusal(api, method, path, session, **how)
        assert refused == (403, "ForbiddenUserError"), (method, path)
    application = (await asked(api, "POST", "tokens/application", ROOT))[1]["token"]
    assert await refusal(api, "POST", "users", application, json=new) == (403, "ForbiddenUserError")
    assert await refusal(api, "DELETE", "users/root") == (400, "InvalidParametersError")


@pytest.mark.parametrize("name", ["", "me", "../etc", "a b", "-x", ".hidden", "é", "a/b", "x" * 65])
async def test_a_name_that_is_no_name_is_refused(api: ApiSite, name: str) -> None:
    body = {"username": name, "password": PASSWORD}
    assert await refusal(api, "POST", "users", json=body) == (400, "InvalidParametersError")


async def test_users_of_the_configuration_are_its_own(api: ApiSite) -> None:
    body = {"username": "alice", "password": PASSWORD}
    assert await refusal(api, "POST", "users", json=body) == (409, "ConflictUserError")
    change = {"data": {"admin": True}}
    assert await refusal(api, "PUT", "users/alice", json=change) == (400, "NotImplementedError")
    assert await refusal(api, "DELETE", "users/alice") == (400, "NotImplementedError")


async def test_users_change_their_own_password_and_other_sessions_end(api: ApiSite) -> None:
    session, other = await added(api), await signed_in(api, "eve")
    new = {"newPassword": "another horse"}
    assert await refusal(api, "PUT", "users/me", session, json={"data": new}) == (400, "IncorrectPasswordError")
    wrong = {"data": {**new, "oldPassword": "wrong horse"}}
    assert await refusal(api, "PUT", "users/me", session, json=wrong) == (400, "IncorrectPasswordError")
    code, _ = await asked(api, "PUT", "users/me", session, json={"data": {**new, "oldPassword": PASSWORD}})
    assert code == 200
    assert (await asked(api, "GET", "users/me", session))[0] == 200
    assert (await asked(api, "GET", "users/me", other))[0] == 401
    await signed_in(api, "eve", "another horse")
    old = {"username": "eve", "password": PASSWORD}
    assert await refusal(api, "POST", "authn/basic/login", json=old) == (400, "IncorrectPasswordError")


async def test_a_new_password_by_an_administrator_ends_everything_that_the_user_signed_in(api: ApiSite) -> None:
    session = await added(api)
    application = (await asked(api, "POST", "tokens/application", session))[1]["token"]
    code, _ = await asked(api, "PUT", "users/eve", json={"data": {"newPassword": "another horse"}})
    assert code == 200
    for token in (session, application):
        assert (await asked(api, "GET", "users/me", token))[0] == 401


async def test_with_a_user_goes_what_lets_them_in_and_their_name_stays_theirs(api: ApiSite) -> None:
    session = await added(api)
    _, key = make_ed25519("eve")
    assert (await asked(api, "POST", "keys", session, json={"publicKey": key}))[0] in (200, 201)
    async with api.client(session) as eve:
        job = await submitted(api, eve, "hers")
    assert await refusal(api, "DELETE", "users/eve") == (409, "UserHasJobsError")
    assert (await asked(api, "GET", "users/me", session))[0] == 200, "a refusal changes nothing"
    await saved(api, job, {"state": State.STOPPED, "phase": Phase.ENDED, "ended_at": job.submitted_at})
    assert (await asked(api, "DELETE", "users/eve"))[0] == 204
    assert (await asked(api, "GET", "users/me", session))[0] == 401
    assert await api.store.user_keys.registered("eve") == []
    await api.store.grants.keep_accounts({"alice": False, "bob": False, "root": True})
    assert await api.store.grants.shut_out(["eve", "bob"]) == {"eve": False}

    restart = {"value": "START"}
    path = f"jobs/{job.uid}/executionType"
    assert await refusal(api, "PUT", path, json=restart) == (403, "ReadOnlyJobError"), "nobody is there to run it"

    again = {"username": "eve", "password": PASSWORD}
    assert await refusal(api, "POST", "users", json=again) == (409, "ConflictUserError")
    await added(api, again=True)
    assert (await asked(api, "GET", "users/me", session))[0] == 401, "what was theirs before stays ended"
    events = await api.store.audit.page(AuditFilter("eve"))
    told = [(event.type, event.by) for event in reversed(events) if event.type.partition(".")[0] in ("user", "key")]
    assert told == [
        ("user.added", "root"),
        ("key.registered", "eve"),
        ("key.removed", "root"),
        ("user.removed", "root"),
        ("user.added", "root"),
    ]


async def test_no_second_user_where_one_could_read_all_that_the_first_has(api: ApiSite) -> None:
    object.__setattr__(api.ctx, "users_share_rights", True)
    body = {"username": "eve", "password": PASSWORD}
    code, answer = await asked(api, "POST", "users", json=body)
    assert (code, answer["code"]) == (403, "ForbiddenUserError")
    assert "engine.accounts" in answer["hint"]


async def test_passwords_are_kept_as_hashes_and_told_to_nobody(api: ApiSite, tmp_path: Path) -> None:
    session = await added(api)
    everything = everything_in(tmp_path)
    assert PASSWORD.encode() not in everything
    for path in ("users", "users/eve", "audit/chain"):
        text = json.dumps((await asked(api, "GET", path))[1])
        assert "argon2" not in text, path
    assert "argon2" not in json.dumps((await asked(api, "GET", "users/me", session))[1])


async def test_the_command_line_adds_changes_and_removes(pai: Pai, api: ApiSite) -> None:
    made = await pai.json("user", "add", "eve", "--may-keep-password", "--email", "eve@example.org", token=ROOT)
    session = await signed_in(api, "eve", made["password"])
    changed = await pai.json("user", "set", "eve", "--may-keep-password", "--admin", "--new-password", token=ROOT)
    assert changed["admin"]
    assert (await asked(api, "GET", "users/me", session))[0] == 401
    session = await signed_in(api, "eve", changed["password"])
    code, shown, _ = await pai("user", "list", token=session)
    assert code == 0
    assert ["eve", "eve@example.org", "administrator"] in [line.split()[:3] for line in shown.splitlines()]
    code, _, error = await pai("user", "set", "eve", token=ROOT)
    assert (code, "Nothing is to be changed" in error) == (2, True)
    code, _, error = await pai("user", "remove", "eve", token=ROOT)
    assert (code, "--yes" in error) == (2, True)
    removed = await pai.json("user", "remove", "eve", "--yes", token=ROOT)
    assert removed == {"removed": "eve", "transferredTo": None}


async def test_a_file_of_users_is_looked_at_first_and_then_imported(pai: Pai, api: ApiSite, tmp_path: Path) -> None:
    file = tmp_path / "users.csv"
    file.write_text("\ufeffName,Email,Admin\nalice,,\neve,eve@example.org,no\nolga,,yes\n", encoding="utf-8")
    planned = await pai.json("user", "import", file, "--dry-run", token=ROOT)
    assert [each["result"] for each in planned] == ["exists", "would be added", "would be added"]
    assert len((await asked(api, "GET", "users"))[1]) == 3, "nothing was done"
    done = {each["username"]: each for each in await pai.json("user", "import", file, token=ROOT)}
    assert [each["result"] for each in done.values()] == ["exists", "added", "added"]
    session = await signed_in(api, "olga", done["olga"]["password"])
    assert (await asked(api, "GET", "users/me", session))[1]["admin"] is True
    repeated = await pai.json("user", "import", file, token=ROOT)
    assert [each["result"] for each in repeated] == ["exists"] * 3


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "line 1"),
        ("who,email\nx,y\n", "line 1"),
        ("name,email\nx,y\n,z\n", "line 3"),
        ("name\nx,y\n", "line 2"),
    ],
)
async def test_a_file_that_is_wrong_adds_nobody_and_says_where(
    pai: Pai, api: ApiSite, tmp_path: Path, text: str, place: str
) -> None:
    file = tmp_path / "users.csv"
    file.write_text(text)
    code, _, error = await pai("user", "import", file, token=ROOT)
    assert code == 2
    assert f"{file}, {place}" in error
    assert len((await asked(api, "GET", "users"))[1]) == 3
