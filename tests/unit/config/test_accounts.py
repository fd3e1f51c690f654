"""``engine.accounts``: what of it can be told without looking at the machine."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pai_backend.config.settings import Settings

TOKENS = [{"user": "bob", "token": "0123456789abcdef"}]


def settings(accounts: dict[str, Any], **changes: Any) -> Settings:
    values = {"user": "ann", "api": {"tokens": TOKENS}, "engine": {"accounts": accounts}, **changes}
    return Settings.model_validate(values)


@pytest.mark.parametrize(
    "accounts",
    [{"map": {"ann": "a", "bob": "b"}}, {"pool": ["a", "b"]}, {"first_uid": 700000, "count": 2}],
    ids=["map", "pool", "range"],
)
def test_users_with_accounts_need_not_trust_each_other(accounts: dict[str, Any]) -> None:
    assert settings(accounts).engine.accounts.given
    assert settings(accounts).known_users == ("ann", "bob")


def test_a_range_is_a_pool_of_uids() -> None:
    given = settings({"first_uid": 700000, "count": 3}).engine.accounts
    assert given.for_all == ("700000", "700001", "700002")


REFUSED = {
    "nobody has an account": ({}, "engine.trust_all_users: this backend knows 2 users"),
    "a user is missing": ({"map": {"ann": "a"}}, "engine.accounts.map: there is no account for bob; add one"),
    "two kinds": ({"map": {"ann": "a", "bob": "b"}, "pool": ["c"]}, "takes one of map, pool"),
    "half a range": ({"first_uid": 700000}, "needs first_uid and count together"),
    "the other half": ({"count": 10}, "needs first_uid and count together"),
}


@pytest.mark.parametrize(("accounts", "said"), REFUSED.values(), ids=REFUSED)
def test_what_leaves_users_without_an_account_is_refused(accounts: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        settings(accounts)
    assert said in str(refusal.value)


def test_pods_have_no_accounts() -> None:
    kubernetes = {"pods": {"runtime_image": "example/runtime:1"}}
    engine = {"kind": "kubernetes", "accounts": {"pool": ["a", "b"]}}
    with pytest.raises(ValidationError, match=r"engine\.accounts: only tasks of the local engine run in accounts"):
        Settings.model_validate({"user": "ann", "engine": engine, "kubernetes": kubernetes})
