"""What editors and old clients rely on within a login, and what has broken elsewhere (docs/ssh-clients.md)."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from asyncssh.constants import MSG_REQUEST_FAILURE, OPEN_CONNECT_FAILED
from asyncssh.packet import String

from pai_backend.testing.free_ports import free_port
from tests.conformance.clients.entry import LIMIT_S, Entry
from tests.conformance.engines.documents import commands
from tests.conformance.engines.room import AGAIN, Job, Room
from tests.support.backend_process import until

SMALL_FILES = 10_000
SFTP_HELLO = bytes([0, 0, 0, 5, 1, 0, 0, 0, 3])  # SSH_FXP_INIT of version 3
LISTEN = """python3 - <<'END'
import os, socket
server = socket.create_server(("::1", 0), family=socket.AF_INET6)
print(server.getsockname()[1], flush=True)
connection, _ = server.accept()
connection.sendall(connection.recv(100).upper())
connection.close()
END"""

local = pytest.mark.parametrize("room", ["local"], indirect=True)


@pytest.fixture(scope="module")
def job(room: Room) -> Iterator[Job]:
    """A task that runs until it is stopped."""
    made = room.submit(commands("exec sleep 1000"))
    made.running()
    until(lambda: AGAIN not in room.ssh(made, "true").stderr)
    yield made
    made.stop()


@asynccontextmanager
async def login(entry: Entry, **more: Any) -> AsyncIterator[asyncssh.SSHClientConnection]:
    """A client that can do and see what programs hide."""
    async with asyncssh.connect(
        entry.host,
        entry.port,
        username=entry.login,
        client_keys=[str(entry.key)],
        known_hosts=str(entry.known_hosts),
        config=None,
        agent_path=None,
        **more,
    ) as conn:
        yield conn


@contextmanager
def background(line: list[str], **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program with pipes that does not outlive the block."""
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(line, env={**os.environ, **variables}, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_command_prints_its_own_bytes_and_nothing_else(entry: Entry) -> None:
    """No message of the day, no banner, no complaint about a locale that is not there, no line end changed."""
    line = entry.openssh("ssh", "-o", "SetEnv=LANG=xx_XX.UTF-8", entry.address())
    for command, said in (("true", b""), ("printf 'a\\nb\\r\\n\\0'", b"a\nb\r\n\0")):
        done = entry.run([*line, command])
        assert (done.status, done.out, done.err) == (0, said, "")
    shell = entry.run(entry.openssh("ssh", "-T", entry.address()), b"echo $((6 * 7)); exit 4\n")
    assert (shell.status, shell.out, shell.err) == (4, b"42\n", "")


class _Ends(asyncssh.SSHClientSession[bytes]):
    """Notes in which order a channel ends."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.answered = asyncio.Event()
        self.closed = asyncio.Event()

    def data_received(self, data: bytes, datatype: int | None) -> None:
        self.answered.set()

    def eof_received(self) -> bool:
        self.order.append("eof")
        return True

    def exit_status_received(self, status: int) -> None:
        self.order.append(f"status {status}")

    def connection_lost(self, exc: Exception | None) -> None:
        self.order.append("close")
        self.closed.set()


@pytest.mark.parametrize("asked", [{"subsystem": "sftp"}, {"command": "scp -t ."}, {"command": "cat"}], ids=str)
def test_a_transfer_whose_client_says_it_is_done_first_ends_with_its_status(
    entry: Entry, asked: dict[str, Any]
) -> None:
    """scp of macOS ends its input, and takes a channel that closes without a status for a failure."""

    async def ends() -> list[str]:
        async with login(entry) as conn, asyncio.timeout(LIMIT_S):
            channel, session = await conn.create_session(_Ends, encoding=None, **asked)
            assert isinstance(session, _Ends)
            if "subsystem" in asked:
                channel.write(SFTP_HELLO)
                await session.answered.wait()
            channel.write_eof()
            await session.closed.wait()
            return session.order

    assert [each for each in asyncio.run(ends()) if each != "eof"] == ["status 0", "close"]


def test_requests_that_nobody_knows_are_refused_and_answered(entry: Entry) -> None:
    async def ask() -> None:
        async with login(entry) as conn, asyncio.timeout(LIMIT_S):
            kind, _ = await conn._make_global_request(b"nobody-knows@example.org")
            assert kind == MSG_REQUEST_FAILURE
            async with conn.create_process("cat", encoding=None) as process:
                known = await process.channel._make_request(b"nobody-knows@example.org", String(b"what"))
                assert known is False
                process.stdin.write(b"still there")
                process.stdin.write_eof()
                assert await process.stdout.read() == b"still there"

    asyncio.run(ask())


def test_algorithms_that_nobody_knows_are_passed_over(entry: Entry) -> None:
    class Offering(asyncssh.SSHClientConnection):
        """Prefers what does not exist, as sshj prefers MACs that OpenSSH has not."""

        def _send_kexinit(self) -> None:
            for kind in ("_kex_algs", "_enc_algs", "_mac_algs"):
                name = b"nobody-knows-%s@example.org" % kind.encode()
                if name not in getattr(self, kind):
                    setattr(self, kind, [name, *getattr(self, kind)])
            super()._send_kexinit()

    async def enter() -> str:
        options = await asyncssh.SSHClientConnectionOptions.construct(
            host=entry.host,
            port=entry.port,
            username=entry.login,
            client_keys=[str(entry.key)],
            known_hosts=str(entry.known_hosts),
            config=None,
            agent_path=None,
        )
        ready = asyncio.get_running_loop().create_future()
        options.waiter = ready
        async with asyncio.timeout(LIMIT_S):
            loop = asyncio.get_running_loop()
            _, conn = await loop.create_connection(lambda: Offering(loop, options, wait="auth"), entry.host, entry.port)
            await ready
            try:
                return str((await conn.run("echo in")).stdout)
            finally:
                conn.close()
                await conn.wait_closed()

    assert asyncio.run(enter()) == "in\n"


def test_two_connections_at_once_reach_one_attempt_of_the_task(entry: Entry) -> None:
    """Each waits for the other there, as an editor's two connections do."""
    meet = "touch {0}-is-here; until test -e {1}-is-here; do sleep 0.1; done; echo $PAI_CONTAINER_ID"
    lines = [entry.openssh("ssh", entry.address(), meet.format(*names)) for names in (("a", "b"), ("b", "a"))]
    with background(lines[0]) as first, background(lines[1]) as second:
        told = [process.communicate(timeout=LIMIT_S) for process in (first, second)]
    assert told[0] == told[1]
    assert told[0][0].strip()


def test_the_other_loopback_of_the_task_is_reached_and_a_closed_port_told_apart(entry: Entry) -> None:
    async def forward() -> tuple[bytes, int]:
        async with login(entry) as conn, asyncio.timeout(LIMIT_S):
            async with conn.create_process(LISTEN, encoding=None) as listening:
                port = int(await listening.stdout.readline())
                reader, writer = await conn.open_connection("::1", port, encoding=None)
                writer.write(b"by six")
                said = await reader.read()
            with pytest.raises(asyncssh.ChannelOpenError) as caught:
                await conn.open_connection("127.0.0.1", 1)
            return said, caught.value.code

    assert asyncio.run(forward()) == (b"BY SIX", OPEN_CONNECT_FAILED)


def test_a_port_opened_in_the_task_goes_with_its_client_and_is_one_clients_alone(entry: Entry) -> None:
    asked = ["-o", "ExitOnForwardFailure=yes", "-R", f"127.0.0.1:{{}}:127.0.0.1:{free_port()}", entry.address()]

    def line(port: int, *command: str) -> list[str]:
        return entry.openssh("ssh", *(word.format(port) for word in asked), *command)

    port = free_port()
    with background(line(port, "echo open; cat")) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        second = entry.run(line(port, "echo in"))
        assert (second.status, second.out) == (255, b"")
        assert f"remote port forwarding failed for listen port {port}" in second.err
    until(lambda: entry.run(line(port, "echo free")).out == b"free\n", LIMIT_S)


def test_small_files_go_through_a_pipe(entry: Entry, tmp_path: Path) -> None:
    """A tar at either end, and the end of one's output is the end of the other's input."""
    files = tmp_path / "files"
    files.mkdir()
    for number in range(SMALL_FILES):
        (files / str(number)).write_bytes(b"%d" % number)
    unpack = shlex.join(entry.openssh("ssh", entry.address(), "mkdir -p tarred && tar -C tarred -xf - && echo done"))
    sent = entry.run(["bash", "-o", "pipefail", "-c", f"tar -C {files} -cf - . | {unpack}"])
    assert (sent.status, sent.out, sent.err) == (0, b"done\n", "")
    count = "cat tarred/* | md5sum; ls tarred | wc -l; rm -r tarred"
    told = entry.run(entry.openssh("ssh", entry.address(), count)).out.decode().split()
    here = entry.run(["bash", "-c", f"cat {files}/* | md5sum"]).out.decode().split()
    assert (told[0], told[2]) == (here[0], str(SMALL_FILES))


@local
def test_git_fetches_and_pushes(entry: Entry, tmp_path: Path) -> None:
    """``git upload-pack`` talks both ways until each side has ended its own."""
    git: dict[str, Any] = {"GIT_SSH_COMMAND": shlex.join(entry.openssh("ssh")), "GIT_CONFIG_NOSYSTEM": "1"}
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    made = entry.run(entry.openssh("ssh", entry.address(), "git init -q --bare -b main there.git"))
    assert made.status == 0, made.err
    place = entry.run(entry.openssh("ssh", entry.address(), "pwd")).out.decode().strip()
    url = f"ssh://{entry.address()}{place}/there.git"
    one = str(tmp_path / "one")
    for words in (("init", "-q", one), ("-C", one, "commit", "-q", "--allow-empty", "-m", "first")):
        done = entry.run(["git", *who, *words])
        assert done.status == 0, done.err
    pushed = entry.run(["git", "-C", one, "push", "-q", url, "HEAD:main"], **git)
    assert pushed.status == 0, pushed.err
    cloned = entry.run(["git", "clone", "-q", url, str(tmp_path / "two")], **git)
    assert cloned.status == 0, cloned.err
    told = entry.run(["git", "-C", str(tmp_path / "two"), "log", "--format=%s"])
    assert told.out == b"first\n"


@local
def test_an_agent_serves_two_sessions_of_one_connection(entry: Entry, tmp_path: Path) -> None:
    agent, control = tmp_path / "agent", tmp_path / "control"
    options = ["-o", f"ControlPath={control}", "-o", f"ForwardAgent={agent}"]
    with background(["ssh-agent", "-D", "-a", str(agent)]):
        until(agent.exists, LIMIT_S)
        added = entry.run(["ssh-add", "-q", str(entry.key)], SSH_AUTH_SOCK=str(agent))
        assert added.status == 0, added.err
        with background(entry.openssh("ssh", *options, "-M", "-N", entry.address())):
            until(control.exists, LIMIT_S)
            ask = entry.openssh(
                "ssh", *options, entry.address(), "echo ready; read go; ssh-add -l; test -S $SSH_AUTH_SOCK"
            )
            with background(ask) as first, background(ask) as second:
                for process in (first, second):
                    assert process.stdout is not None
                    assert process.stdout.readline() == b"ready\n"
                for process in (first, second):  # the second still asks when the first has ended
                    out, err = process.communicate(b"go\n", timeout=LIMIT_S)
                    assert (process.returncode, b"SHA256:" in out) == (0, True), err
