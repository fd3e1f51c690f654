"""Passwords, and who is an admin by which part of the configuration."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pai_backend.auth.accounts import Accounts, hash_password, password_fits
from pai_backend.auth.users import User
from pai_backend.model.account import Account, Directory

HASHED = hash_password("correct horse")


def test_a_password_fits_its_own_hash_alone() -> None:
    account = Account("alice", password_hash=HASHED)
    assert password_fits(account, "correct horse")
    assert not password_fits(account, "correct horse ")
    assert not password_fits(account, "")
    assert HASHED.startswith("$argon2id$")
    assert hash_password("correct horse") != HASHED, "each has a salt of its own"


@pytest.mark.parametrize("text", ["", "$argon2id$nonsense", "correct horse"])
def test_what_is_no_hash_lets_nobody_in(text: str) -> None:
    assert not password_fits(Account("alice", password_hash=text), text or "x")


def test_a_hash_is_in_no_repr() -> None:
    assert HASHED not in repr(Account("alice", password_hash=HASHED))


@pytest.mark.asyncio
async def test_a_user_with_a_token_is_a_user_and_an_admin_by_either_is_one() -> None:
    accounts = Accounts(
        [Account("alice", email="a@example.org")], [User("root", admin=True), User("alice", admin=True)]
    )
    assert [account.name for account in await accounts.all()] == ["alice", "root"]
    alice = await accounts.get("alice")
    assert alice is not None
    assert (alice.admin, alice.email) == (True, "a@example.org")
    assert await accounts.get("nobody") is None


@pytest.mark.asyncio
async def test_the_configuration_comes_before_users_that_were_added() -> None:
    async def directory() -> Directory:
        return Directory((Account("alice", admin=True), Account("bob", admin=True)))

    accounts = Accounts([Account("alice")], directory=directory)
    assert await accounts.all() == [Account("alice"), Account("bob", admin=True)]
    assert accounts.configured == [Account("alice")]
    assert await accounts.get("alice") == Account("alice")


def hashed(password: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "pai_backend", "hash-password"]
    return subprocess.run(command, input=password, capture_output=True, text=True, timeout=60)


def test_the_command_hashes_what_is_piped_in_and_refuses_what_is_too_short() -> None:
    done = hashed("correct horse\n")
    assert password_fits(Account("alice", password_hash=done.stdout.strip()), "correct horse")
    short = hashed("five5\n")
    assert (short.returncode, short.stdout) == (2, "")
    assert "at least 6 characters" in short.stderr
