"""SSH, attacked by users with a limited share, by other users, and by strangers."""

from __future__ import annotations

import asyncio
import contextlib
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncssh
import pytest
from asyncssh.packet import String

from tests.attack.site import ADMIN, LIMIT_S, OTHER, OWNER, Site, new_key, ok
from tests.support.ssh_channels import INIT, answers_in, asks, make_directory, new_channel, send
from tests.support.ssh_world import eventually

SIZE = 400_000
WINDOW = 65_536


@contextlib.contextmanager
def share(site: Site, alias: str, *only: str) -> Iterator[None]:
    """Let the other user in, to do these things only."""
    with site.http(OWNER) as client:
        ok(client.post(f"/api/v2/jobs/{alias}/shares", json={"user": OTHER, "only": list(only), "lifetimeS": 600}))
        yield
        ok(client.delete(f"/api/v2/jobs/{alias}/shares/{OTHER}"))


@contextlib.asynccontextmanager
async def login(site: Site, user: str, alias: str) -> AsyncIterator[asyncssh.SSHClientConnection]:
    host, port = site.gateway()
    known, key = str(site.known_hosts()), str(site.key(user))
    async with asyncssh.connect(
        host, port, username=alias, client_keys=[key], known_hosts=known, config=None, agent_path=None
    ) as conn:
        yield conn


@pytest.mark.attack(1, "a share for reading files writes one, by a second subsystem request in mid-packet")
@pytest.mark.asyncio
async def test_a_share_for_reading_writes_nothing(site: Site, sleeper: str) -> None:
    made = site.path / "written-by-a-reader"
    packet = make_directory(made, number=0x00000400)
    with share(site, sleeper, "sftp-read"):
        async with login(site, OTHER, sleeper) as conn:
            channel, heard = await new_channel(conn)
            assert await asks(channel, b"subsystem", String(b"sftp"))
            send(channel, INIT)
            send(channel, packet[:3])
            await asks(channel, b"subsystem", String(b"sftp"))
            send(channel, packet[3:])
            await eventually(answers_in(heard, 2), "the server does not answer")
    assert not made.exists()


@pytest.mark.attack(1, "a share for reading opens a named pipe, and nobody gets into any task of the node any more")
@pytest.mark.asyncio
async def test_a_reader_that_waits_keeps_nobody_out(site: Site, sleeper: str) -> None:
    assert site.ssh(OWNER, sleeper, "mkfifo pipe").returncode == 0
    with share(site, sleeper, "sftp-read"):
        async with login(site, OTHER, sleeper) as conn:
            sftp = await conn.start_sftp_client()

            async def read() -> None:
                await sftp.open("pipe", "rb")

            waiting = asyncio.create_task(read())
            done = await asyncio.to_thread(site.ssh, OWNER, sleeper, "echo in")
            assert not waiting.done()
            waiting.cancel()
    assert (done.returncode, done.stdout) == (0, "in\n"), done.stderr


@pytest.mark.attack(1, "a share for reading and for the port ssh runs a command, by the key of the task's peers")
def test_a_share_of_the_port_ssh_is_refused(site: Site, sleeper: str) -> None:
    wanted = {"user": OTHER, "only": ["sftp-read", "port:ssh"], "lifetimeS": 600}
    with site.http(OWNER) as client:
        assert client.post(f"/api/v2/jobs/{sleeper}/shares", json=wanted).status_code == 400


@pytest.mark.attack(2, "a share for files runs a command, by the environment of the file server")
@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["BASH_ENV", "ENV", "LD_PRELOAD", "PYTHONPATH", "GIT_SSH_COMMAND", "PERL5OPT", "XYZ"])
async def test_a_share_for_files_brings_no_environment(site: Site, sleeper: str, name: str) -> None:
    with share(site, sleeper, "sftp"):
        async with login(site, OTHER, sleeper) as conn:
            channel, _ = await new_channel(conn)
            assert not await asks(channel, b"env", String(name), String("/tmp/x"))


