"""What administrators announce: who may, who is told where, and when it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_backend.store.auditing import AuditFilter
from tests.integration.api.test_key_commands import Pai
from tests.support.api_site import ALICE, BOB, ROOT, ApiSite

TEXT = "The machines of rack 2 are off on Friday from 9 to 18.\nSave your work."
PATH = "/api/v2/announcement"


@pytest.fixture
def pai(api: ApiSite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Pai:
    return Pai(api, monkeypatch, capsys)


@pytest.mark.asyncio
async def test_all_users_are_told_where_they_begin_until_it_is_ended(pai: Pai) -> None:
    assert (await pai("announce"))[1] == "Nothing is announced.\n"
    assert (await pai("list"))[2] == ""
    code, out, _ = await pai("announce", TEXT, "--for", "2d", token=ROOT)
    assert (code, out.startswith("Announced by root until ")) == (0, True)
    for user in (ALICE, BOB):
        _, out, err = await pai("list", token=user)
        assert err.endswith(f": {TEXT}\n")
        assert TEXT not in out  # what programs read is as before
        assert (await pai("announce", token=user))[1] == err
    await pai("announce", "Another one.", token=ROOT)
    assert (await pai("list"))[2] == "Announced by root: Another one.\n"
    assert (await pai("announce", "--end", token=ROOT))[1] == "Nothing is announced.\n"
    assert (await pai("list"))[2] == ""


@pytest.mark.asyncio
async def test_administrators_alone_announce_and_the_audit_says_who_did(pai: Pai, api: ApiSite) -> None:
    for words in (["announce", "Lies."], ["announce", "--end"]):
        code, _, err = await pai(*words)
        assert code != 0
        assert "administrator" in err
    await pai("announce", TEXT, token=ROOT)
    await pai("announce", "--end", token=ROOT)
    found = await api.store.audit.page(AuditFilter(types=("announcement.*",), limit=10))
    told = [(each.type, each.by, each.detail, each.result) for each in reversed(found) if each.by == "root"]
    assert told == [("announcement.made", "root", TEXT, "done"), ("announcement.ended", "root", "", "done")]


@pytest.mark.asyncio
async def test_a_maintenance_says_from_when_on_no_job_starts(pai: Pai, api: ApiSite) -> None:
    code, out, _ = await pai("announce", TEXT, "--no-starts", "2030-01-02T03:04", "--for", "4h", token=ROOT)
    assert code == 0
    assert "\nFrom 2030-01-02 03:04:00 on no job starts; running jobs go on.\n" in out
    assert " until 2030-01-02 07:04:00: " in out
    assert out == (await pai("list"))[2]
    (found,) = await api.store.audit.page(AuditFilter(types=("announcement.made",)))
    assert found.detail.startswith("no job starts from 2030-01-0")
    document = (Path(__file__).parents[3] / "examples" / "scm-helloworld.json").read_bytes()
    async with api.client(ALICE) as client:

        async def outcome() -> object:
            return (await client.post("/api/v2/trial", content=document)).raise_for_status().json()["outcome"]

        assert await outcome() == "starts"
        await pai("announce", TEXT, "--no-starts", "now", token=ROOT)
        assert await outcome() == "waits"
        for wrong in ("2030-01-02T03:04", "tomorrow"):
            body = {"text": TEXT, "noStartsFrom": wrong}
            async with api.client(ROOT) as root:
                assert (await root.put(PATH, json=body)).status_code == 400, "a time without a zone"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "words",
    [
        ["--end", "and a text"],
        ["--for", "2d"],
        ["--end", "--no-starts", "now"],
        ["--no-starts", "now"],
        ["--end", "--for", "2d"],
        [" \n "],
        ["\x1b[31mred"],
        ["a" * 2001],
    ],
)
async def test_what_makes_no_announcement_changes_nothing(pai: Pai, words: list[str]) -> None:
    await pai("announce", TEXT, token=ROOT)
    assert (await pai("announce", *words, token=ROOT))[0] == 2
    assert TEXT in (await pai("announce"))[1]


@pytest.mark.asyncio
async def test_a_token_that_may_not_read_lists_nothing_more_and_submits_as_before(pai: Pai, api: ApiSite) -> None:
    async with api.client(ROOT) as root:
        (await root.put(PATH, json={"text": TEXT})).raise_for_status()
    async with api.client(ALICE) as client:
        made = await client.post("/api/v2/tokens/application", params={"scopes": "jobs"})
    token = made.raise_for_status().json()["token"]
    document = Path(__file__).parents[3] / "examples" / "scm-helloworld.json"
    code, _, err = await pai("submit", document, "--name", "quiet", token=token)
    assert (code, TEXT in err) == (0, False)
    code, _, err = await pai("submit", document, "--name", "told")
    assert (code, TEXT in err) == (0, True)
