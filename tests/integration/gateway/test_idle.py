"""A job with an idle timeout behind the real gateway, agent, controller and engine, with OpenSSH as its user."""

from __future__ import annotations

import asyncio
import re
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic.alias_generators import to_camel

from pai_backend.access.gateway import noting
from pai_backend.access.gateway.options import GatewayOptions
from pai_backend.access.gateway.server import serve_gateway
from pai_backend.access.keys import gateway_host_public_key, known_hosts_line, parse_public_key
from pai_backend.controller import idle_clocks
from pai_backend.engine.local.agent import serve_agent
from pai_backend.model.job import Event, Job, State, StopCause
from pai_backend.model.spec import PortSpec
from pai_backend.store.base import UserKey
from pai_backend.store.grants import Act
from pai_backend.store.sql import Store
from pai_backend.testing.builders import make_role, make_spec
from tests.support.real_cluster import at_work, final, submit, until
from tests.support.ssh_world import answers, program, write_key
from tests.support.stores import opened

TIMEOUT_S = 5
PAGE = Path(__file__).parents[3] / "docs" / "idle.md"


def documented(kind: str) -> set[str]:
    """The fields of an event as docs/idle.md has them."""
    text = PAGE.read_text().partition(f"### `{kind}`")[2].partition("###")[0]
    return set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))


async def told(store: Store, job: Job, kind: str, number: int = 1) -> Event:
    """The event of that type and number, once it is there."""
    mark = -1
    async with asyncio.timeout(60):
        while len(found := await store.events.of_job(job.uid, type_=kind)) < number:
            assert not (await store.jobs.get(job.uid)).state.final, f"it ended before {kind}"
            mark = await store.changes.wait(mark, 1.0)
    return found[number - 1]


def client(path: Path, port: int, hosts: str) -> list[str]:
    """ssh with keepalives every second, which are no use."""
    (path / "known_hosts").write_text(hosts + "\n")
    return [
        *("ssh", "-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", f"Port={port}"),
        *("-o", f"UserKnownHostsFile={path / 'known_hosts'}", "-o", "GlobalKnownHostsFile=/dev/null"),
        *("-o", "IdentityAgent=none", "-o", "IdentitiesOnly=yes", "-i", str(path / "id")),
        *("-o", "ServerAliveInterval=1", "-o", "ServerAliveCountMax=60"),
    ]


@pytest.mark.asyncio
async def test_bytes_keep_a_job_alive_and_keepalives_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noting, "LOOK_S", 0.1)
    monkeypatch.setattr(idle_clocks, "SAFETY_S", 0.2)  # a new job is looked at soon
    stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
    async with opened(f"sqlite:///{tmp_path / 'pai.sqlite'}") as store, at_work(store, tmp_path / "engine") as engine:
        public, now = parse_public_key(write_key(tmp_path / "id")), datetime.now(UTC)
        await store.user_keys.add(UserKey(public.fingerprint, "alice", public.line, "", now), Act("alice", now))
        options = GatewayOptions(port=0, drain_s=0.1)
        serving = [
            asyncio.create_task(serve_agent(tmp_path / "engine", stop)),
            asyncio.create_task(serve_gateway(options, store, engine, stop, lambda _, port: ready.set_result(port))),
        ]
        try:
            roles = [make_role(command="sleep 600", ports=[PortSpec(label="ssh")])]
            spec = make_spec(roles=roles).model_copy(update={"idle_timeout_s": TIMEOUT_S})
            job = await until(store, (await submit(store, 1, spec)).uid, lambda each: each.state is State.RUNNING)
            assert job.tasks[0].placement is not None
            await answers(job.tasks[0].placement.ports["ssh"][0])
            hosts = known_hosts_line("127.0.0.1", await ready, await gateway_host_public_key(store))
            ssh = client(tmp_path, await ready, hosts)
            async with program([*ssh, f"{job.alias}@127.0.0.1", "cat"], stdin=-1, stdout=-1, stderr=-1) as user:
                warned = await is_kept_alive_by_its_bytes(store, job, user)
                await is_stopped_with_a_warning(store, job, user, ssh, warned)
        finally:
            stop.set()
            await asyncio.wait(serving, timeout=60)
    for task in serving:
        task.result()


