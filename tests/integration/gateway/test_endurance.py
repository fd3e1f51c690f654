"""Long-lived and hostile connections: rekeying, keepalives, silent and lying clients, many at once."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import asyncssh
import pytest
import pytest_asyncio
from asyncssh.constants import (
    MSG_CHANNEL_DATA,
    MSG_CHANNEL_OPEN,
    MSG_CHANNEL_OPEN_CONFIRMATION,
    MSG_REQUEST_FAILURE,
    OPEN_CONNECT_FAILED,
)
from asyncssh.packet import String, UInt32

from pai_backend.access.gateway import server, upstream
from tests.support.ssh_world import World, eventually, login, make_world, program

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with make_world(tmp_path, "sshd") as made:
        yield made


@pytest.mark.parametrize("cipher", ["aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com", "aes256-ctr"])
async def test_data_survives_many_key_exchanges(world: World, cipher: str) -> None:
    data = os.urandom(1_000_000) * 20
    outcome = await world.ssh("cat", stdin=data, options=("-c", cipher, "-o", "RekeyLimit=1M"))
    assert hashlib.sha256(outcome.stdout).digest() == hashlib.sha256(data).digest()


async def test_the_gateway_exchanges_keys_anew_on_both_legs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a leg has let go of since its login is not missed by the exchanges that follow."""
    for module in (server, upstream):
        monkeypatch.setattr(module, "REKEY_BYTES", 1 << 20)
    data = os.urandom(1_000_000) * 5
    async with make_world(tmp_path, "sshd") as world:
        outcome = await world.ssh("cat", stdin=data)
    assert outcome.stdout == data


async def test_both_ends_ask_for_signs_of_life_and_get_their_own_answers(tmp_path: Path) -> None:
    """Keepalives of client and gateway cross; each reply must reach the one who asked."""
    async with make_world(tmp_path, "sshd", keepalive_s=0.1, keepalive_count=3) as world:
        alive = ("-o", "ServerAliveInterval=1", "-o", "ServerAliveCountMax=1")
        outcome = await world.ssh("sleep 3; echo alive", options=alive)
    assert (outcome.status, outcome.stdout) == (0, b"alive\n")


async def test_requests_keep_their_order_among_keepalives(tmp_path: Path) -> None:
    async with make_world(tmp_path, "sshd", keepalive_s=0.02, keepalive_count=50) as world, login(world) as conn:
        for _ in range(100):
            kind, _ = await conn._make_global_request(b"nobody-knows@example.org")
            assert kind == MSG_REQUEST_FAILURE
        assert (await conn.run("echo fine")).stdout == "fine\n"


async def test_a_client_that_fell_silent_is_dropped_and_its_command_ended(tmp_path: Path) -> None:
    async with make_world(tmp_path, "sshd", keepalive_s=0.2, keepalive_count=2) as world:
        ended = world.path / "ended"
        command = f"trap 'touch {ended}' EXIT HUP; echo started; cat; true"
        async with program(world.argv(command)) as process:
            assert process.stdout is not None
            async with asyncio.timeout(60):
                await process.stdout.readline()
            process.send_signal(signal.SIGSTOP)
            await eventually(ended.exists, "the command of a silent client goes on")


async def test_many_logins_at_once(world: World) -> None:
    outcomes = await asyncio.gather(*(world.ssh(f"echo {number}") for number in range(24)))
    assert [outcome.stdout for outcome in outcomes] == [b"%d\n" % number for number in range(24)]


async def test_an_unknown_kind_of_channel_is_refused_by_the_task(world: World) -> None:
    async with login(world) as conn:
        chan = asyncssh.SSHTCPChannel[bytes](conn, asyncio.get_running_loop(), None, "strict", 1 << 16, 1 << 15)
        with pytest.raises(asyncssh.ChannelOpenError) as caught:
            await chan._open(b"nobody-knows@example.org")
        # OpenSSH's own answer (RFC 4254 would rather have OPEN_UNKNOWN_CHANNEL_TYPE)
        assert (caught.value.code, caught.value.reason) == (OPEN_CONNECT_FAILED, "open failed")


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (MSG_CHANNEL_DATA, UInt32(12345) + String(b"to a channel that is not there")),
        (MSG_CHANNEL_DATA, b"\x00"),
        (MSG_CHANNEL_OPEN, String(b"session") + b"\x00"),
        (MSG_CHANNEL_OPEN, b"\xff\xff\xff\xff"),
        (MSG_CHANNEL_OPEN_CONFIRMATION, UInt32(7) * 4),
        (80, b""),
        (101, b"?"),
    ],
    ids=["no such channel", "cut short", "open cut short", "length that lies", "answer unasked", "empty", "unknown"],
)
async def test_a_client_that_breaks_the_protocol_hurts_only_itself(world: World, kind: int, payload: bytes) -> None:
    async with login(world) as good, login(world) as bad:
        assert (await bad.run("echo in")).stdout == "in\n"
        bad.send_packet(kind, payload)
        if kind != 101:  # answered by "unimplemented", as RFC 4253 §11.4 wants
            await asyncio.wait_for(bad.wait_closed(), 60)
        assert (await good.run("echo in")).stdout == "in\n"


async def test_a_lying_answer_nobody_asked_for_ends_the_connection(world: World) -> None:
    async with login(world) as bad:
        assert (await bad.run("echo in")).stdout == "in\n"
        bad.send_packet(81, b"")
        await asyncio.wait_for(bad.wait_closed(), 60)
