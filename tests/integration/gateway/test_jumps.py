"""Jump mode: the client's own SSH runs to the task, through a stream of the gateway that it cannot read."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from pai_backend.access.keys import public_line
from pai_backend.model.rights import limits_of
from pai_backend.store.grants import Share
from pai_backend.testing.builders import make_uid
from tests.support.living import lives
from tests.support.ssh_world import LIMIT_S, World, eventually, make_world, program, run, running_job, write_key

pytestmark = pytest.mark.asyncio


async def task_world(tmp_path: Path) -> AsyncIterator[World]:
    """A task of the local engine, which knows the gateway's key and no user's."""
    async with make_world(tmp_path, "agent") as made:
        task_key = public_line(made.store.task_keys.pems[f"{made.job.uid}-0-0"])
        with (tmp_path / "known_hosts").open("a") as known:
            known.write(f"demo {task_key}\ndemo--worker-0 {task_key}\n")
        yield made


world = pytest_asyncio.fixture(task_world, name="world")


def _jump(world: World, target: str, *command: str, name: str = "alice") -> list[str]:
    """``ssh -J``, with the same strict options on both hops."""
    proxy = " ".join(world.argv(name=name, options=("-W", "%h:%p")))
    return ["ssh", *world.common(), "-o", f"ProxyCommand={proxy}", target, *command]


async def test_the_clients_own_ssh_reaches_the_task(world: World) -> None:
    user = os.environ.get("USER", "root")
    data = os.urandom(3_000_000)
    outcome = await run(_jump(world, f"{user}@demo", "sha256sum"), data)
    assert outcome.stdout.split()[0].decode() == hashlib.sha256(data).hexdigest(), outcome.stderr
    assert world.engine.dials == [(world.task().uid, world.task_port)]
    outcome = await run(_jump(world, f"{user}@demo--worker-0", "echo in", name="demo"))
    assert outcome.stdout == b"in\n", outcome.stderr
    noted = world.store.noted
    await eventually(lambda: "access.end" in [event.type for _, event in noted], "a jump's end is not told")
    assert next(event for _, event in noted if event.type == "access.end").payload["kind"] == "jump"


async def test_a_ride_is_for_the_key_that_the_gateway_let_in_alone(world: World) -> None:
    proxy = " ".join(world.argv(options=("-W", "%h:%p")))
    other = world.path / "other"
    world.store.register("alice", write_key(other))
    common = ["-i" if word == "-i" else word.replace(str(world.key), str(other)) for word in world.common()]
    outcome = await run(["ssh", *common, "-o", f"ProxyCommand={proxy}", "root@demo", "echo in"])
    assert (outcome.stdout, outcome.status) == (b"", 255)
    assert "Permission denied (publickey)" in outcome.stderr


@pytest.mark.parametrize("how", ["removed key", "lockout"])
async def test_what_ends_a_right_ends_its_jumps(world: World, how: str) -> None:
    async with program(_jump(world, "root@demo", "echo in; exec cat")) as client:
        assert client.stdout is not None
        async with asyncio.timeout(LIMIT_S):
            assert await client.stdout.readline() == b"in\n"
        if how == "lockout":
            world.store.grants.locked.add("alice")
            world.store.written()
        else:
            world.store.unregister(next(iter(world.store.registered)))
        async with asyncio.timeout(LIMIT_S):
            await client.wait()
    outcome = await run(_jump(world, "root@demo", "echo in"))
    assert outcome.stdout == b""


async def test_a_task_that_an_older_backend_started_takes_no_jumps_and_says_so(tmp_path: Path) -> None:
    async with make_world(tmp_path, "sshd") as old:
        outcome = await old.ssh(name="alice", options=("-W", "demo:22"))
    assert "does not support jumps" in outcome.stderr


async def test_a_jump_whose_client_is_killed_ends(world: World) -> None:
    user = os.environ.get("USER", "root")
    async with program(_jump(world, f"{user}@demo", "echo in; exec cat")) as client:
        assert client.stdout is not None
        async with asyncio.timeout(LIMIT_S):
            assert await client.stdout.readline() == b"in\n"
        ways = psutil.Process(client.pid).children(recursive=True)
        client.kill()
        await eventually(lambda: not any(map(lives, ways)), "the way of a jump outlives the client that went it")


async def test_jumps_that_may_not_be_are_refused_with_a_reason(world: World) -> None:
    unknown = await world.ssh(name="alice", options=("-W", "nothing:22"))
    assert 'No job that you may enter has the name "alice"' in unknown.stderr
    ended = running_job(world.task_port, name="over", uid=make_uid(3))
    world.store.put(ended.model_copy(update={"tasks": ()}))
    assert "Job over is running" in (await world.ssh(name="alice", options=("-W", "over:22"))).stderr
    world.key = world.path / "bob"
    world.store.register("bob", write_key(world.key))
    strange = await world.ssh(name="bob", options=("-W", "demo:22"))
    assert "open failed" in strange.stderr
    share = Share(world.job.uid, "bob", limits_of(["sftp"]), datetime.now(UTC), "alice")
    world.store.grants.given.append(share)
    assert "This login is restricted" in (await world.ssh(name="bob", options=("-W", "demo:22"))).stderr
    world.store.grants.given[:] = [replace(share, limits=limits_of([]))]
    greeting = await world.ssh(name="bob", stdin=b"", options=("-W", "demo:22"))
    assert world.engine.dials == [(world.task().uid, world.task_port)], greeting.stderr
