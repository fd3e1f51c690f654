"""Many logins, and greedy ones: nobody else notices. Figures are in the bench; here it is shown to hold at all."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import subprocess
import time
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
"""In a row, the slowest of which counts; of several such rows the best, as others use the machine."""
ECHO_S = 0.25
LOGINS, AT_ONCE = 60, 50
"""Logins that stay; how many are on their way in at a time, of the 64 that one source may have there."""
LOGIN_TIMEOUT_S = 1.0

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
            echo_s(process)  # it has begun
            yield process
        finally:
            process.kill()


def echo_s(process: subprocess.Popen[bytes]) -> float:
    """How long a key that is pressed takes to appear."""
    assert process.stdin is not None
    assert process.stdout is not None
    begin = time.monotonic()
    process.stdin.write(b"x\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"x\n"
    return time.monotonic() - begin


def median_echo_s(entry: Entry) -> float:
    """The same of a new login, as it is mostly."""
    with echoing(entry) as process:
        return sorted(echo_s(process) for _ in range(ECHOES))[ECHOES // 2]


@local
@pytest.mark.parametrize("direction", ["to the task", "from the task"])
def test_an_echo_stays_quick_beside_bulk_data(entry: Entry, direction: str) -> None:
    """Of another connection, and of one whose task is served by the same process."""
    ssh = shlex.join(entry.openssh("ssh", entry.address()))
    bulk = f"head -c {BULK_BYTES} /dev/zero"
    line = f"{ssh} {bulk} | wc -c" if direction == "from the task" else f"{bulk} | {ssh} wc -c"
    waits: list[float] = []
    with echoing(entry) as process, subprocess.Popen(["bash", "-c", line], stdout=subprocess.PIPE) as moving:
        try:
            while moving.poll() is None:
                waits.append(echo_s(process))
            assert moving.stdout is not None
            assert int(moving.stdout.read()) == BULK_BYTES
        finally:
            moving.kill()
    rows = [waits[first : first + ECHOES] for first in range(0, len(waits) - ECHOES + 1, ECHOES // 2)]
    assert rows, f"only {len(waits)} echoes while the data moved"
    assert min(max(row) for row in rows) <= ECHO_S


@local
def test_a_burst_of_logins_gets_in_and_idles_without_being_felt(entry: Entry) -> None:
    async def crowd() -> tuple[float, list[bytes]]:
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
            median = await asyncio.to_thread(median_echo_s, entry)
            for number, session in enumerate(sessions):
                session.stdin.write(b"%d" % number)
                session.stdin.write_eof()
            return median, [await session.stdout.read() for session in sessions]

    median, said = asyncio.run(crowd())
    assert said == [b"%d" % number for number in range(LOGINS)]
    assert median <= ECHO_S


@pytest.mark.asyncio
@pytest.mark.parametrize("begin", [b"", b"SSH-2.0-slow\r\n"], ids=["before its version", "before its keys"])
async def test_a_client_that_dribbles_is_ended_in_time_and_keeps_nobody_out(tmp_path: Path, begin: bytes) -> None:
    """A byte now and then does not buy more time than saying nothing does."""
    async with make_world(tmp_path, login_timeout_s=LOGIN_TIMEOUT_S, max_unauthenticated_per_source=4) as world:

        async def dribble() -> float:
            reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
            began = time.monotonic()
            writer.write(begin)
            ended = asyncio.ensure_future(reader.read())
            with contextlib.suppress(ConnectionError):
                while not ended.done():
                    writer.write(b"S")
                    await asyncio.wait([ended], timeout=LOGIN_TIMEOUT_S / 20)
            await asyncio.gather(ended, return_exceptions=True)
            writer.close()
            return time.monotonic() - began

        async with asyncio.timeout(LIMIT_S):
            slow = [asyncio.create_task(dribble()) for _ in range(3)]
            assert (await world.ssh("echo in")).stdout == b"in\n"
            lasted = await asyncio.gather(*slow)
        assert max(lasted) < 10 * LOGIN_TIMEOUT_S
        assert (await world.ssh("echo in")).stdout == b"in\n"
