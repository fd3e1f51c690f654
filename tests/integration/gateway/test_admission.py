"""Who gets in, and what those read who do not."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncssh
import pytest
import pytest_asyncio

from pai_backend.access.gateway import upstream
from pai_backend.access.gateway.pace import Pace
from pai_backend.access.keys import known_hosts_line, make_ed25519
from pai_backend.engine.base import Connection, EngineError
from pai_backend.model.ids import TaskUid
from pai_backend.model.job import JobExit, Phase, State, TaskExit
from pai_backend.model.node import Placement
from pai_backend.testing.builders import make_role, make_spec, make_uid
from tests.support.ssh_world import World, eventually, gateway, login, make_world, running_job, write_key

pytestmark = pytest.mark.asyncio

DENIED = "Permission denied (publickey)."


@pytest_asyncio.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with make_world(tmp_path) as made:
        yield made


def _two_roles(world: World) -> None:
    spec = make_spec("big", roles=[make_role("Master"), make_role("worker", instances=3)])
    world.store.put(running_job(world.task_port, name="big", uid=make_uid(7), spec=spec))


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("big", "0-0"),
        ("big--worker-2", "1-2"),
        ("big.worker-1", "1-1"),
        ("alice+big", "0-0"),
        ("alice+big+worker-2", "1-2"),
    ],
)
async def test_every_form_of_a_name_reaches_its_task(world: World, name: str, task: str) -> None:
    _two_roles(world)
    # All tasks of this job answer on one port, each with its own host key: only the dial tells them apart.
    for index in ("0-0", "1-0", "1-1", "1-2"):
        world.store.task_keys.pems[f"{make_uid(7)}-{index}"] = world.store.task_keys.pems[f"{world.job.uid}-0-0"]
    assert (await world.ssh("echo in", name=name)).stdout == b"in\n"
    assert world.engine.dials == [(f"{make_uid(7)}-{task}-0", world.task_port)]


async def test_a_task_is_entered_through_a_stream_without_an_address(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an engine makes it that passes bytes on itself, such as through a cluster's API server."""
    straight, pumps = world.engine.dial, []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.write_eof()

    async def passed_on(placement: Placement, uid: TaskUid, port: int) -> Connection:
        there = await straight(placement, uid, port)
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours)
        pumps.extend([asyncio.create_task(pump(there.reader, writer)), asyncio.create_task(pump(reader, there.writer))])
        return Connection(*await asyncio.open_connection(sock=theirs))

    monkeypatch.setattr(world.engine, "dial", passed_on)
    assert (await world.ssh("echo in")).stdout == b"in\n"
    for each in pumps:
        each.cancel()
    await asyncio.gather(*pumps, return_exceptions=True)


async def test_a_stranger_is_denied_whatever_the_name(world: World) -> None:
    known = world.key
    world.key = world.path / "stranger"
    write_key(world.key)
    answers_to_stranger = {(await world.ssh("true", name=name)).stderr for name in ("demo", "nothing", "alice+demo")}
    assert {text.split(": ", 1)[1].strip() for text in answers_to_stranger} == {DENIED}
    assert world.engine.dials == []
    world.key = known
    assert (await world.ssh("true")).status == 0


@pytest.mark.parametrize("options", [(), ("-W", "127.0.0.1:22"), ("-W", "demo:22")])
async def test_a_colleague_cannot_tell_my_job_from_none(world: World, options: tuple[str, ...]) -> None:
    world.key = world.path / "bob"
    world.store.register("bob", write_key(world.key))
    asked: list[str] = []
    for where, name in (
        (world.store.jobs, "by_alias"),
        (world.store.grants, "shares_in_force"),
    ):  # of jobs: keys are watched besides
        setattr(where, name, _noting(getattr(where, name), name, asked))

    async def attempt(name: str) -> tuple[object, ...]:
        asked.clear()
        given = tuple(word.replace("demo", name) for word in options)
        outcome = await world.ssh(*(() if options else ("true",)), name=name, options=given)
        return outcome.status, outcome.stdout, outcome.stderr.replace(name, "NAME"), sorted(asked)

    assert await attempt("demo") == await attempt("none")
    assert world.engine.dials == []


def _noting(method: Callable[..., Any], name: str, asked: list[str]) -> Callable[..., Any]:
    def noted(*args: Any) -> Any:
        asked.append(name)
        return method(*args)

    return noted


