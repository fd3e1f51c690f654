"""The audit over HTTP and by ``pai audit``: what every change and entry leaves, who reads it, and that it is whole."""

from __future__ import annotations

import json
import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from pai_backend.access.keys import make_ed25519
from pai_backend.api.operation import OPERATIONS
from pai_backend.api.routes import ROUTES
from pai_backend.store.auditing import AuditFilter
from pai_backend.store.grants import Act
from tests.integration.api.test_deletion import finished_job
from tests.integration.api.test_key_commands import Pai
from tests.integration.api.test_openpai_jobs import submitted
from tests.support.api_site import ALICE, BOB, ROOT, ApiSite
from tests.support.documents import scm_document

CHANGES_NOTHING = {
    ("/api/v2/validate", "post"),
    ("/api/v2/trial", "post"),
}
"""Verbs but GET that read alone."""
DOCUMENT = scm_document("hello")


@pytest.fixture
def pai(api: ApiSite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Pai:
    return Pai(api, monkeypatch, capsys)


async def events(api: ApiSite, token: str = ROOT, **query: object) -> list[dict[str, Any]]:
    """What the audit shows to a user, the oldest first."""
    async with api.client(token) as client:
        answer = await client.get("/api/v2/audit", params={name: str(value) for name, value in query.items()})
    assert answer.status_code == 200, answer.text
    return list(reversed(answer.json()["data"]))


def test_every_verb_that_may_change_something_names_its_event() -> None:
    silent = {
        (route.template, verb)
        for route in ROUTES
        for verb in ("post", "put", "patch", "delete")
        if (described := OPERATIONS.get(getattr(route.handler, verb))) is not None and not described.audit
    }
    assert silent == CHANGES_NOTHING


@pytest.mark.asyncio
async def test_what_users_do_is_told_with_who_from_where_and_by_which_token(api: ApiSite) -> None:
    async with api.client() as alice:
        made = await alice.post("/api/v2/tokens/application?name=ci&scopes=jobs")
        token = made.json()["token"]
    async with api.client(token) as ci:
        sent: list[tuple[str, str, dict[str, Any]]] = [
            ("POST", "/api/v2/jobs", {"content": DOCUMENT}),
            ("PUT", "/api/v2/jobs/hello/tag", {"json": {"value": "blue"}}),
            ("DELETE", "/api/v2/jobs/hello/tag", {"json": {"value": "blue"}}),
            ("PUT", "/api/v2/jobs/hello/executionType", {"json": {"value": "STOP"}}),
            ("PUT", "/api/v2/templates/mine", {"content": DOCUMENT}),
            ("PUT", "/api/v2/drafts/mine", {"content": DOCUMENT}),
            ("POST", "/api/v2/validate", {"content": DOCUMENT}),
        ]
        for number, (method, path, body) in enumerate(sent):
            answer = await ci.request(method, path, headers={"X-Request-Id": f"r{number}"}, **body)
            assert answer.status_code < 300, answer.text
    told = await events(api)
    (uid,) = {event["job"] for event in told if event["job"]}
    assert [(each["type"], each["subject"], each["detail"], each["request"]) for each in told[1:]] == [
        ("job.submitted", "alice~hello", "", "r0"),
        ("job.tagged", "alice~hello", "blue", "r1"),
        ("job.untagged", "alice~hello", "blue", "r2"),
        ("job.execution", "alice~hello", "STOP", "r3"),
        ("template.kept", "mine", "", "r4"),
    ]
    assert {(each["user"], each["by"], each["source"]) for each in told} == {("alice", "alice", "127.0.0.1")}
    (by,) = {each["token"] for each in told[1:]}
    assert (told[0]["type"], told[0]["subject"], told[0]["detail"]) == ("token.made", by, "ci")
    assert len(by) == 16
    assert [each["type"] for each in await events(api, job="hello", by="alice")] == [
        "job.submitted", "job.tagged", "job.untagged", "job.execution",
    ]  # fmt: skip
    assert await events(api, job=uid, types="job.tagged") == told[2:3]


@pytest.mark.asyncio
async def test_what_was_done_to_a_job_is_found_after_its_deletion(api: ApiSite) -> None:
    async with api.client() as alice, api.client(ROOT) as root:
        job = await finished_job(api, alice)
        assert (await root.delete("/api/v2/jobs/alice~hello")).status_code == 202
        assert (await root.get("/api/v2/jobs/alice~hello")).status_code == 404
    for token, named in ((ROOT, job.uid), (ROOT, "alice~hello"), (ALICE, "hello")):
        assert [each["type"] for each in await events(api, token, job=named)] == ["job.submitted", "job.deleted"]
    assert await events(api, BOB, job="alice~hello") == []


@pytest.mark.asyncio
async def test_an_event_is_of_the_job_that_is_changed_and_not_of_others_that_are_named(api: ApiSite) -> None:
    async with api.client() as alice:
        first, second = [await submitted(api, alice, name) for name in ("first", "second")]
        assert (await alice.post("/api/v2/jobs/second/move", json={"before": "first"})).status_code == 202
        third = await alice.post("/api/v2/jobs?secretsOf=second&name=third", content=DOCUMENT)
        assert third.status_code == 202
    (*_, moved, made) = await events(api)
    assert (moved["job"], moved["subject"], moved["detail"]) == (second.uid, "alice~second", "before first")
    assert (made["subject"], made["job"] in (first.uid, second.uid)) == ("alice~third", False)


@pytest.mark.asyncio
async def test_refusals_and_sign_ins_are_told(api: ApiSite) -> None:
    async with api.client() as alice, api.client(BOB) as bob, api.client(ROOT) as root:
        assert (await alice.post("/api/v2/jobs", content=DOCUMENT)).status_code == 202
        assert (await bob.put("/api/v2/jobs/alice~hello/executionType", json={"value": "STOP"})).status_code in (
            403,
            404,
        )
        assert (await root.get("/api/v2/jobs/alice~hello/key")).status_code == 403
        assert (await alice.put("/api/v2/lockouts/bob")).status_code == 403
        assert (
            await root.post("/api/v2/users", json={"username": "eve", "password": "correct horse"})
        ).status_code == 201
        limited = (await alice.post("/api/v2/tokens/application?scopes=read")).json()["token"]
    async with api.client(limited) as reader, api.client(None) as stranger:
        assert (await reader.post("/api/v2/jobs", content=DOCUMENT)).status_code == 403
        for password, code in (("wrong horse", 400), ("correct horse", 200)):
            said = await stranger.post("/api/v2/authn/basic/login", json={"username": "eve", "password": password})
            assert said.status_code == code, said.text
        nobody = await stranger.post("/api/v2/authn/basic/login", json={"username": "my-password", "password": "x"})
        assert nobody.status_code == 400
    told = [(each["type"], each["by"], each["user"], each["result"]) for each in await events(api)]
    assert [each for each in told if each[0] != "token.made"] == [
        ("job.submitted", "alice", "alice", "done"),
        ("job-key.taken", "root", "alice", "ForbiddenUserError"),
        ("user.locked-out", "alice", "alice", "ForbiddenUserError"),
        ("user.added", "root", "eve", "done"),
        ("job.submitted", "alice", "alice", "ForbiddenUserError"),
        ("session.begun", "", "eve", "IncorrectPasswordError"),
        ("session.begun", "eve", "eve", "done"),
    ]
    assert not [each for each in told if "my-password" in each]


@pytest.mark.asyncio
async def test_a_user_reads_what_concerns_them_and_an_administrator_everything(api: ApiSite) -> None:
    async with api.client() as alice, api.client(BOB) as bob, api.client(ROOT) as root:
        await alice.post("/api/v2/jobs", content=DOCUMENT)
        await bob.post("/api/v2/jobs", content=DOCUMENT)
        await root.put("/api/v2/jobs/alice~hello/executionType", json={"value": "STOP"})
        refused = await alice.get("/api/v2/audit/chain")
    assert refused.status_code == 403
    seen = [(each["type"], each["by"]) for each in await events(api, ALICE)]
    assert seen == [("job.submitted", "alice"), ("job.execution", "root")]
    assert len(await events(api)) == 3
    assert await events(api, BOB, user="alice") == []


@pytest.mark.asyncio
async def test_no_secret_is_in_the_audit(api: ApiSite, tmp_path: Path) -> None:
    planted = "planted-Secret-0123456789"
    async with api.client() as alice, api.client(ROOT) as root:
        assert (
            await alice.post("/api/v2/jobs", content=scm_document("hello", jobEnvs={"PASSWORD": planted}))
        ).status_code == 202
        assert (await root.post("/api/v2/users", json={"username": "eve", "password": planted})).status_code == 201
        token = (await alice.post("/api/v2/tokens/application")).json()["token"]
        await alice.delete(f"/api/v2/tokens/{token}")
        await alice.post("/api/v2/keys", json={"publicKey": make_ed25519("")[1]})
    text = json.dumps(await events(api))
    assert planted not in text
    assert token not in text
    assert "token.revoked" in text


@pytest.mark.asyncio
async def test_the_command_line_lists_exports_and_verifies(pai: Pai, api: ApiSite, tmp_path: Path) -> None:
    async with api.client() as alice:
        for number in range(3):
            assert (await alice.post(f"/api/v2/jobs?name=job-{number}", content=DOCUMENT)).status_code == 202
    code, out, _ = await pai("audit", "list", "--type", "job.*", "--limit", "2")
    assert [line.split()[1:3] for line in out.splitlines()] == [
        ["job.submitted", "alice~job-2"], ["job.submitted", "alice~job-1"],
    ]  # fmt: skip
    code, out, _ = await pai("audit", "verify", token=ROOT)
    assert (code, out.splitlines()[0]) == (0, "3 events are whole, up to")
    head, file = out.splitlines()[1], tmp_path / "audit.jsonl"
    code, out, _ = await pai("audit", "export", "-o", file, token=ROOT)
    assert (code, out) == (0, f"wrote 3 events to {file}\n")
    assert (await pai("audit", "verify", file, "--head", head))[0] == 0
    assert (await pai("audit", "export", "-o", file, token=ROOT))[0] == 2, "what is there is not overwritten"
    code, _, err = await pai("audit", "verify")
    assert (code, "administrator" in err) == (2, True)

    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], lines[1].replace("job-1", "job-9"), lines[2]]))
    code, _, err = await pai("audit", "verify", file)
    assert (code, "Event 2 or the one before was changed" in err) == (3, True)
    file.write_text("no event\n")
    code, _, err = await pai("audit", "verify", file)
    assert (code, "line 1" in err) == (2, True)

    changed = sqlite3.connect(tmp_path / "pai.sqlite")
    with changed:
        changed.execute("DELETE FROM audit_events WHERE position = 3")
        changed.execute("UPDATE audit_chain SET position = 2, hash = (SELECT hash FROM audit_events WHERE position = 2)"
                        " WHERE name = 'head'")  # fmt: skip
    changed.close()
    code, _, err = await pai("audit", "verify", token=ROOT)
    assert (code, "Event 3 must be there" in err) == (3, True)
    with pytest.raises(SystemExit):
        await pai("audit", "verify", "--head", "12:34", token=ROOT)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("forgery", "said"),
    [
        ("UPDATE audit_chain SET seal = NULL WHERE name = 'head'", "is not sealed"),
        (
            "INSERT INTO audit_chain (name, position, hash)"
            " SELECT 'root', 2, hash FROM audit_events WHERE position = 2",
            "no event tells that it was cut there",
        ),
    ],
)
async def test_a_removed_seal_and_a_later_beginning_are_found(
    pai: Pai, api: ApiSite, tmp_path: Path, forgery: str, said: str
) -> None:
    async with api.client() as alice:
        for number in range(3):
            assert (await alice.post(f"/api/v2/jobs?name=job-{number}", content=DOCUMENT)).status_code == 202
    changed = sqlite3.connect(tmp_path / "pai.sqlite")
    with changed:
        changed.execute(forgery)
    changed.close()
    code, _, err = await pai("audit", "verify", token=ROOT)
    assert (code, said in err) == (3, True)


