"""``pai notify`` against a running API: what it takes, what it shows, and what it never shows."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from pai_backend.store.auditing import AuditFilter
from tests.integration.api.test_key_commands import Pai
from tests.support.api_site import ALICE, BOB, ROOT, ApiSite, running_api

HOOK = "https://hooks.example.org/services/T0/not-for-others"
USUAL = ["budget", "failed", "gpus-idle", "idle", "kept", "preempted", "succeeded"]
V2 = """\
protocolVersion: 2
name: told
type: job
prerequisites: [{type: dockerimage, name: i, uri: u}]
taskRoles:
  worker: {dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 128, gpu: 0}, commands: ["true"]}
extras: {jobStatusChangeNotification: {failed: true}}
"""


@pytest.fixture
def pai(api: ApiSite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Pai:
    return Pai(api, monkeypatch, capsys)


@pytest.mark.asyncio
async def test_users_add_see_and_remove_their_own(pai: Pai, api: ApiSite, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await pai.json("notify", "add", "slack", HOOK)
    assert (made["place"], made["news"], made["sentAt"]) == ("hooks.example.org", USUAL, None)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{HOOK}\nwhat-both-know\n"))
    hook = await pai.json("notify", "add", "webhook", "-", "--secret-stdin", "--on", "waited", "--waited", "2h")
    assert (hook["news"], hook["waitedS"]) == (["waited"], 7200)
    shown = await pai("notify", "list")
    assert [made["id"] in shown[1], hook["id"] in shown[1], "none yet" in shown[1]] == [True] * 3
    assert await pai.json("notify", "list", token=BOB) == []
    assert (await pai("notify", "remove", made["id"], token=BOB))[0] == 2
    assert await pai.json("notify", "remove", made["id"]) == {"removed": made["id"]}
    assert [each["id"] for each in await pai.json("notify", "list")] == [hook["id"]]
    found = await api.store.audit.page(AuditFilter(types=("notification.*",), result="done"))
    assert [(each.type, each.by, each.detail) for each in reversed(found)] == [
        ("notification.added", "alice", "slack: hooks.example.org"),
        ("notification.added", "alice", "webhook: hooks.example.org"),
        ("notification.removed", "alice", ""),
    ]
    told = f"{shown} {found} {await api.store.notifications.of_user('alice')}"
    assert "not-for-others" not in told
    assert "what-both-know" not in told


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["slack"], "http or https URL"),
        (["slack", "ftp://x/y"], "http or https URL"),
        (["webhook", "https://ann:secret@x/y"], "without a user"),
        (["webhook", "https://"], "http or https URL"),
        (["mail", "ann@example.org"], "sends no mail"),
        (["mail", "ann"], "one mail address"),
    ],
)
async def test_what_leads_nowhere_is_refused(pai: Pai, words: list[str], why: str) -> None:
    code, _, err = await pai("notify", "add", *words)
    assert code == 2
    assert why in err
    assert "secret@" not in err
    assert await pai.json("notify", "list") == []


@pytest.mark.asyncio
async def test_a_body_is_refused_without_what_is_secret_in_it(api: ApiSite) -> None:
    async with api.client(ALICE) as client:
        for body in (
            {"channel": "slack", "to": HOOK, "secret": "s3cret-text"},
            {"channel": "webhook", "to": HOOK * 60, "secret": "s3cret-text"},
            {"channel": "webhook", "to": HOOK, "secret": "s3cret-text" * 30},
            {"channel": "webhook", "to": HOOK, "secret": "s3cret-text", "news": ["test"]},
            {"channel": "webhook", "to": HOOK, "secret": "s3cret-text", "unknown": 1},
        ):
            answer = await client.post("/api/v2/notifications", json=body)
            assert (answer.status_code, answer.json()["code"]) == (400, "InvalidParametersError")
            assert "s3cret-text" not in answer.text
            assert "not-for-others" not in answer.text
        for _ in range(20):
            (await client.post("/api/v2/notifications", json={"channel": "slack", "to": HOOK})).raise_for_status()
        assert (await client.post("/api/v2/notifications", json={"channel": "slack", "to": HOOK})).status_code == 403


@pytest.mark.asyncio
async def test_mail_goes_to_the_accounts_address_and_to_the_domains_that_may_be(pai: Pai, api: ApiSite) -> None:
    site = replace(api.ctx.site, sends_mail=True, mail_domains=("example.org",))
    object.__setattr__(api.ctx, "site", site)
    code, _, err = await pai("notify", "add", "mail")
    assert (code, "Your account has no mail address." in err) == (2, True)
    assert (await pai.json("notify", "add", "mail", "ann@EXAMPLE.org"))["place"] == "ann@EXAMPLE.org"
    code, _, err = await pai("notify", "add", "mail", "ann@elsewhere.example")
    assert (code, "It does to example.org." in err) == (2, True)


@pytest.mark.asyncio
async def test_what_a_token_made_ends_with_it(pai: Pai, api: ApiSite) -> None:
    async with api.client(ALICE) as client:
        made = (await client.post("/api/v2/tokens/application", params={"scopes": "jobs,read"})).json()
    await pai.json("notify", "add", "slack", HOOK, token=made["token"])
    kept = await pai.json("notify", "add", "slack", HOOK)
    assert len(await pai.json("notify", "list")) == 2
    await pai.json("token", "revoke", made["id"])
    assert [each["id"] for each in await pai.json("notify", "list")] == [kept["id"]]


@pytest.mark.asyncio
async def test_a_removed_user_is_told_nothing_more(tmp_path, monkeypatch, capsys) -> None:  # type: ignore[no-untyped-def]
    async with running_api(tmp_path) as api:
        pai = Pai(api, monkeypatch, capsys)
        monkeypatch.setattr("sys.stdin", io.StringIO("a-long-password\n"))
        await pai("user", "add", "eve", "--password-stdin", "--may-keep-password", token=ROOT)
        async with api.client() as client:
            answer = await client.post(
                "/api/v2/authn/basic/login", json={"username": "eve", "password": "a-long-password"}
            )
        await pai.json("notify", "add", "slack", HOOK, token=answer.json()["token"])
        assert len(await api.store.notifications.of_user("eve")) == 1
        await pai("user", "remove", "eve", "--yes", token=ROOT)
        assert await api.store.notifications.of_user("eve") == []


@pytest.mark.asyncio
async def test_who_is_not_told_is_warned_of_a_document_that_asks_for_it(pai: Pai, api: ApiSite) -> None:
    async with api.client(ALICE) as client:

        async def warned() -> list[str]:
            answer = await client.post("/api/v2/validate", content=V2.encode())
            return [each["code"] for each in answer.json()["warnings"]]

        assert await warned() == ["notification-unused"]
        await pai.json("notify", "add", "slack", HOOK)
        assert await warned() == []


@pytest.mark.asyncio
async def test_a_test_that_did_not_arrive_says_why(pai: Pai, api: ApiSite, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await pai.json("notify", "add", "slack", HOOK)
    assert (await pai("notify", "test", "00000000"))[0] == 2
    monkeypatch.setattr("jupyter_pai.commands.notify.ANSWER_S", 0.0)
    code, _, err = await pai("notify", "test", made["id"])
    assert (code != 0, "has not been sent yet" in err) == (True, True), "no controller runs here"
    (message,) = await api.store.notices.due(datetime.now(UTC), datetime.now(UTC), 9)
    assert [(each.job, each.text.split(".")[0]) for each in message.notices] == [("", "This is a test")]