@pytest.mark.attack(4, "silent connections, of one source or of 520, keep others from logging in")
@pytest.mark.asyncio
@pytest.mark.parametrize("sources", [1, 520])
async def test_silent_connections_lock_nobody_out(site: Site, sleeper: str, sources: int, many_files: None) -> None:
    host, port = site.gateway()
    site.key(OWNER)

    async def silent(number: int) -> asyncio.StreamWriter:
        source = "127.0.0.1" if sources == 1 else f"127.1.{number % sources // 250}.{1 + number % sources % 250}"
        return (await asyncio.open_connection(host, port, local_addr=(source, 0)))[1]

    held = await asyncio.gather(*(silent(number) for number in range(600)))
    done = await asyncio.to_thread(site.ssh, OWNER, sleeper, "echo in")
    for writer in held:
        writer.close()
    assert (done.returncode, done.stdout) == (0, "in\n"), done.stderr


@pytest.mark.attack(5, "one login opens jumps without end")
@pytest.mark.asyncio
async def test_jumps_of_a_login_are_bounded(site: Site, sleeper: str) -> None:
    async with login(site, OWNER, sleeper) as conn:
        for _ in range(20):
            await conn.open_connection(sleeper, 22)
        with pytest.raises(asyncssh.ChannelOpenError, match="20 channels open, the maximum"):
            await conn.open_connection(sleeper, 22)
    assert site.ssh(OWNER, sleeper, "echo in").stdout == "in\n"


class _Slow(asyncssh.SSHClientSession[bytes]):
    """Reads nothing until it is told to."""

    def __init__(self) -> None:
        self.read, self.status, self.over = 0, -1, asyncio.Event()

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self.channel = chan

    def session_started(self) -> None:
        self.channel.pause_reading()

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        self.read += len(data)

    def exit_status_received(self, status: int) -> None:
        self.status = status

    def connection_lost(self, exc: Exception | None) -> None:
        self.over.set()


@pytest.mark.attack(6, "a client that stalls for 4 s reads less than a command wrote, and status 0")
@pytest.mark.asyncio
async def test_a_client_that_stalls_reads_everything(site: Site, sleeper: str) -> None:
    """Sizes about what pipes and windows hold, so that some commands end while nobody reads."""
    async with login(site, OWNER, sleeper) as conn:
        sizes = [WINDOW + 65_536 + more for more in range(1024, 12_288, 1024)]
        sessions: list[_Slow] = []
        for size in sizes:
            command = f"head -c {size} /dev/zero | tr '\\0' x"
            _, session = await conn.create_session(_Slow, command, term_type="xterm", encoding=None, window=WINDOW)
            assert isinstance(session, _Slow)
            sessions.append(session)
        overs = [asyncio.create_task(session.over.wait()) for session in sessions]
        await asyncio.wait(overs, timeout=4)  # the attack's own stall
        for session in sessions:
            session.channel.resume_reading()
        async with asyncio.timeout(LIMIT_S):
            await asyncio.gather(*overs)
    assert [(session.read, session.status) for session in sessions] == [(size, 0) for size in sizes]


@pytest.mark.attack(8, "a stranger learns by their public keys who is known, and a user which names others' jobs have")
def test_keys_and_names_tell_nothing(site: Site, sleeper: str, tmp_path: Path) -> None:
    new_key(tmp_path / "unknown")
    site.key(OWNER)
    public = {"known": site.path / f"{OWNER}-key.pub", "unknown": tmp_path / "unknown.pub"}
    said = {
        (who, name): _probe(site, path, name, tmp_path)
        for who, path in public.items()
        for name in (sleeper, "no-such-job")
    }
    assert len(set(said.values())) == 1, said
    seen = [site.ssh(OTHER, name, "true") for name in (sleeper, "no-such-job")]
    words = [(done.returncode, done.stderr.replace(sleeper, "X").replace("no-such-job", "X")) for done in seen]
    assert words[0] == words[1]
    assert words[0][0] != 0


