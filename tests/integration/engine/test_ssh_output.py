"""Nothing that a program has written is lost on its way to a client that reads slowly, at any window."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh
import pytest

from pai_backend.access.keys import make_ed25519, public_line
from pai_backend.engine.local import layout, ssh_session
from pai_backend.engine.local.ssh_server import listen
from pai_backend.engine.local.ssh_session import TaskWorld
from pai_backend.testing.free_ports import free_port
from tests.support.ssh_world import LIMIT_S, eventually

pytestmark = pytest.mark.asyncio

IDLE_S = 0.05
SIZES = [(window, window + 65536 + more) for window in (4096, 32768, 65536) for more in range(1024, 12_288, 1024)]


class _Slow(asyncssh.SSHClientSession[bytes]):
    """Reads nothing until it is told."""

    def __init__(self) -> None:
        self.read = 0
        self.status: int | None = None
        self.over = asyncio.Event()

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self.channel = chan
        chan.pause_reading()

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        self.read += len(data)

    def exit_status_received(self, status: int) -> None:
        self.status = status

    def connection_lost(self, exc: Exception | None) -> None:
        self.over.set()


@asynccontextmanager
async def _connection(path: Path) -> AsyncIterator[asyncssh.SSHClientConnection]:
    """To the SSH server of a task that is a directory only."""
    (path / layout.WORK).mkdir()
    key, host = make_ed25519("user")[0], make_ed25519("host")[0]
    port = free_port()
    world = TaskWorld("uid", path, {"PATH": "/usr/bin:/bin"})
    listener = await listen(world, port, host, "", [public_line(key)])
    try:
        known = path / "known_hosts"
        known.write_text(f"[127.0.0.1]:{port} {public_line(host)}\n")
        keys = [asyncssh.import_private_key(key)]
        async with asyncssh.connect(
            "127.0.0.1", port, client_keys=keys, known_hosts=str(known), config=None, agent_path=None
        ) as connection:
            yield connection
    finally:
        await listener.aclose()


@pytest.mark.parametrize("terminal", ["xterm", None])
async def test_a_client_that_stalls_reads_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: str | None
) -> None:
    monkeypatch.setattr(ssh_session, "HANGUP_S", IDLE_S)
    async with _connection(tmp_path) as connection:
        await stall_and_read(connection, tmp_path, terminal)


async def stall_and_read(connection: asyncssh.SSHClientConnection, path: Path, terminal: str | None) -> None:
    """Run programs whose ends meet a client that reads nothing; fail when it reads less than all of it afterwards."""
    sessions: list[_Slow] = []
    for number, (window, size) in enumerate(SIZES):
        command = f"head -c {size} /dev/zero | tr '\\0' x; touch {path}/ended-{number}; exit 3"
        _, session = await connection.create_session(
            _Slow, command, term_type=terminal, encoding=None, window=window, max_pktsize=min(window, 32768)
        )
        assert isinstance(session, _Slow)
        sessions.append(session)

    def ended() -> int:
        return sum((path / f"ended-{number}").exists() for number in range(len(SIZES)))

    await eventually(lambda: ended() >= len(SIZES) // 4, "no program ends while its client stalls")
    overs = [asyncio.create_task(session.over.wait()) for session in sessions]
    await asyncio.wait(overs, timeout=20 * IDLE_S)  # what ends now has lost something
    for session in sessions:
        session.channel.resume_reading()
    async with asyncio.timeout(LIMIT_S):
        await asyncio.gather(*overs)
    assert [(session.read, session.status) for session in sessions] == [(size, 3) for _, size in SIZES]


KEEPER = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGHUP, signal.SIG_IGN)
fcntl.ioctl(0, termios.TIOCNOTTY)
child = os.fork()
if child == 0:
    signal.alarm(120)
    signal.pause()
with open(sys.argv[1], "w") as file:
    file.write(str(child))
print("last words", flush=True)
os._exit(4)
"""


async def test_a_terminal_that_does_not_hang_up_ends_soon_after_its_leader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader that gave its terminal up leaves it to a child that has nothing to say."""
    monkeypatch.setattr(ssh_session, "HANGUP_S", IDLE_S)
    (tmp_path / "keeper.py").write_text(KEEPER)
    async with _connection(tmp_path) as connection, asyncio.timeout(LIMIT_S):
        command = f"exec {sys.executable} {tmp_path}/keeper.py {tmp_path}/child"
        done = await connection.run(command, term_type="xterm", encoding=None)
        os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)
    assert (done.stdout, done.exit_status) == (b"last words\r\n", 4)
