"""Many logins, and greedy ones: nobody else notices. Figures are in the bench; here it is shown to hold at all."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import asyncssh
import pytest

from tests.conformance.clients.entry import LIMIT_S, Entry
from tests.conformance.engines.documents import commands
from tests.conformance.engines.room import AGAIN, Job, Room
from tests.support.backend_process import until
from tests.support.ssh_world import make_world

BULK_BYTES = 150_000_000
ECHOES = 25
"""While the data moves. How quick they are is measured by the benches (``ssh.echo_p99``, ``ssh.echo_among_idle``)."""
LOGINS, AT_ONCE = 60, 50
"""Logins that stay; how many are on their way in at a time, of the 64 that one source may have there."""
LOGIN_TIMEOUT_S = 10.0

local = pytest.mark.parametrize("room", ["local"], indirect=True)


@pytest.fixture(scope="module")
def job(room: Room) -> Iterator[Job]:
    """A task that runs until it is stopped."""
    made = room.submit(commands("exec sleep 1000"))
    made.running()
    until(lambda: AGAIN not in room.ssh(made, "true").stderr)
    yield made
    made.stop()


@contextlib.contextmanager
def echoing(entry: Entry) -> Iterator[subprocess.Popen[bytes]]:
    """A login whose task says again what it is told."""
    line = entry.openssh("ssh", entry.address(), "cat")
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            echo(process)  # it has begun
            yield process
        finally:
            process.kill()


def echo(process: subprocess.Popen[bytes]) -> None:
    """Press a key and wait until it appears."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"x\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"x\n"


def is_echoed(entry: Entry) -> None:
    """The same of a new login, as often as somebody types a word."""
    with echoing(entry) as process:
        for _ in range(ECHOES):
            echo(process)


@local
@pytest.mark.parametrize("direction", ["to the task", "from the task"])
def test_an_echo_stays_quick_beside_bulk_data(entry: Entry, direction: str) -> None:
    """Of another connection, and of one whose task is served by the same process."""
    ssh = shlex.join(entry.openssh("ssh", entry.address()))
    bulk = f"head -c {BULK_BYTES} /dev/zero"
    line = f"{ssh} {bulk} | wc -c" if direction == "from the task" else f"{bulk} | {ssh} wc -c"
    echoes = 0
    with echoing(entry) as process, subprocess.Popen(["bash", "-c", line], stdout=subprocess.PIPE) as moving:
        try:
            while moving.poll() is None:
                echo(process)
                echoes += 1
            assert moving.stdout is not None
            assert int(moving.stdout.read()) == BULK_BYTES
        finally:
            moving.kill()
    assert echoes >= ECHOES, "an echo waits for the data"


@local
def test_a_burst_of_logins_gets_in_and_idles_without_being_felt(entry: Entry) -> None:
    async def crowd() -> list[bytes]:
        options = await asyncssh.SSHClientConnectionOptions.construct(
            username=entry.login,
            client_keys=[str(entry.key)],
            known_hosts=str(entry.known_hosts),
            config=None,
            agent_path=None,
        )
        door = asyncio.Semaphore(AT_ONCE)
        async with contextlib.AsyncExitStack() as inside, asyncio.timeout(LIMIT_S):

            async def enter() -> asyncssh.SSHClientProcess[bytes]:
                async with door:
                    login = await asyncssh.connect(entry.host, entry.port, options=options)
                    inside.push_async_callback(login.wait_closed)
                    inside.callback(login.close)
                return await login.create_process("cat", encoding=None)

            sessions = await asyncio.gather(*(enter() for _ in range(LOGINS)))
            await asyncio.to_thread(is_echoed, entry)
            for number, session in enumerate(sessions):
                session.stdin.write(b"%d" % number)
                session.stdin.write_eof()
            return [await session.stdout.read() for session in sessions]

    said = asyncio.run(crowd())
    assert said == [b"%d" % number for number in range(LOGINS)]


@pytest.mark.asyncio
@pytest.mark.parametrize("begin", [b"", b"SSH-2.0-slow\r\n"], ids=["before its version", "before its keys"])
async def test_a_client_that_dribbles_is_ended_in_time_and_keeps_nobody_out(tmp_path: Path, begin: bytes) -> None:
    """A byte now and then does not buy more time than saying nothing does."""
    async with make_world(tmp_path, login_timeout_s=LOGIN_TIMEOUT_S, max_unauthenticated_per_source=4) as world:

        async def dribble() -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
            writer.write(begin)
            ended = asyncio.ensure_future(reader.read())
            with contextlib.suppress(ConnectionError):
                while not ended.done():
                    writer.write(b"S")
                    await asyncio.wait([ended], timeout=LOGIN_TIMEOUT_S / 20)
            await asyncio.gather(ended, return_exceptions=True)
            writer.close()

        async with asyncio.timeout(LIMIT_S):
            slow = [asyncio.create_task(dribble()) for _ in range(3)]
            assert (await world.ssh("echo in")).stdout == b"in\n"
            await asyncio.gather(*slow)
        assert (await world.ssh("echo in")).stdout == b"in\n"
