"""Where tasks run as accounts of their users, a user without one is refused before anything is stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_backend.engine.local.accounts import SystemAccounts
from tests.attack.site import document
from tests.support.api_site import BOB, running_api

pytestmark = pytest.mark.asyncio


async def test_a_user_without_an_account_submits_and_writes_nothing(tmp_path: Path) -> None:
    accounts = SystemAccounts(tmp_path / "engine", named={"alice": "nobody"}, pool=())
    async with running_api(tmp_path, task_accounts=accounts) as site, site.client(BOB) as client:
        submitted = await client.post("/api/v2/jobs", content=document("train", "true"))
        written = await client.put("/api/v2/fs/bob/a.txt", content=b"a")
        for answer in (submitted, written):
            assert (answer.status_code, answer.json()["code"]) == (403, "ForbiddenUserError")
            said = "bob has no account for tasks on this machine; add them to engine.accounts.map."
            assert (answer.json()["message"], answer.json()["hint"]) == (said, "Ask the administrator.")
        assert (await client.get("/api/v2/jobs")).json() == []
        assert not (tmp_path / "fs").exists()
