"""What a shell, a command and a file transfer see through the gateway: exactly what the task does."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from pai_backend.engine.local import ssh_session
from pai_backend.testing.free_ports import free_port
from tests.integration.engine.test_ssh_output import IDLE_S, stall_and_read
from tests.support.ssh_world import World, answers, eventually, login, make_world, program, run

pytestmark = pytest.mark.asyncio

SERVERS = ["sshd", "asyncssh"]
BULK_BYTES = 50_000_000


@pytest_asyncio.fixture(params=SERVERS)
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with make_world(tmp_path, request.param) as made:
        yield made


@pytest_asyncio.fixture
async def sshd_world(tmp_path: Path) -> AsyncIterator[World]:
    async with make_world(tmp_path, "sshd") as made:
        yield made


async def test_output_arrives_byte_for_byte_and_apart(world: World) -> None:
    every_byte = bytes(range(256)) * 40
    (world.path / "bytes").write_bytes(every_byte)
    outcome = await world.ssh(f"cat {world.path / 'bytes'}; printf 'to stderr' >&2")
    assert outcome.stdout == every_byte
    assert outcome.stderr == "to stderr"
    assert outcome.status == 0


@pytest.mark.parametrize("terminal", ["xterm", None])
async def test_a_client_that_stalls_reads_all_of_it_through_the_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: str | None
) -> None:
    monkeypatch.setattr(ssh_session, "HANGUP_S", IDLE_S)
    async with make_world(tmp_path, "agent") as world, login(world) as connection:
        await stall_and_read(connection, tmp_path, terminal)


@pytest.mark.parametrize("status", [0, 1, 7, 127, 254])
async def test_exit_status_arrives(world: World, status: int) -> None:
    assert (await world.ssh(f"exit {status}")).status == status


async def test_a_killed_command_is_a_failure(world: World) -> None:
    assert (await world.ssh("kill -TERM $$")).status == 255


async def test_half_closed_input_ends_the_remote_reader(world: World) -> None:
    outcome = await world.ssh("cat; echo done", stdin=b"over there\n")
    assert (outcome.status, outcome.stdout) == (0, b"over there\ndone\n")


async def test_output_after_the_remote_closed_its_input(world: World) -> None:
    outcome = await world.ssh("exec 0<&-; echo first; echo second", stdin=b"unread" * 1000)
    assert (outcome.status, outcome.stdout) == (0, b"first\nsecond\n")


async def test_bulk_data_keeps_its_hash_both_ways(world: World) -> None:
    data = os.urandom(1_000_000) * (BULK_BYTES // 1_000_000)
    digest = hashlib.sha256(data).hexdigest()
    up = await world.ssh("sha256sum", stdin=data)
    assert up.stdout.decode().split()[0] == digest
    (world.path / "bulk").write_bytes(data)
    down = await world.ssh(f"cat {world.path / 'bulk'}")
    assert hashlib.sha256(down.stdout).hexdigest() == digest


async def test_tar_through_the_gateway(world: World) -> None:
    source, target = world.path / "source", world.path / "target"
    source.mkdir()
    target.mkdir()
    for number in range(200):
        (source / f"file-{number}").write_bytes(os.urandom(number * 10))
    pipeline = f"tar -C {source} -cf - . | {' '.join(world.argv(f'tar -C {target} -xf -'))}"
    assert (await run(["bash", "-o", "pipefail", "-c", pipeline])).status == 0
    assert {p.name: p.read_bytes() for p in target.iterdir()} == {p.name: p.read_bytes() for p in source.iterdir()}


async def test_sftp_puts_and_gets(world: World) -> None:
    data = os.urandom(3_000_000)
    (world.path / "out").write_bytes(data)
    batch = f"put {world.path / 'out'} {world.path / 'there'}\nget {world.path / 'there'} {world.path / 'back'}\n"
    (world.path / "batch").write_text(batch)
    argv = ["sftp", *world.common(), "-P", str(world.port), "-b", str(world.path / "batch")]
    outcome = await run([*argv, f"{world.job.alias}@127.0.0.1"])
    assert outcome.status == 0, outcome.stderr
    assert (world.path / "back").read_bytes() == data


@pytest.mark.parametrize("protocol", ["-s", "-O"], ids=["scp over sftp", "scp of old"])
async def test_scp_copies_and_ends_well(world: World, protocol: str) -> None:
    (world.path / "out").write_bytes(os.urandom(300_000))
    to = f"{world.job.alias}@127.0.0.1:{world.path / 'copied'}"
    outcome = await run(["scp", protocol, *world.common(), "-P", str(world.port), str(world.path / "out"), to])
    assert outcome.status == 0, outcome.stderr
    assert (world.path / "copied").read_bytes() == (world.path / "out").read_bytes()


async def test_environment_reaches_the_task(sshd_world: World) -> None:
    options = ("-o", "SetEnv=PAI_TEST=three LC_ALL=C.UTF-8")
    outcome = await sshd_world.ssh("echo $PAI_TEST/$LC_ALL", options=options)
    assert outcome.stdout == b"three/C.UTF-8\n"


async def test_a_command_that_is_not_utf8_arrives_as_it_is(sshd_world: World) -> None:
    argv = [os.fsencode(arg) for arg in sshd_world.argv()]
    async with program([*argv, b"printf %s '\xff\xfe' | od -An -tx1"]) as process:  # type: ignore[list-item]
        out, _ = await process.communicate(b"")
    assert out.split() == [b"ff", b"fe"]


async def test_an_unknown_subsystem_fails_as_it_would_without_a_gateway(sshd_world: World) -> None:
    outcome = await sshd_world.ssh("nothing-like-that", options=("-s",))
    assert outcome.status != 0
    assert "subsystem request failed" in outcome.stderr


async def test_two_sessions_share_one_connection_at_once(sshd_world: World) -> None:
    control = f"ControlPath={sshd_world.path}/c"
    master = sshd_world.argv(options=("-M", "-N", "-o", control))
    async with program(master):
        await _exists(sshd_world.path / "c")
        many = [sshd_world.ssh(f"cat; echo {n}", stdin=b"x" * 200_000, options=("-o", control)) for n in range(4)]
        for number, outcome in enumerate(await asyncio.gather(*many)):
            assert outcome.stdout == b"x" * 200_000 + b"%d\n" % number
    assert len(sshd_world.engine.dials) == 1


async def test_forwarding_to_the_task_and_back(world: World) -> None:
    there, here, remote = free_port(), free_port(), free_port()
    async with (
        _echo(there),
        program(
            world.argv(options=("-N", "-L", f"{here}:127.0.0.1:{there}", "-R", f"127.0.0.1:{remote}:127.0.0.1:{there}"))
        ),
    ):
        for port in (here, remote):
            await answers(port)
            assert await _through(port, b"ping" * 50_000) == b"ping" * 50_000


async def test_dynamic_forwarding(world: World) -> None:
    there, socks = free_port(), free_port()
    async with _echo(there), program(world.argv(options=("-N", "-D", f"127.0.0.1:{socks}"))):
        await answers(socks)
        reader, writer = await asyncio.open_connection("127.0.0.1", socks)
        async with asyncio.timeout(60):
            writer.write(b"\x05\x01\x00")  # RFC 1928: version 5, one method, no authentication
            assert await reader.readexactly(2) == b"\x05\x00"
            writer.write(b"\x05\x01\x00\x01\x7f\x00\x00\x01" + there.to_bytes(2, "big"))
            assert (await reader.readexactly(10))[:2] == b"\x05\x00"
            writer.write(b"through socks")
            assert await reader.readexactly(13) == b"through socks"
        writer.close()
        await writer.wait_closed()


async def test_a_refused_port_is_reported_as_refused(world: World) -> None:
    outcome = await world.ssh(options=("-W", f"127.0.0.1:{free_port()}"))
    assert outcome.status != 0
    assert "open failed" in outcome.stderr


async def test_unix_sockets_are_forwarded(sshd_world: World) -> None:
    there, here = sshd_world.path / "there", sshd_world.path / "here"
    server = await asyncio.start_unix_server(_echo_once, there)
    async with server, program(sshd_world.argv(options=("-N", "-L", f"{here}:{there}"))):
        await _answers(here)
        reader, writer = await asyncio.open_unix_connection(here)
        writer.write(b"by path")
        writer.write_eof()
        assert await reader.read() == b"by path"
        writer.close()
        await writer.wait_closed()


async def test_x11_is_refused_with_a_word_and_the_command_runs(sshd_world: World) -> None:
    outcome = await run(["env", "DISPLAY=:0", *sshd_world.argv("echo $DISPLAY.", options=("-X",))])
    assert (outcome.status, outcome.stdout) == (0, b".\n")
    assert "X11 forwarding request failed" in outcome.stderr


async def test_the_users_agent_can_be_forwarded(sshd_world: World) -> None:
    agent = sshd_world.path / "agent"
    async with program(["ssh-agent", "-D", "-a", str(agent)], stdout=asyncio.subprocess.DEVNULL):
        await _answers(agent)
        env = f"SSH_AUTH_SOCK={agent}"
        assert (await run(["env", env, "ssh-add", "-q", str(sshd_world.key)])).status == 0
        outcome = await run(
            ["env", env, *sshd_world.argv("ssh-add -l", options=("-A", "-o", f"IdentityAgent={agent}"))]
        )
    assert b"SHA256:" in outcome.stdout, outcome.stderr


@pytest.mark.parametrize("columns", [100, 211])
async def test_a_terminal_has_the_size_of_the_users_window(sshd_world: World, columns: int) -> None:
    script = f"""
