"""What ends a login, and what does not: removed keys, ended jobs, a killed front, a client that says nothing."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conformance.clients.entry import LIMIT_S, Entry
from tests.conformance.engines.documents import commands, submitted
from tests.conformance.engines.room import AGAIN, Job, Room
from tests.support.backend_process import kill, until
from tests.support.ssh_world import make_world, program

SLEEP = "exec sleep 1000"
KEPT = "echo started; read line; echo $line"


@contextmanager
def session(room: Room, job: Job, entry: Entry) -> Iterator[subprocess.Popen[bytes]]:
    """A login that has begun; it does not outlive the block."""
    until(lambda: AGAIN not in room.ssh(job, "true").stderr)
    line = entry.openssh("ssh", entry.address(), KEPT)
    pipe = subprocess.PIPE
    with subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.readline() == b"started\n", process.stderr.read()
            yield process
        finally:
            process.kill()


def cut(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """How a login was ended whose client still had much to say: its status and its last words.

    That it is within 2 s is added up in unit/gateway/test_cut_in_time.py.
    """
    status = process.wait(LIMIT_S)
    assert process.stderr is not None
    return status, process.stderr.read().decode()


@submitted(commands(SLEEP))
def test_a_removed_key_ends_its_logins_at_once_and_opens_nothing_any_more(room: Room, job: Job, tmp_path: Path) -> None:
    job.running()
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(key)], check=True)
    added = room.client.add_key(key.with_suffix(".pub").read_text().strip())
    way = room.entry(job)
    entry = Entry(way.host, way.port, way.login, way.host_key, key, tmp_path / "home")
    with session(room, job, entry) as removed, session(room, job, way) as kept:
        room.client.delete_key(added["fingerprint"])
        status, text = cut(removed)
        assert status == 255
        assert "key was removed" in text
        out, _ = kept.communicate(b"still here\n", timeout=LIMIT_S)
        assert (kept.returncode, out) == (0, b"still here\n")
    refused = entry.run(entry.openssh("ssh", entry.address(), "echo in"))
    assert (refused.status, refused.out) == (255, b"")
    assert "Permission denied (publickey)" in refused.err


@submitted(commands(SLEEP))
def test_the_end_of_a_job_ends_its_logins(room: Room, job: Job) -> None:
    job.running()
    with session(room, job, room.entry(job)) as process:
        job.stop()
        job.ended("STOPPED")
        status, _ = cut(process)
    assert status != 0


@submitted(commands(SLEEP))
@pytest.mark.parametrize("room", ["local"], indirect=True)
def test_a_killed_front_costs_no_login(room: Room, job: Job) -> None:
    """api and controller are one process; the gateway is another."""
    job.running()
    with session(room, job, room.entry(job)) as process:
        (front,) = [child for roles, child in room.backend.children().items() if "api" in roles]
        kill(front)
        until(lambda: not front.is_running() and room.backend.ready())
        out, _ = process.communicate(b"still here\n", timeout=LIMIT_S)
        assert (process.returncode, out) == (0, b"still here\n")
    assert room.ssh(job, "echo again").stdout == b"again\n"


@pytest.mark.asyncio
async def test_a_client_that_says_nothing_for_long_is_asked_and_kept(tmp_path: Path) -> None:
    """150 s of silence are five of the gateway's questions; here they come each 0.5 s and not each 30 s."""
    async with make_world(tmp_path, "sshd", keepalive_s=0.5, keepalive_count=4) as world:
        line = world.argv("cat", options=("-o", "LogLevel=DEBUG3", "-o", "ServerAliveInterval=0"))
        async with program(line) as process, asyncio.timeout(LIMIT_S):
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            asked = 0
            while asked < 6:
                said = await process.stderr.readline()
                assert said, "the connection has ended"
                asked += b"rtype keepalive@openssh.com" in said
            process.stdin.write(b"still here")
            process.stdin.write_eof()
            out, _ = await asyncio.gather(process.stdout.read(), process.stderr.read())
            assert (out, await process.wait()) == (b"still here", 0)