@pytest.mark.parametrize("key", ["registered", "unknown"])
async def test_a_clock_tells_nothing_of_jobs_of_others(world: World, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at one waits for the next of some fixed moments, as a look at none does; at one's own none waits."""
    waits: list[str] = []

    async def counted(pace: Pace) -> None:
        waits.append("")

    monkeypatch.setattr(Pace, "next_moment", counted)
    assert (await world.ssh("echo in")).stdout == b"in\n"
    assert waits == []
    world.key = world.path / "another"
    public = write_key(world.key)
    if key == "registered":
        world.store.register("bob", public)
    counts = []
    for name in (world.job.alias, "no-such-job", f"alice+{world.job.name}", "alice+no-such"):
        waits.clear()
        assert (await world.ssh("true", name=name)).status == 255
        counts.append(len(waits))
    assert len(set(counts)) == 1
    assert counts[0] > 0


async def test_a_public_key_tells_a_stranger_nothing(world: World) -> None:
    """Each public key is answered as if it were registered, and nothing is looked up before a signature is right."""
    asked: list[str] = []
    world.store.grants.key = _noting(world.store.grants.key, "key", asked)  # type: ignore[method-assign]
    registered = asyncssh.read_private_key(str(world.key))
    for key in (registered, asyncssh.generate_private_key("ssh-ed25519")):
        for name in ("demo", "none"):
            pair = asyncssh.load_keypairs([asyncssh.generate_private_key("ssh-ed25519")])[0]
            pair.public_data = key.public_data
            signed: list[bytes] = []
            setattr(pair, "sign", _noting_bytes(pair.sign, signed))  # noqa: B010
            with pytest.raises(asyncssh.PermissionDenied):
                await asyncssh.connect(
                    *("127.0.0.1", world.port),
                    username=name,
                    client_keys=[pair],
                    known_hosts=str(world.path / "known_hosts"),
                    config=None,
                    agent_path=None,
                )
            assert len(signed) == 1, "the gateway did not ask for a signature"
    assert asked == []


def _noting_bytes(sign: Callable[[bytes], bytes], signed: list[bytes]) -> Callable[[bytes], bytes]:
    def noted(data: bytes) -> bytes:
        signed.append(data)
        return sign(data)

    return noted


async def test_a_password_is_never_asked_for(world: World) -> None:
    with pytest.raises(asyncssh.PermissionDenied):
        await asyncssh.connect(
            "127.0.0.1",
            world.port,
            username="demo",
            password="secret",
            client_keys=None,
            agent_path=None,
            config=None,
            known_hosts=str(world.path / "known_hosts"),
        )


async def test_the_right_key_may_come_after_six_wrong_ones(world: World) -> None:
    options: list[str] = []
    for number in range(6):
        write_key(world.path / f"wrong-{number}")
        options += ["-i", str(world.path / f"wrong-{number}")]
    outcome = await world.ssh("echo in", options=tuple(options))
    assert outcome.stdout == b"in\n", outcome.stderr


async def _refusal(world: World, name: str | None = None) -> str:
    outcome = await world.ssh("echo never", name=name)
    assert outcome.status == 255
    assert outcome.stdout == b""
    assert outcome.stderr.count("\n") == 1
    return outcome.stderr.strip()


async def test_an_unknown_name_is_explained_to_a_registered_user(world: World) -> None:
    assert await _refusal(world, "typo") == (
        'pai: No job that you may enter has the name "typo". The list of your jobs shows SSH names.'
    )


async def test_an_unknown_task_is_answered_with_those_that_exist(world: World) -> None:
    _two_roles(world)
    assert await _refusal(world, "big--worker-3") == (
        'pai: Job big has no task "worker-3". Its tasks: master-0, worker-0 to worker-2.'
    )


async def test_a_queued_job_tells_why_it_waits(world: World) -> None:
    waiting = {"state": State.WAITING, "phase": Phase.QUEUED, "why": "needs 4 GPUs on one node; carol has 1 free."}
    world.store.put(world.job.model_copy(update=waiting))
    assert await _refusal(world) == (
        "pai: Job demo is queued: needs 4 GPUs on one node; carol has 1 free. Try again when it runs."
    )


async def test_a_finished_job_tells_how_it_ended(world: World) -> None:
    verdict = JobExit(status=3, message="task worker-0 exited with 3")
    world.store.put(world.job.model_copy(update={"state": State.FAILED, "exit": verdict}))
    assert await _refusal(world) == "pai: Job demo has ended: FAILED: task worker-0 exited with 3."


async def test_a_finished_task_of_a_running_job_tells_its_status(world: World) -> None:
    done = {"state": State.SUCCEEDED, "exit": TaskExit(code=0, at=datetime.now(UTC))}
    world.store.put(world.job.model_copy(update={"tasks": (world.task().model_copy(update=done),)}))
    assert await _refusal(world) == "pai: Task worker-0 of job demo has ended with exit status 0."


async def test_a_task_whose_server_comes_back_in_time_is_entered(world: World) -> None:
    straight, tried = world.engine.dial, []

    async def away_at_first(placement: Placement, uid: TaskUid, port: int) -> Connection:
        tried.append(port)
        if len(tried) < 3:
            raise EngineError("nothing answers")
        return await straight(placement, uid, port)

    world.engine.dial = away_at_first  # type: ignore[method-assign]
    assert (await world.ssh("echo in")).stdout == b"in\n"
    assert len(tried) == 3


async def test_a_task_whose_server_is_away(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream, "REDIAL_S", 0.2)
    world.store.put(running_job(1))
    assert "cannot be reached: nothing answers on its SSH port" in await _refusal(world)


async def test_another_host_key_at_the_tasks_place_is_refused(world: World) -> None:
    world.store.task_keys.pems[f"{world.job.uid}-0-0"] = make_ed25519("other")[0]
    assert "host key of demo worker-0 is wrong" in await _refusal(world)


async def test_a_refusal_in_a_terminal_reads_the_same(world: World) -> None:
    outcome = await world.ssh(name="typo", options=("-tt",), stdin=b"")
    assert outcome.status == 255
    assert 'No job that you may enter has the name "typo"' in outcome.stderr
    assert outcome.stdout == b""


async def test_a_refused_forwarding_carries_the_reason(world: World) -> None:
    async with login(world, "typo") as conn:
        with pytest.raises(asyncssh.ChannelOpenError, match="No job that you may enter has"):
            await conn.open_connection("127.0.0.1", 1)


async def test_a_refused_connection_can_enter_once_the_job_runs(world: World) -> None:
    world.store.put(world.job.model_copy(update={"state": State.WAITING, "why": "queue"}))
    async with login(world) as conn:
        assert "is queued" not in str((await conn.run("echo in")).stdout)
        world.store.put(world.job)
        assert (await conn.run("echo in")).stdout == "in\n"


async def test_a_client_refuses_a_gateway_with_another_key(world: World) -> None:
    other = known_hosts_line("127.0.0.1", world.port, make_ed25519("")[1])
    (world.path / "known_hosts").write_text(other + "\n")
    outcome = await world.ssh("echo never")
    assert outcome.status == 255
    assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in outcome.stderr


async def test_the_host_key_outlives_the_gateway(world: World) -> None:
    first = (world.path / "known_hosts").read_text().split()[1:]
    async with gateway(world):
        assert (world.path / "known_hosts").read_text().split()[1:] == first
        assert (await world.ssh("echo in")).stdout == b"in\n"


async def test_logs_tell_who_and_never_a_key_or_a_command(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    fingerprint = next(iter(world.store.registered))
    await world.ssh("echo s3cr3t-command")
    await eventually(lambda: "disconnect name=demo" in caplog.text, "the end of a login is not logged")
    text = caplog.text
    assert f"login name=demo user=alice key={fingerprint} from=127.0.0.1:" in text
    assert "client='SSH-2.0-OpenSSH" in text
    assert "bytes_in=" in text
    assert "s3cr3t" not in text
    assert "PRIVATE" not in text
    assert world.key.read_text().splitlines()[1] not in text


@pytest.mark.parametrize("sources", [1, 200], ids=["one source", "many sources"])
async def test_silent_strangers_lock_nobody_out(tmp_path: Path, sources: int) -> None:
    """The oldest of them make room, for as long as they are silent."""
    limits: dict[str, Any] = {"max_unauthenticated": 40, "max_unauthenticated_per_source": 8, "login_timeout_s": 600.0}
    async with make_world(tmp_path, **limits) as world:
        silent = [
            await asyncio.open_connection("127.0.0.1", world.port, local_addr=(_address(number % sources), 0))
            for number in range(200)
        ]
        async with asyncio.timeout(60):
            for reader, _ in silent[: 200 - 40]:
                assert (await reader.read()).startswith(b"SSH-2.0-")  # to its end
        assert (await world.ssh("echo in")).stdout == b"in\n"
        here = world.ssh("echo in", options=("-b", _address(199 % sources)))
        assert (await here).stdout == b"in\n"  # from where strangers are, too
        for _, writer in silent:
            writer.close()


def _address(number: int) -> str:
    return f"127.0.{1 + number // 200}.{1 + number % 200}"


async def test_a_stranger_who_stays_silent_is_ended_in_time(tmp_path: Path) -> None:
    async with make_world(tmp_path, login_timeout_s=1.0) as world:
        reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
        async with asyncio.timeout(60):
            assert (await reader.read()).startswith(b"SSH-2.0-")
        writer.close()