async def echo(user: asyncio.subprocess.Process) -> None:
    """A line there and back: exactly the bytes that were sent."""
    assert user.stdin is not None
    assert user.stdout is not None
    user.stdin.write(b"here\n")
    line = await asyncio.wait_for(user.stdout.readline(), 60)
    assert line == b"here\n", await user.stderr.read() if user.stderr is not None else b""


async def is_kept_alive_by_its_bytes(store: Store, job: Job, user: asyncio.subprocess.Process) -> int:
    """Longer than its timeout without so much as a warning.

    Returns how many warnings came before that, because a busy machine carried the bytes too late.
    """
    async with asyncio.timeout(60):
        while not await store.idling.clocks([job.uid]):
            await echo(user)
    warned, began = 0, time.monotonic()
    last = began
    while last < began + TIMEOUT_S + 1:
        await echo(user)
        now = time.monotonic()
        if now - last > 1:
            warned, began = len(await store.events.of_job(job.uid, type_="job.idle-warning")), now
        last = now
        await asyncio.sleep(0.3)  # as somebody types
    assert len(await store.events.of_job(job.uid, type_="job.idle-warning")) == warned
    clock = (await store.idling.clocks([job.uid]))[job.uid]
    assert clock.used_by == "ssh"
    return warned


async def is_stopped_with_a_warning(
    store: Store, job: Job, user: asyncio.subprocess.Process, ssh: list[str], warned: int
) -> None:
    """A login that is only open is no use; a use after the warning takes it back; then the job ends as idle."""
    warning = await told(store, job, "job.idle-warning", warned + 1)
    await echo(user)
    over = await told(store, job, "job.idle-over", warned + 1)
    assert over.payload == {"by": "ssh"}
    async with program([*ssh, "-tt", f"{job.alias}@127.0.0.1", "echo up; cat"], stdin=-1, stdout=-1, stderr=-1) as seen:
        again = await told(store, job, "job.idle-warning", warned + 2)
        await is_told_at_the_terminal(seen)
    assert warning.payload.keys() == again.payload.keys()
    assert set(map(to_camel, again.payload)) == {*documented("job.idle-warning"), "textWording"}
    assert over.payload.keys() == documented("job.idle-over")
    done = await final(store, job)
    exit_ = done.exit
    assert exit_ is not None
    assert (done.state, exit_.cause) == (State.STOPPED, StopCause.IDLE)
    assert exit_.message == "idle: nothing has used it for 5s, its idleTimeout"
    (asked,) = await store.events.of_job(job.uid, type_="job.stop-requested")
    wording = asked.payload.pop("reason_wording")
    assert isinstance(wording, dict)
    assert wording["arguments"] == {"timeout": "5s"}
    assert asked.payload == {"by": "", "cause": "idle", "reason": exit_.message}
    assert asked.at.isoformat() >= str(again.payload["stop_at"])
    rest, _ = await asyncio.wait_for(user.communicate(), 60)
    assert rest == b"", "nothing is added to what a command says"


async def is_told_at_the_terminal(person: asyncio.subprocess.Process) -> None:
    """The warning comes on the terminal's other stream, and its own has what the command said and no more."""
    assert person.stderr is not None
    assert person.stdout is not None
    async with asyncio.timeout(60):
        text = (await person.stderr.readuntil(b"keep it running.")).decode()
        assert (await person.stdout.readline()) == b"up\r\n"
    assert re.search(
        r"pai: This job is idle and will be stopped at \d\d:\d\d:\d\d UTC. Type something to keep it running", text
    )
