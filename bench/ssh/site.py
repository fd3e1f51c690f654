"""Two ways to one SSH server: through a gateway of ours, and through a second sshd of Debian's.

The task's server is Debian's sshd for both, as it is OpenSSH's in a container, so that only what stands before it
differs; a second task of the job has one that starts no processes. The gateway is the process that ``serve --role
gateway`` runs, on a real store; the job that it finds there was written here, and "runs" because a server with the
task's host key answers at the task's port. All on loopback.
"""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil
import yaml

from bench.figures import CannotRun
from bench.processes import ended, running
from pai_backend.access.keys import (
    PublicKey,
    gateway_host_public_key,
    gateway_public_key,
    known_hosts_alias_line,
    make_ed25519,
    parse_public_key,
    public_line,
    task_host_key,
)
from pai_backend.engine.jumps import JUMP_SOCKET
from pai_backend.model.ids import slot_of
from pai_backend.model.job import Job, Phase, State
from pai_backend.store.base import UserKey
from pai_backend.store.grants import Act
from pai_backend.store.keyring import KeyFile
from pai_backend.store.sql import Store
from pai_backend.testing.builders import make_job, make_placement, make_role, make_spec
from pai_backend.testing.free_ports import free_ports

USER = "bench"
ALIAS = "bench-job"
QUIET = f"{ALIAS}--worker-1"
"""User name for the task whose sessions start no process."""
BRIDGE, JUMP, PEER, DIRECT = "bridge", "jump", "peer", "direct"
"""Hosts of the client's configuration: through the gateway, by ``ssh -J`` through the gateway, by ``ssh -J`` through
sshd, and with nothing between."""

KEX = "curve25519-sha256"  # what both can do: OpenSSH prefers a dearer one of its own where it meets itself
CIPHER = "aes128-gcm@openssh.com"
START_S = 20.0
LIMITS = {"max_unauthenticated_per_source": 512, "max_logins_per_user": 4000}
FILES = 10_000  # open at once: each of 2,000 logins is two sockets of the gateway


@dataclass(frozen=True)
class Site:
    """What a client needs to go either way, and the gateway's process."""

    home: Path
    gateway: psutil.Process
    gateway_port: int
    sshd_port: int
    """Of the sshd that stands where the gateway does."""

    def cpu_s(self) -> float:
        """CPU time of the gateway so far."""
        times = self.gateway.cpu_times()
        return float(times.user + times.system)

    def config(self, cipher: str = CIPHER) -> Path:
        """The client's configuration with one cipher for all connections; empty: as OpenSSH chooses."""
        return self.home / f"ssh_config{'-' if cipher else ''}{cipher.partition('@')[0]}"

    def ssh(self, host: str, *words: str, cipher: str = CIPHER) -> list[str]:
        """The command line of a client."""
        return ["ssh", "-F", str(self.config(cipher)), host, *words]

    def sftp(self, host: str, batch: Path) -> list[str]:
        """The command line of a file transfer; ``batch`` has its commands."""
        return ["sftp", "-q", "-F", str(self.config()), "-b", str(batch), host]


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    """Both ways, until the end of the block. Raises CannotRun where there is no sshd, or no right to run it."""
    program = _needed()
    with tempfile.TemporaryDirectory(prefix="pai-bench-") as scratch:
        home = Path(scratch)
        data_dir = home / "data"
        data_dir.mkdir(mode=0o700)
        ports = _Ports(*free_ports(4))
        keys = await _write_store(data_dir, home / "id", (ports.task, ports.quiet))
        async with AsyncExitStack() as stack:
            config = _write_config(home / "backend.yaml", ports.gateway)
            gateway = await stack.enter_async_context(running(config, data_dir, "gateway"))
            await stack.enter_async_context(_sshd(program, home / "task", ports.task, keys.tasks[0], keys.allowed))
            await stack.enter_async_context(_jumps(home / "task"))
            await stack.enter_async_context(_quiet(home / "quiet", ports.quiet, keys.tasks[1], keys.allowed))
            jump_key, _ = make_ed25519("sshd")
            await stack.enter_async_context(_sshd(program, home / "jump", ports.sshd, jump_key, keys.allowed))
            lines = {"gateway": keys.gateway, "task": public_line(keys.tasks[0]), "sshd": public_line(jump_key)}
            _write_known_hosts(home / "known_hosts", lines)
            made = Site(home, gateway.process, ports.gateway, ports.sshd)
            for cipher in ("", CIPHER):
                made.config(cipher).write_text(_client_config(home, cipher, ports))
            yield made