def _probe(site: Site, public: Path, name: str, path: Path) -> bool:
    """Whether the gateway wants a signature of the key whose private half nobody has."""
    alone = path / "alone.pub"
    alone.write_text(public.read_text())
    host, port = site.gateway()
    line = ["ssh", "-v", *site.ssh_options(alone, "PreferredAuthentications=publickey"), "-p", str(port)]
    said = subprocess.run([*line, f"{name}@{host}", "true"], capture_output=True, text=True, timeout=LIMIT_S)
    assert said.returncode == 255
    return "Server accepts key" in said.stderr


@pytest.mark.attack(9, "a client that knows RSA host keys only cannot check the gateway's")
def test_the_gateway_shows_an_rsa_host_key_that_is_pinned(site: Site, sleeper: str) -> None:
    host, port = site.gateway()
    scan = ["ssh-keyscan", "-T", "60", "-t", "rsa,ed25519", "-p", str(port), host]
    shown = subprocess.run(scan, capture_output=True, text=True, timeout=LIMIT_S).stdout.splitlines()
    kinds = {line.split()[1] for line in shown if not line.startswith("#")}
    assert kinds == {"ssh-ed25519", "ssh-rsa"}
    with site.http(OWNER) as client:
        pinned = client.get(f"/api/v2/jobs/{sleeper}/ssh").json()["knownHosts"]
    assert {line.strip() for line in shown if not line.startswith("#")} <= set(pinned)


@pytest.mark.attack(11, "the gateway offers algorithms that ssh-audit calls weak")
def test_an_audit_finds_nothing_weak(site: Site) -> None:
    host, port = site.gateway()
    audit = [str(Path(sys.executable).with_name("ssh-audit")), "--skip-rate-test", "--no-colors", "-l", "warn"]
    said = subprocess.run([*audit, "-p", str(port), host], capture_output=True, text=True, timeout=LIMIT_S).stdout
    found = set(re.findall(r"\[(?:fail|warn)\] (.*)", said))
    assert found == {"does not provide protection against post-quantum attacks"}, said  # of curve25519 alone


@pytest.mark.attack(3, "a task's own port lets in what the gateway would refuse: the job's key, an administrator")
def test_a_tasks_own_port_lets_no_user_in(site: Site, sleeper: str, tmp_path: Path) -> None:
    key = tmp_path / "key"
    public = new_key(key)
    with site.http(OWNER) as owner, site.http(ADMIN) as admin:
        (status,) = ok(owner.get(f"/api/v2/jobs/{sleeper}")).json()["taskRoles"][0]["taskStatuses"]
        (own,) = status["ports"]["ssh"]
        (tmp_path / "own").touch(0o600)
        (tmp_path / "own").write_text(ok(owner.get(f"/api/v2/jobs/{sleeper}/key")).text)
        wanted = {"publicKey": public, "job": f"{OWNER}~{sleeper}", "lifetimeS": 600}
        issued = admin.post("/api/v2/certificates", json=wanted)
        if issued.status_code < 300:
            Path(f"{key}-cert.pub").write_text(issued.json()["certificate"] + "\n")
    for offered in (tmp_path / "own", key, site.key(OWNER)):
        line = ["ssh", *site.ssh_options(offered, "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null")]
        line += ["-p", str(own), "root@127.0.0.1", "echo in"]
        done = subprocess.run(line, capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL)
        assert (done.returncode, done.stdout) == (255, ""), offered


@pytest.mark.attack(3, "an administrator enters another's job and nobody is told")
def test_an_administrator_enters_by_a_stated_act(site: Site, sleeper: str, tmp_path: Path) -> None:
    wanted = {"publicKey": new_key(tmp_path / "key"), "job": f"{OWNER}~{sleeper}", "lifetimeS": 600}
    with site.http(ADMIN) as admin, site.http(OWNER) as owner:
        assert admin.post("/api/v2/certificates", json=wanted).status_code in (400, 403, 404)
        stated = ok(admin.post("/api/v2/certificates", json={**wanted, "asAdmin": True, "reason": "disk is full"}))
        assert stated.status_code == 201
        events = ok(owner.get(f"/api/v2/jobs/{sleeper}/events")).json()["data"]
    assert [event["payload"]["reason"] for event in events if event["type"] == "job.admin-entry"] == ["disk is full"]
