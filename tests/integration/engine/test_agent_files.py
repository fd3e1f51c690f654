"""Files of local tasks by SFTP: a program of the task for each session, whose troubles are its own."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import asyncssh
import psutil
import pytest
from asyncssh.channel import SSHClientChannel
from asyncssh.packet import String

from pai_backend.engine.asyncssh_private.task_connection import MOST_CHANNELS
from pai_backend.engine.base import TaskPlan
from pai_backend.engine.local import files
from pai_backend.testing.engine_contract import PATIENCE_S
from tests.integration.engine.test_agent_ssh import Client, agent, client, run, task
from tests.support.living import lives
from tests.support.ssh_world import eventually

LOOKS = 30
MOST_KEPT_BYTES = 64 << 20  # far more than buffers hold, far less than a window

__all__ = ["agent", "client", "task"]


@pytest.mark.asyncio
async def test_who_waits_for_a_named_pipe_keeps_nobody_else_waiting(client: Client, task: TaskPlan, root: Path) -> None:
    """And the program that waits ends with its client, not with the task."""
    os.mkfifo(root / "tasks" / task.uid / "work" / "pipe")
    async with client.connected() as connection:
        sftp = await connection.start_sftp_client()

        async def read() -> None:
            await sftp.open("pipe", "rb")

        waiting = asyncio.create_task(read())
        async with asyncio.timeout(PATIENCE_S):
            assert (await sftp_of_another(client)) == b"other\n"
        assert not waiting.done()
        below = psutil.Process().children(recursive=True)
        named = [each for each in psutil.process_iter(["name"]) if (each.info["name"] or "").startswith("sftp-server")]
        servers = [each for each in named if each in below]
        assert servers
        waiting.cancel()
    await eventually(lambda: not any(map(lives, servers)), "the file server goes on without its client")


@pytest.mark.asyncio
async def test_a_client_that_reads_nothing_has_little_kept_for_it_whatever_its_window(
    client: Client, task: TaskPlan, agent: asyncio.subprocess.Process
) -> None:
    """A program that writes without an end is held back, not read into the memory of the node's agent."""
    async with client.connected() as connection:
        mine = connection._transport
        assert mine is not None
        process, seen = psutil.Process(agent.pid), [0]
        await connection.create_session(asyncssh.SSHClientSession, "cat /dev/zero", encoding=None, window=(1 << 31) - 1)
        mine.pause_reading()
        await eventually(lambda: [each.name() for each in process.children()] == ["cat"], "it does not begin")
        (cat,) = process.children()

        def stands() -> bool:
            seen.append(cat.io_counters().write_chars)
            return len(seen) > LOOKS and seen[-1] == seen[-LOOKS]

        await eventually(stands, "the program is read for ever")
        assert seen[-1] < MOST_KEPT_BYTES


async def sftp_of_another(client: Client) -> bytes:
    """What a second login reads from a file."""
    async with client.connected() as connection, connection.start_sftp_client() as sftp:
        async with sftp.open("file", "wb") as file:
            await file.write(b"other\n")
        async with sftp.open("file", "rb") as file:
            data = await file.read()
            assert isinstance(data, bytes)
            return data


@pytest.mark.asyncio
async def test_the_files_of_a_session_are_open_in_a_process_of_its_own(
    client: Client, task: TaskPlan, agent: asyncio.subprocess.Process
) -> None:
    """A client may open as many as it likes: the agent, which serves all tasks, has none of them."""
    async with client.connected() as connection, connection.start_sftp_client() as sftp:
        await sftp.listdir(".")
        before = psutil.Process(agent.pid).num_fds()
        held = [await sftp.open("/dev/zero", "rb") for _ in range(200)]
        assert psutil.Process(agent.pid).num_fds() == before
        assert len(held) == 200


@pytest.mark.asyncio
async def test_a_connection_listens_with_a_bounded_number_of_ports_and_sockets(
    client: Client, task: TaskPlan, tmp_path: Path
) -> None:
    async with client.connected() as connection, asyncio.timeout(PATIENCE_S):
        for _ in range(MOST_CHANNELS):
            await connection.forward_remote_port("", 0, "localhost", 1)
        with pytest.raises(asyncssh.ChannelListenError):
            await connection.forward_remote_port("", 0, "localhost", 1)
        with pytest.raises(asyncssh.ChannelListenError):
            await connection.forward_remote_path(str(tmp_path / "socket"), "/nowhere")
        with pytest.raises(asyncssh.ChannelOpenError, match="the maximum"):
            await connection.run("true")


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["netconf", "internal-sftp", "SFTP"])
async def test_sftp_is_the_only_subsystem(client: Client, task: TaskPlan, name: str) -> None:
    """Of another one nobody knows what it is: it was a shell."""
    async with client.connected() as connection:
        channel: SSHClientChannel[bytes] = SSHClientChannel(
            connection, asyncio.get_running_loop(), "strict", None, "strict", 1 << 21, 1 << 15
        )
        await channel._open(b"session")
        assert not await channel._make_request(b"subsystem", String(name))


@pytest.mark.asyncio
async def test_a_machine_without_openssh_s_server_has_one_that_does_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "OPENSSH", ())
    command = " ".join(files.file_server())
    assert command.startswith(sys.executable)
    data = os.urandom(700_000)
    (tmp_path / "here").write_bytes(data)
    batch = b"put here there\nget there back\nrename there moved\nsymlink moved link\nls -l\nget nothing\n"
    monkeypatch.chdir(tmp_path)
    done = await run("sftp", "-D", command, "-b", "-", stdin=batch)
    assert b"moved" in done.stdout
    assert (done.returncode, done.stderr.splitlines()[-1:]) == (1, [b'File "%s/nothing" not found.' % bytes(tmp_path)])
    assert (tmp_path / "link").readlink() == Path("moved")
    assert (tmp_path / "back").read_bytes() == (tmp_path / "moved").read_bytes() == data


@pytest.mark.asyncio
async def test_either_server_ends_well_with_its_client(client: Client, task: TaskPlan) -> None:
    """OpenSSH's scp calls a complete copy a failure where the server does not say so."""
    async with client.connected() as connection:
        process = await connection.create_process(subsystem="sftp", encoding=None)
        process.stdin.write_eof()
        assert (await process.wait()).exit_status == 0
        with pytest.raises(asyncssh.ChannelOpenError):
            await connection.create_process(subsystem="none", encoding=None)