def _needed() -> str:
    """The path of sshd. Raises CannotRun where something is not as the bench needs it."""
    program = shutil.which("sshd") or "/usr/sbin/sshd"
    if sys.platform != "linux":
        raise CannotRun("the peer is Debian's sshd, and the clients use splice: both are of Linux")
    if not os.path.exists(program) or shutil.which("ssh") is None:
        raise CannotRun("no OpenSSH here; install the packages openssh-server and openssh-client")
    if os.geteuid() != 0:
        raise CannotRun("the gateway logs in to tasks as root, which Debian's sshd lets only root's sshd do")
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < FILES:
        raise CannotRun(f"a process may have fewer than {FILES} files open here")
    if os.path.exists(JUMP_SOCKET):
        raise CannotRun(f"{JUMP_SOCKET} is there: a task of this machine, or another bench, serves its jumps by it")
    Path("/run/sshd").mkdir(parents=True, exist_ok=True)  # sshd as root insists on its separation directory
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    return program


@dataclass(frozen=True)
class _Ports:
    gateway: int
    sshd: int
    task: int
    quiet: int


@dataclass(frozen=True)
class _Keys:
    """Host keys and who is let in."""

    tasks: tuple[str, ...]
    """Private keys of the tasks' servers."""
    gateway: str
    """The gateway's public line."""
    allowed: tuple[str, ...]
    """Lines of authorized_keys: the client's and the gateway's."""


async def _write_store(data_dir: Path, key: Path, ports: tuple[int, ...]) -> _Keys:
    """A running job whose tasks have their SSH servers at ``ports``, and a registered key of its owner."""
    store = Store(f"sqlite:///{data_dir / 'pai.sqlite'}", KeyFile(data_dir / "secret.key"))
    await store.open()
    try:
        now = datetime.now(UTC)
        job = make_job(
            ALIAS, user=USER, alias=ALIAS, spec=make_spec(ALIAS, roles=[make_role("worker", instances=len(ports))])
        )
        waiting = job.model_copy(update={"tasks": ()})
        seen = await store.jobs.submit(waiting, b"{}", "job.json", "application/json", [])
        lease = await store.leadership.acquire("bench", 3600, now)
        assert lease is not None
        await store.jobs.save(_as_running(job, seen, ports), seen=seen, epoch=lease.epoch, events=(), at=now)
        parsed = _write_client_key(key)
        await store.user_keys.add(UserKey(parsed.fingerprint, USER, parsed.line, "", now), Act(USER, now))
        tasks = [await task_host_key(store, slot_of(task.uid)) for task in job.tasks]
        allowed = (parsed.line, await gateway_public_key(store))
        return _Keys(tuple(tasks), await gateway_host_public_key(store), allowed)
    finally:
        await store.aclose()


def _write_client_key(path: Path) -> PublicKey:
    private, public = make_ed25519(USER)
    path.write_text(private)
    path.chmod(0o600)
    return parse_public_key(public)


def _as_running(job: Job, seen: Job, ports: tuple[int, ...]) -> Job:
    state = {"state": State.RUNNING, "phase": Phase.RUNNING}
    tasks = tuple(
        task.model_copy(update={**state, "placement": make_placement(ports={"ssh": (port,)})})
        for task, port in zip(job.tasks, ports, strict=True)
    )
    return seen.model_copy(update={**state, "tasks": tasks})


