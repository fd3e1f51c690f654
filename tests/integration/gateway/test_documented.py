"""A release of asyncssh that lacks what is not documented: logins go on, by its documented interface (ADR 0032)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncssh
import pytest
import pytest_asyncio

from pai_backend.engine.asyncssh_private import required
from tests.integration.gateway import test_jumps as jumps
from tests.integration.gateway import test_rights as rights
from tests.integration.gateway import test_sessions as sessions
from tests.support.ssh_world import World, login, make_world, run, write_key

pytestmark = pytest.mark.asyncio


@pytest.fixture(autouse=True)
def _changed_asyncssh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One method has gone from asyncssh."""
    gone = {"asyncssh.connection:SSHConnection": {"a_method_that_has_gone": "self"}}
    monkeypatch.setattr(required, "METHODS", gone)
    required.are_there.cache_clear()
    yield
    required.are_there.cache_clear()


@pytest_asyncio.fixture(params=["sshd", "agent"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with make_world(tmp_path, request.param) as made:
        yield made


@pytest_asyncio.fixture
async def sshd_world(tmp_path: Path) -> AsyncIterator[World]:
    async with make_world(tmp_path, "sshd") as made:
        yield made


test_output = sessions.test_output_arrives_byte_for_byte_and_apart
test_end_of_input = sessions.test_half_closed_input_ends_the_remote_reader
test_output_after_it = sessions.test_output_after_the_remote_closed_its_input
test_bulk_data = sessions.test_bulk_data_keeps_its_hash_both_ways
test_sftp = sessions.test_sftp_puts_and_gets
test_forwarding = sessions.test_forwarding_to_the_task_and_back
test_refused_ports = sessions.test_a_refused_port_is_reported_as_refused
test_sockets = sessions.test_unix_sockets_are_forwarded
test_environment = sessions.test_environment_reaches_the_task
test_sessions_share_a_connection = sessions.test_two_sessions_share_one_connection_at_once


@pytest.mark.parametrize("status", [0, 3])
async def test_exit_status(world: World, status: int) -> None:
    assert (await world.ssh(f"exit {status}")).status == status


class TestLimits:
    """Logins that may not do everything."""

    @pytest_asyncio.fixture
    async def world(self, tmp_path: Path) -> AsyncIterator[World]:
        async with make_world(tmp_path, "sshd") as made:
            yield made

    test_files_only = staticmethod(rights.test_files_only)
    test_files_to_read_only = staticmethod(rights.test_files_to_read_only)
    test_one_port_only = staticmethod(rights.test_one_port_only)
    test_the_tasks_own_server = staticmethod(rights.test_a_limited_login_does_not_reach_the_tasks_own_ssh_server)
    test_shares = staticmethod(rights.test_a_share_opens_the_door_and_its_end_shuts_it)


class TestJumps:
    """``ssh -J``."""

    @pytest_asyncio.fixture
    async def world(self, tmp_path: Path) -> AsyncIterator[World]:
        async for made in jumps.task_world(tmp_path):
            yield made

    test_reaching_the_task = staticmethod(jumps.test_the_clients_own_ssh_reaches_the_task)
    test_for_the_key_alone = staticmethod(jumps.test_a_ride_is_for_the_key_that_the_gateway_let_in_alone)
    test_killed_clients = staticmethod(jumps.test_a_jump_whose_client_is_killed_ends)


async def test_who_is_unknown_stays_outside(sshd_world: World) -> None:
    sshd_world.key = sshd_world.path / "stranger"
    write_key(sshd_world.key)
    outcome = await sshd_world.ssh("true")
    assert outcome.status == 255
    assert "Permission denied (publickey)" in outcome.stderr
    assert sshd_world.engine.dials == []


async def test_a_key_that_signs_nothing_right_stays_outside(sshd_world: World) -> None:
    """asyncssh asks about the key before it looks at the signature: that must not be a login."""
    mine, other = asyncssh.read_private_key(sshd_world.key), asyncssh.generate_private_key("ssh-ed25519")

    class Liar(asyncssh.SSHKeyPair):
        def __init__(self) -> None:
            super().__init__(
                *(mine.algorithm, mine.algorithm, (mine.algorithm,), (mine.algorithm,)), mine.public_data, None
            )

        def sign(self, data: bytes) -> bytes:
            return other.sign(data, other.algorithm)

    with pytest.raises(asyncssh.PermissionDenied):
        await asyncssh.connect(
            "127.0.0.1",
            sshd_world.port,
            username=sshd_world.job.alias,
            client_keys=[Liar()],
            known_hosts=str(sshd_world.path / "known_hosts"),
            config=None,
            agent_path=None,
        )
    assert not sshd_world.engine.dials


async def test_a_certificate_opens_nothing_as_its_serial_is_not_told(sshd_world: World) -> None:
    rights._certify(sshd_world)
    assert "Permission denied (publickey)" in (await sshd_world.ssh("true")).stderr


async def test_channels_are_bounded(tmp_path: Path) -> None:
    async with make_world(tmp_path, "sshd", max_channels=2) as world, login(world) as conn:
        first = [await conn.create_process("cat") for _ in range(2)]
        with pytest.raises(asyncssh.ChannelOpenError, match="2 channels open"):
            await conn.create_process("cat")
        first[0].channel.abort()
        async with asyncio.timeout(60):
            while True:
                try:
                    assert (await conn.run("echo again")).stdout == "again\n"
                    break
                except asyncssh.ChannelOpenError:  # the task has not closed the other one yet
                    continue


async def test_the_log_says_once_what_is_missing(
    sshd_world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.clear()
    required.are_there.cache_clear()
    assert not required.are_there()
    assert (await run(sshd_world.argv("true"))).status == 0
    said = [record.getMessage() for record in caplog.records if record.name == required.__name__]
    assert len(said) == 1
    assert "a_method_that_has_gone" in said[0]