import fcntl, os, pty, struct, sys, termios
def size(columns):
    return struct.pack("HHHH", 40, columns, 0, 0)
pid, fd = pty.fork()
if pid == 0:
    os.execvp("ssh", {sshd_world.argv(options=("-tt",))!r} + ["stty size; read line; stty size; read line"])
def until(mark, seen=b""):
    while mark not in seen:
        seen += os.read(fd, 4096)
    return seen
fcntl.ioctl(fd, termios.TIOCSWINSZ, size(80))
first = until(b"\\n")
fcntl.ioctl(fd, termios.TIOCSWINSZ, size({columns}))
os.write(fd, b"\\n")
second = until(b"40 {columns}")
os.write(fd, b"\\n")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    outcome = await run(["python3", "-c", script])
    assert outcome.status == 0, outcome.stderr


async def test_a_signal_from_the_client_reaches_the_command(tmp_path: Path) -> None:
    # OpenSSH's client sends no signals; its server takes none when it runs as root.
    async with make_world(tmp_path, "asyncssh") as world, login(world) as conn:
        async with asyncio.timeout(60):
            process = await conn.create_process("echo ready; exec sleep 60")
            await process.stdout.readline()
            process.send_signal("TERM")
            await process.wait_closed()
        assert process.exit_signal is not None
        assert process.exit_signal[0] == "TERM"


async def _exists(path: Path) -> None:
    await eventually(path.exists, f"{path.name} was not made")


async def _answers(path: Path) -> None:
    """A Unix socket is there before its program listens."""

    def taken() -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(path)) == 0

    await eventually(taken, f"nobody listens at {path.name}")


async def _echo_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()
    await writer.wait_closed()


@contextlib.asynccontextmanager
async def _echo(port: int) -> AsyncIterator[None]:
    server = await asyncio.start_server(_echo_once, "127.0.0.1", port)
    async with server:
        yield


async def _through(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def send() -> None:
        writer.write(data)
        await writer.drain()
        writer.write_eof()

    async with asyncio.timeout(60):
        _, answer = await asyncio.gather(send(), reader.read())
    writer.close()
    await writer.wait_closed()
    return answer