def _write_config(path: Path, port: int) -> Path:
    keys = {"user": USER, "gateway": {"port": port, **LIMITS}, "log_level": "warning"}
    path.write_text(yaml.safe_dump(keys), encoding="utf-8")
    return path


@asynccontextmanager
async def _sshd(
    program: str, home: Path, port: int, host_key: str, allowed: tuple[str, ...]
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Debian's sshd with a configuration of its own."""
    _write_keys(home, host_key, allowed)
    (home / "config").write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {home / 'host_key'}\nAuthorizedKeysFile {home / 'authorized'}\n"
        "UsePAM no\nStrictModes no\nPidFile none\nPermitRootLogin yes\nPasswordAuthentication no\nPrintMotd no\n"
        "PrintLastLog no\nSubsystem sftp internal-sftp\nMaxStartups 600\nMaxSessions 100\nUseDNS no\n"
    )
    process = await asyncio.create_subprocess_exec(
        *(program, "-D", "-e", "-f", str(home / "config")), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(START_S):
            await _answers(port)
        yield process
    finally:
        await ended(process)


@asynccontextmanager
async def _quiet(home: Path, port: int, host_key: str, allowed: tuple[str, ...]) -> AsyncIterator[None]:
    """The server whose sessions start nothing."""
    _write_keys(home, host_key, allowed)
    async with _ready("bench.ssh.quiet", str(port), str(home / "host_key"), str(home / "authorized")):
        yield


@asynccontextmanager
async def _jumps(task: Path) -> AsyncIterator[None]:
    """What serves jumps to the task of this configuration."""
    keys = task / "jumps"
    keys.mkdir()
    async with _ready("bench.ssh.jumps", str(task / "config"), str(keys)):
        yield


@asynccontextmanager
async def _ready(module: str, *words: str) -> AsyncIterator[None]:
    """A module that runs, from the line by which it says so to the end of the block."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *words), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(START_S):
            assert await process.stdout.readline() == b"ready\n"
        yield
    finally:
        await ended(process)


def _write_keys(home: Path, host_key: str, allowed: tuple[str, ...]) -> None:
    home.mkdir()
    (home / "host_key").write_text(host_key)
    (home / "host_key").chmod(0o600)
    (home / "authorized").write_text("\n".join(allowed) + "\n")


async def _answers(port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:
            await asyncio.sleep(0.02)  # sshd says nowhere that it listens
        else:
            writer.close()
            return


def _write_known_hosts(path: Path, lines: dict[str, str]) -> None:
    path.write_text("".join(f"{known_hosts_alias_line(name, line)}\n" for name, line in lines.items()))


def _client_config(home: Path, cipher: str, ports: _Ports) -> str:
    hosts = {
        BRIDGE: f"Port {ports.gateway}\nUser {ALIAS}\nHostKeyAlias gateway",
        "door": f"Port {ports.gateway}\nUser {ALIAS}\nHostKeyAlias gateway",
        JUMP: f"HostName {ALIAS}\nPort 22\nUser root\nHostKeyAlias task\nProxyJump door",
        "sshd": f"Port {ports.sshd}\nUser root\nHostKeyAlias sshd",
        PEER: f"Port {ports.task}\nUser root\nHostKeyAlias task\nProxyJump sshd",
        DIRECT: f"Port {ports.task}\nUser root\nHostKeyAlias task",
    }
    return (
        "".join(f"Host {name}\n{lines}\n" for name, lines in hosts.items())
        + f"Host *\nHostName 127.0.0.1\nKexAlgorithms {KEX}\n"
        + (f"Ciphers {cipher}\n" if cipher else "")
        + "BatchMode yes\nStrictHostKeyChecking yes\nCheckHostIP no\nIdentityAgent none\nIdentitiesOnly yes\n"
        + f"UserKnownHostsFile {home / 'known_hosts'}\nGlobalKnownHostsFile /dev/null\nIdentityFile {home / 'id'}\n"
        + "LogLevel ERROR\n"
    )
