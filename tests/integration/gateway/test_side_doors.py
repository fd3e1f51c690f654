"""Ways around the limits of a login, tried message by message against both kinds of task server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncssh
import psutil
import pytest
import pytest_asyncio
from asyncssh.constants import MSG_CHANNEL_OPEN
from asyncssh.packet import String, UInt32

from pai_backend.model.rights import EVERYTHING, Limits, limits_of
from pai_backend.store.grants import Share
from tests.support.ssh_channels import INIT, answers_in, asks, make_directory, new_channel, send
from tests.support.ssh_world import LIMIT_S, World, eventually, login, make_world, write_key

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture(params=["sshd", "asyncssh"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with make_world(tmp_path, request.param) as made:
        yield made


def _share(world: World, limits: Limits) -> None:
    """Let bob in, and be bob from here on."""
    world.key = world.path / "bob"
    world.store.register("bob", write_key(world.key))
    world.store.grants.given[:] = [Share(world.job.uid, "bob", limits, datetime.now(UTC), "alice")]
    world.store.written()


@pytest.mark.parametrize("only", [[], ["sftp"], ["sftp-read"], ["exec"]])
async def test_one_program_runs_on_a_channel_whoever_asks(world: World, only: list[str]) -> None:
    _share(world, limits_of(only) if only else EVERYTHING)
    async with login(world) as conn:
        channel, heard = await new_channel(conn)
        assert await asks(channel, b"subsystem", String(b"sftp"))
        for name, args in ((b"subsystem", String(b"sftp")), (b"exec", String(b"echo never")), (b"shell", b"")):
            assert not await asks(channel, name, args)
        send(channel, INIT)
        await eventually(answers_in(heard, 1), "the first program does not go on")
        assert b"never" not in heard.said


async def test_a_second_subsystem_request_lifts_no_limit(world: World) -> None:
    """The attack: a second request in the middle of a packet began the filter anew, and not the server."""
    _share(world, limits_of(["sftp-read"]))
    made = world.path / "made"
    packet = make_directory(made, number=0x00000400)
    async with login(world) as conn:
        channel, heard = await new_channel(conn)
        assert await asks(channel, b"subsystem", String(b"sftp"))
        send(channel, INIT)
        send(channel, packet[:3])
        assert not await asks(channel, b"subsystem", String(b"sftp"))
        send(channel, packet[3:])
        await eventually(answers_in(heard, 2), "the server does not answer")
    assert not made.exists()


async def test_data_before_the_subsystem_lifts_no_limit(world: World) -> None:
    """asyncssh's server keeps them for the subsystem, OpenSSH's drops them."""
    _share(world, limits_of(["sftp-read"]))
    made = world.path / "made"
    async with login(world) as conn:
        channel, heard = await new_channel(conn)
        send(channel, INIT + make_directory(made))
        assert await asks(channel, b"subsystem", String(b"sftp"))
        send(channel, INIT + make_directory(made, number=2))
        await eventually(answers_in(heard, 2), "the server does not answer")
    assert not made.exists()


@pytest.mark.parametrize("name", ["BASH_ENV", "ENV", "LD_PRELOAD", "PYTHONSTARTUP", "GIT_SSH", "PERL5OPT", "SHELLOPTS"])
async def test_files_only_run_nothing_by_the_environment(world: World, name: str) -> None:
    ran = world.path / "ran"
    script = world.path / "script"
    script.write_text(f"touch {ran}\n")
    _share(world, limits_of(["sftp"]))
    async with login(world) as conn:
        channel, heard = await new_channel(conn)
        assert not await asks(channel, b"env", String(name), String(str(script)))
        assert await asks(channel, b"env", String("LC_ALL"), String("C"))
        assert await asks(channel, b"subsystem", String(b"sftp"))
        send(channel, INIT)
        await eventually(answers_in(heard, 1), "the server does not answer")
    assert not ran.exists()


async def test_a_number_that_is_in_use_ends_the_login(world: World) -> None:
    async with login(world) as conn:
        channel, _ = await new_channel(conn)
        number = channel._recv_chan
        assert number is not None
        conn.send_packet(MSG_CHANNEL_OPEN, String(b"session"), UInt32(number), UInt32(1 << 21), UInt32(1 << 15))
        async with asyncio.timeout(LIMIT_S):
            await conn.wait_closed()


@pytest.mark.parametrize("way", ["jumps", "connections", "sockets", "sessions", "refused sessions"])
async def test_channels_are_bounded_whatever_they_are_for_and_come_back(tmp_path: Path, way: str) -> None:
    most = 8
    async with make_world(tmp_path, "agent", max_channels=most) as world:
        name = "nothing" if way == "refused sessions" else "alice" if way == "jumps" else "demo"
        here = psutil.Process()
        async with login(world, name) as conn:

            async def open_one() -> tuple[Any, Any]:
                if way == "jumps":
                    return await conn.open_connection("demo", 22)
                if way == "connections":
                    return await conn.open_connection("127.0.0.1", world.task_port)
                if way == "sockets":
                    return await conn.open_unix_connection(str(world.path / "socket"))
                return await new_channel(conn)

            listening = None
            if way == "sockets":
                listening = await asyncio.start_unix_server(lambda r, w: None, str(world.path / "socket"))
            before = here.num_fds()
            opened = [await open_one() for _ in range(most)]
            for _ in range(3 * most):
                with pytest.raises(asyncssh.ChannelOpenError, match=f"has {most} channels open, the maximum"):
                    await open_one()
            if way == "jumps":
                assert len(world.engine.dials) == most
                # Both ends of the loopback engine's connection are in this process, and those of the task's ride.
                assert here.num_fds() - before <= 4 * most
                for pair in opened:
                    pair[1].close()
                await eventually(lambda: here.num_fds() <= before, "descriptors of jumps do not come back")
                await open_one()
            if listening is not None:
                listening.close()


async def test_the_environment_of_who_may_do_everything_passes(tmp_path: Path) -> None:
    async with make_world(tmp_path, "sshd") as world, login(world) as conn:
        done = await conn.run('echo "$ANY"', env={"ANY": "thing"})
        assert done.stdout == "thing\n"