@pytest.mark.asyncio
async def test_a_chain_that_the_backend_has_cut_is_whole(pai: Pai, api: ApiSite) -> None:
    async with api.client() as alice:
        for number in range(3):
            assert (await alice.post(f"/api/v2/jobs?name=job-{number}", content=DOCUMENT)).status_code == 202
    now = api.ctx.clock()
    assert await api.store.audit.cut(now + timedelta(days=1), Act("jupyter-pai", now)) == 3
    code, out, _ = await pai("audit", "verify", token=ROOT)
    assert (code, out.splitlines()[0]) == (0, "1 events are whole, up to")


@pytest.mark.asyncio
async def test_a_request_whose_database_is_away_is_not_half_told(api: ApiSite, monkeypatch: pytest.MonkeyPatch) -> None:
    async with api.client() as alice:
        answer = await alice.post("/api/v2/jobs", content=DOCUMENT)
        again = await alice.post("/api/v2/jobs", content=DOCUMENT)
    assert (answer.status_code, again.status_code) == (202, 409)
    assert [each.type for each in await api.store.audit.page(AuditFilter())] == ["job.submitted"]


@pytest.mark.parametrize(
    ("query", "part"),
    [
        ({"limit": 0}, "limit"),
        ({"after": -1}, "after"),
        ({"since": "yesterday"}, "since"),
        ({"everybody": "true"}, "everybody"),
    ],
)
@pytest.mark.asyncio
async def test_questions_that_make_no_sense_are_refused(api: ApiSite, query: dict[str, Any], part: str) -> None:
    async with api.client() as alice:
        answer: httpx.Response = await alice.get("/api/v2/audit", params=query)
    assert (answer.status_code, part in answer.json()["message"]) == (400, True)
