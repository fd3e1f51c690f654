"""Users who were added, on both databases."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pai_backend.model.account import Account
from pai_backend.model.errors import NoSuchUser, UserExists, UserHasJobs
from pai_backend.store.auditing import AuditFilter
from pai_backend.store.base import AccessToken, NewEvent
from pai_backend.store.grants import Act, UserUpdate
from pai_backend.store.sql import Store
from pai_backend.testing.builders import T0, make_job

pytestmark = pytest.mark.asyncio

EVE = Account("eve", email="eve@example.org", password_hash="$argon2id$x")
ACT = Act("root", T0, "192.0.2.7")


async def add_token(store: Store, digest: str, *, application: bool = False) -> None:
    await store.tokens.add(AccessToken(digest, "eve", application, T0, T0 + timedelta(days=1)))


async def test_all_processes_know_users_who_were_added_and_the_configuration_comes_first(store: Store) -> None:
    grants = store.grants
    await grants.keep_accounts({"alice": False, "root": True})
    await grants.add_user(EVE, ACT, again=False)
    await grants.add_user(Account("olga", admin=True), ACT, again=False)
    assert (await store.groups.directory()).users == (EVE, Account("olga", admin=True))
    assert await grants.shut_out(["alice", "eve", "olga", "nobody"]) == {"nobody": False}
    assert await grants.admins(["alice", "eve", "olga", "root"]) == {"olga", "root"}
    await grants.keep_accounts({"alice": False, "olga": False, "root": True})
    assert await grants.admins(["olga", "root"]) == {"root"}
    await grants.keep_accounts({"alice": False, "root": True})
    assert await grants.admins(["olga"]) == {"olga"}, "what the configuration says no more is as it was added"


async def test_a_name_is_given_once(store: Store) -> None:
    await store.grants.keep_accounts({"alice": False})
    await store.grants.add_user(EVE, ACT, again=False)
    for name in ("alice", "eve", "Eve", "ALICE"):
        with pytest.raises(UserExists):
            await store.grants.add_user(Account(name), ACT, again=True)


async def test_a_new_password_ends_tokens_but_the_one_that_asks(store: Store) -> None:
    await store.grants.add_user(EVE, ACT, again=False)
    mine, other, program = ("1" * 64, "2" * 64, "3" * 64)
    for digest in (mine, other, program):
        await add_token(store, digest, application=digest == program)
    await store.grants.change_user("eve", UserUpdate(email="e@example.org"), ACT, session="")
    assert (await store.groups.directory()).users[0].email == "e@example.org"
    assert len(await store.tokens.of_user("eve", T0)) == 3
    await store.grants.change_user("eve", UserUpdate(password_hash="$argon2id$y"), ACT, session=mine)
    assert [token.digest for token in await store.tokens.of_user("eve", T0)] == [mine]
    (newest, *_) = await store.audit.page(AuditFilter("eve"))
    assert (newest.type, newest.by, newest.detail) == ("user.changed", "root", "password")


async def test_a_user_with_active_jobs_stays_whole(store: Store) -> None:
    await store.grants.add_user(EVE, ACT, again=False)
    await add_token(store, "1" * 64)
    await store.jobs.submit(make_job("hers", user="eve"), b"", "", "", [NewEvent("job.submitted")])
    with pytest.raises(UserHasJobs, match="hers"):
        await store.grants.remove_user("eve", ACT)
    assert (await store.groups.directory()).users == (EVE,)
    assert len(await store.tokens.of_user("eve", T0)) == 1


async def test_a_removed_name_is_given_again_only_to_the_same_person(store: Store) -> None:
    await store.grants.add_user(EVE, ACT, again=False)
    await add_token(store, "1" * 64)
    await store.grants.remove_user("eve", ACT)
    assert await store.tokens.of_user("eve", T0) == []
    with pytest.raises(NoSuchUser):
        await store.grants.remove_user("eve", ACT)
    with pytest.raises(UserExists, match="has been"):
        await store.grants.add_user(EVE, ACT, again=False)
    await store.grants.add_user(EVE, ACT, again=True)
    assert (await store.groups.directory()).users == (EVE,)
