"""Keys in security tokens: OpenSSH logs in with them, and only when somebody has touched the token."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from tests.support.ssh_world import Outcome, World, make_world
from tests.support.token_agent import TOUCHED, VERIFIED, Key, Token, token_agent

pytestmark = pytest.mark.asyncio

KEYS: dict[str, Callable[[], Key]] = {
    "ed25519": ed25519.Ed25519PrivateKey.generate,
    "ecdsa": lambda: ec.generate_private_key(ec.SECP256R1()),
}


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with make_world(tmp_path) as made:
        yield made


@pytest.mark.parametrize("kind", KEYS)
async def test_a_token_opens_what_is_its_users_when_it_was_touched(world: World, kind: str) -> None:
    token = Token(KEYS[kind]())
    registered = world.store.register("alice", token.line)
    world.key = world.path / "token.pub"
    world.key.write_text(token.line + "\n")

    async def login() -> Outcome:
        return await world.ssh("echo in", options=("-o", f"IdentityAgent={world.path / 'agent'}"))

    async with token_agent(token, world.path / "agent"):
        for flags in (TOUCHED, TOUCHED | VERIFIED):
            token.flags = flags
            assert (await login()).stdout == b"in\n"
        for flags in (0, VERIFIED):
            token.flags = flags
            outcome = await login()
            assert (outcome.status, outcome.stdout) == (255, b""), "nobody has touched it"
            assert "Permission denied (publickey)" in outcome.stderr
        token.flags, token.application = TOUCHED, "ssh:elsewhere"
        assert "Permission denied (publickey)" in (await login()).stderr, "it was signed for another application"
        token.application = "ssh:"
        assert (await login()).stdout == b"in\n"
        world.store.unregister(registered.fingerprint)
        assert "Permission denied (publickey)" in (await login()).stderr
        assert token.counter == 7, "every refusal was of a signature"
