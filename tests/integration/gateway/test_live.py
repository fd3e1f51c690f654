"""What happens to logins that are open: ends, removed keys, lost tasks, slow readers, a stopping gateway."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from pathlib import Path

import asyncssh
import psutil
import pytest
import pytest_asyncio

from pai_backend.access.keys import gateway_public_key, task_host_key
from pai_backend.model.audit import AuditEvent
from pai_backend.model.ids import JobUid
from pai_backend.model.job import JobExit, State
from pai_backend.store.base import NewEvent
from pai_backend.testing.builders import make_uid
from pai_backend.testing.free_ports import free_port
from tests.support.ssh_world import (
    World,
    asyncssh_server,
    gateway,
    lines_in,
    login,
    make_world,
    program,
    running_job,
)

pytestmark = pytest.mark.asyncio

CUT_S = 60.0  # ends what hangs; that it is 2 s is added up in unit/gateway/test_cut_in_time.py


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with make_world(tmp_path) as made:
        yield made


@pytest_asyncio.fixture
async def sshd_world(tmp_path: Path) -> AsyncIterator[World]:
    async with make_world(tmp_path, "sshd") as made:
        yield made


def _end_job(world: World) -> None:
    verdict = JobExit(status=0, message="")
    world.store.put(world.job.model_copy(update={"state": State.SUCCEEDED, "exit": verdict}))


async def _started(process: asyncio.subprocess.Process) -> None:
    assert process.stdout is not None
    async with asyncio.timeout(60):
        assert (await process.stdout.readline()).strip() == b"started"


@contextlib.asynccontextmanager
async def _connected(world: World) -> AsyncIterator[socket.socket]:
    """A connection that the gateway has accepted, and has said its first line on. It is not read yet."""
    with socket.create_connection(("127.0.0.1", world.port)) as sock:
        await asyncio.to_thread(sock.recv, 1, socket.MSG_PEEK)
        sock.setblocking(False)
        yield sock


async def _ends_with(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    async with asyncio.timeout(CUT_S):
        text = (await process.stderr.read()).decode()
        assert await process.wait() == 255
    return text


@pytest.mark.parametrize("terminal", [("-tt",), ()], ids=["terminal", "command"])
async def test_a_session_ends_with_its_job_and_says_so(world: World, terminal: tuple[str, ...]) -> None:
    async with program(world.argv("echo started; exec sleep 60", options=terminal)) as process:
        await _started(process)
        _end_job(world)
        text = await _ends_with(process)
    assert "Job demo has ended: SUCCEEDED." in text
    assert ("pai: " in text) == bool(terminal)


async def test_a_session_ends_when_its_task_moves(world: World) -> None:
    async with program(world.argv("echo started; exec sleep 60")) as process:
        await _started(process)
        world.store.put(running_job(world.task_port, attempt=1))
        assert "started again elsewhere" in await _ends_with(process)


async def test_a_removed_key_ends_its_sessions_only(world: World) -> None:
    removed = next(iter(world.store.registered))
    async with login(world) as other:
        async with program(world.argv("echo started; exec sleep 60")) as process:
            await _started(process)
            second = world.store.register(
                "bob", asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
            )
            world.store.unregister(removed)
            assert "Your key was removed." in await _ends_with(process)
        await asyncio.wait_for(other.wait_closed(), CUT_S)
    assert second.user == "bob"
    assert "Permission denied" in (await world.ssh("true")).stderr


async def test_other_jobs_are_left_alone(world: World) -> None:
    second = world.store.put(running_job(world.task_port, name="second", uid=make_uid(2)))
    world.store.task_keys.pems[f"{second.uid}-0-0"] = world.store.task_keys.pems[f"{world.job.uid}-0-0"]
    async with (
        program(world.argv("echo started; exec sleep 60")) as ending,
        program(world.argv("echo started; read line; echo $line", name="second")) as staying,
    ):
        await _started(ending)
        await _started(staying)
        _end_job(world)
        await _ends_with(ending)
        out, _ = await asyncio.wait_for(staying.communicate(b"still here\n"), 60)
        assert out == b"still here\n"


async def test_a_lost_task_server_is_told_with_the_jobs_end_when_that_is_known(tmp_path: Path) -> None:
    async with make_world(tmp_path) as world:
        port = free_port()
        host_key = await task_host_key(world.store.as_store(), f"{world.job.uid}-0-0")
        authorized = await gateway_public_key(world.store.as_store())
        async with asyncssh_server(tmp_path, port, host_key, authorized) as clients:
            world.store.put(running_job(port))
            async with program(world.argv("echo started; exec sleep 60", options=("-tt",))) as process:
                await _started(process)
                for conn in clients:
                    conn.abort()
                _end_job(world)
                assert "Job demo has ended: SUCCEEDED." in await _ends_with(process)
            world.store.put(running_job(port))
            async with program(world.argv("echo started; exec sleep 60", options=("-tt",))) as process:
                await _started(process)
                for conn in clients:
                    conn.abort()
                assert "The connection to demo worker-0 was lost." in await _ends_with(process)


async def test_a_slow_reader_holds_the_task_back_instead_of_filling_memory(
    sshd_world: World,
) -> None:
    """The client's connection is not read any more; the task's endless output must stop too."""
    world = sshd_world  # asyncssh as a task's server would buffer a whole window itself
    progress = world.path / "progress"
    script = world.path / "endless.py"
    script.write_text(
        "import sys\n"
        f"with open({str(progress)!r}, 'w', buffering=1) as progress:\n"
        "    for number in range(90):\n"
        "        sys.stdout.buffer.write(bytes(1_000_000))\n"
        "        print(number, file=progress)\n"
    )
    async with login(world) as conn:
        # A window far above the bound: what holds the output back is the gateway, not the channel's window.
        process = await conn.create_process(f"python3 {script}", window=1 << 30, encoding=None)
        total = len(await process.stdout.readexactly(1000))
        assert conn._transport is not None
        conn._transport.pause_reading()
        before = psutil.Process().memory_info().rss
        written = await _when_steady(progress)
        assert written < 60, "megabytes that left the task although nobody read them"
        assert psutil.Process().memory_info().rss - before < 64_000_000
        conn._transport.resume_reading()
        async with asyncio.timeout(60):
            while data := await process.stdout.read(1 << 20):
                total += len(data)
        assert total == 90_000_000


async def _when_steady(progress: Path) -> int:
    """The number of lines in the file once it has not grown for a second."""
    quiet_since, lines = time.monotonic(), -1
    async with asyncio.timeout(60):
        while time.monotonic() - quiet_since < 1:
            await asyncio.sleep(0.05)
            now = lines_in(progress)
            if now != lines:
                quiet_since, lines = time.monotonic(), now
    return lines


async def test_a_stopping_gateway_keeps_live_sessions_and_takes_no_new_ones(world: World) -> None:
    async with (
        gateway(world, drain_s=20) as stop,
        program(world.argv("echo started; read line; echo $line")) as process,
    ):
        await _started(process)
        stop.set()
        async with asyncio.timeout(60):
            while (await world.ssh("true")).status == 0:
                pass
        out, _ = await asyncio.wait_for(process.communicate(b"to the end\n"), 60)
        assert (process.returncode, out) == (0, b"to the end\n")


async def test_a_client_that_has_connected_when_the_gateway_stops_logs_in(world: World) -> None:
    async with gateway(world, drain_s=60) as stop, _connected(world) as early:
        stop.set()
        async with asyncio.timeout(60):
            while (await world.ssh("true")).status == 0:
                pass
            async with login(world, sock=early) as conn:
                assert (await conn.run("echo in")).stdout == "in\n"


async def test_a_silent_client_does_not_keep_a_gateway_from_stopping(world: World) -> None:
    async with gateway(world, drain_s=0.1) as stop, _connected(world) as silent:
        stop.set()
        reader, _ = await asyncio.open_connection(sock=silent)
        async with asyncio.timeout(60):
            assert b"The gateway is stopping." in await reader.read()


async def test_a_gateway_that_has_drained_long_enough_ends_its_sessions(world: World) -> None:
    async with (
        gateway(world, drain_s=0.1) as stop,
        program(world.argv("echo started; exec sleep 60", options=("-tt",))) as process,
    ):
        await _started(process)
        stop.set()
        assert "The gateway is stopping." in await _ends_with(process)


async def test_a_gateway_that_is_to_hurry_ends_its_sessions_at_once(world: World) -> None:
    hurry = asyncio.Event()
    async with (
        gateway(world, hurry, drain_s=60) as stop,
        program(world.argv("echo started; read line; echo $line; exec sleep 60", options=("-tt",))) as process,
    ):
        await _started(process)
        stop.set()
        assert process.stdin is not None
        process.stdin.write(b"still here\n")
        assert process.stdout is not None
        async with asyncio.timeout(60):
            assert b"still here" in await process.stdout.readline()
        hurry.set()
        assert "The gateway is stopping." in await _ends_with(process)


async def test_a_store_that_is_away_for_a_while_costs_no_session(world: World) -> None:
    async with program(world.argv("echo started; read line; echo $line")) as process:
        await _started(process)
        world.store.broken = True
        world.store.put(world.job)
        assert (await world.ssh("true")).status == 255
        world.store.broken = False
        out, _ = await asyncio.wait_for(process.communicate(b"still here\n"), 60)
        assert out == b"still here\n"


async def test_an_event_that_is_being_written_when_the_gateway_ends_is_written_once(tmp_path: Path) -> None:
    async with make_world(tmp_path) as world:
        note, writing, goes_on = world.store.events.note, asyncio.Event(), asyncio.Event()

        async def slow(uid: JobUid, events: Sequence[NewEvent], at: datetime, entry: AuditEvent | None = None) -> None:
            writing.set()
            await goes_on.wait()
            await note(uid, events, at, entry)

        world.store.events.note = slow  # type: ignore[method-assign]
        async with gateway(world) as stop:
            watchers = [task for task in asyncio.all_tasks() if task.get_name() == "gateway-watch"]
            assert (await world.ssh("true")).status == 0
            await asyncio.wait_for(writing.wait(), 60)
            stop.set()
            async with asyncio.timeout(60):
                await asyncio.wait(watchers, return_when=asyncio.FIRST_COMPLETED)
            assert world.store.noted == []
            goes_on.set()
        assert [event.type for _, event in world.store.noted] == ["access.login", "access.end"]
