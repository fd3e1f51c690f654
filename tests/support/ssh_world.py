"""A gateway in this process, a real task SSH server behind it and real OpenSSH clients in front."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import os
import shutil
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh

from pai_backend.access.gateway.options import GatewayOptions
from pai_backend.access.gateway.server import serve_gateway
from pai_backend.access.keys import (
    gateway_host_public_key,
    gateway_public_key,
    known_hosts_line,
    make_ed25519,
    task_host_key,
)
from pai_backend.engine.local import layout
from pai_backend.engine.local.ssh_server import listen
from pai_backend.engine.local.ssh_session import TaskWorld
from pai_backend.model.ids import slot_of
from pai_backend.model.job import Job, Phase, State, Task
from pai_backend.testing.builders import make_job, make_placement
from pai_backend.testing.free_ports import free_port
from tests.support.ssh_fakes import LoopbackEngine, MemoryStore

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
USER = "alice"
LIMIT_S = 60.0


@dataclass(frozen=True)
class Outcome:
    """What a client process did."""

    status: int
    stdout: bytes
    stderr: str


@dataclass
class World:
    """Everything one test needs: a running job behind a gateway, and a client's files."""

    path: Path
    store: MemoryStore
    engine: LoopbackEngine
    job: Job
    task_port: int
    port: int = 0
    key: Path = field(default_factory=Path)

    def common(self) -> list[str]:
        """Options every client gets: no file of the real user, strict checking, one key."""
        return [
            *("-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", "LogLevel=INFO"),
            *("-o", f"UserKnownHostsFile={self.path / 'known_hosts'}", "-o", "GlobalKnownHostsFile=/dev/null"),
            *("-o", "IdentityAgent=none", "-o", "IdentitiesOnly=yes", "-i", str(self.key)),
        ]

    def argv(self, *args: str, name: str | None = None, options: tuple[str, ...] = ()) -> list[str]:
        """An ssh command line: ``options`` (the first of each counts), the destination, ``args`` for the task."""
        where = ["-p", str(self.port), "-l", name or self.job.alias, "127.0.0.1"]
        return ["ssh", *options, *self.common(), *where, *args]

    async def ssh(
        self, *args: str, name: str | None = None, stdin: bytes | None = None, options: tuple[str, ...] = ()
    ) -> Outcome:
        """Run ssh to its end."""
        return await run(self.argv(*args, name=name, options=options), stdin)

    def task(self) -> Task:
        """The job's first task."""
        return self.job.tasks[0]


async def run(argv: list[str], stdin: bytes | None = None, cwd: Path | None = None) -> Outcome:
    """Run a program to its end, for at most ``LIMIT_S``; kill it after that."""
    async with program(argv, cwd=cwd, stdin=asyncio.subprocess.DEVNULL if stdin is None else None) as process:
        async with asyncio.timeout(LIMIT_S):
            out, err = await process.communicate(stdin)
        assert process.returncode is not None
        return Outcome(process.returncode, out, err.decode(errors="replace"))


@contextlib.asynccontextmanager
async def program(argv: list[str], **kwargs: Any) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process with pipes that does not outlive the block."""
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), asyncio.subprocess.PIPE)
    pipes.update({name: value for name, value in kwargs.items() if value is not None})
    process = await asyncio.create_subprocess_exec(*argv, **pipes)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        if process.stdin is not None:
            process.stdin.close()
        await process.wait()


async def answers(port: int) -> None:
    """Return when something accepts connections on ``port``."""
    await eventually(lambda: _accepts(port), f"nothing listens on port {port}")


def _accepts(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def write_key(path: Path, comment: str = "test") -> str:
    """Make a key pair for a client at ``path``; returns the public line."""
    pem, public = make_ed25519(comment)
    path.write_text(pem)
    path.chmod(0o600)
    return public


def running_job(port: int, **kwargs: Any) -> Job:
    """A job whose tasks all run, with their SSH server on ``port``."""
    job = make_job(**{"name": "demo", "user": USER, **kwargs})
    place = make_placement(ports={"ssh": (port,)})
    tasks = [
        task.model_copy(update={"state": State.RUNNING, "phase": Phase.RUNNING, "placement": place})
        for task in job.tasks
    ]
    return job.model_copy(update={"state": State.RUNNING, "phase": Phase.RUNNING, "tasks": tuple(tasks)})


def lines_in(path: Path) -> int:
    """How many lines a file has that may not be there yet."""
    return path.read_text().count("\n") if path.exists() else 0


async def eventually(condition: Callable[[], bool], what: str) -> None:
    """Return when ``condition`` holds; fail with ``what`` after ``LIMIT_S``. For what has no event to await."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.02)


def write_sshd_config(path: Path, port: int, host_key: str, authorized: str) -> Path:
    """The files of a private sshd; returns its configuration."""
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(parents=True, exist_ok=True)  # sshd as root insists on its separation directory
    (path / "host_key").write_text(host_key)
    (path / "host_key").chmod(0o600)
    (path / "authorized").write_text(authorized + "\n")
    config = path / "sshd_config"
    config.write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {path / 'host_key'}\nAuthorizedKeysFile {path / 'authorized'}\n"
        "UsePAM no\nStrictModes no\nPidFile none\nPermitRootLogin yes\nPasswordAuthentication no\nPrintMotd no\n"
        # As careless as a server can be: every variable of a client, and SFTP by way of the user's shell.
        "Subsystem sftp /usr/lib/openssh/sftp-server\nAcceptEnv *\nAllowStreamLocalForwarding yes\n"
        "AllowAgentForwarding yes\nMaxSessions 20\nMaxStartups 200\nUseDNS no\nPrintLastLog no\n"
    )
    return config


@contextlib.asynccontextmanager
async def private_sshd(path: Path, port: int, host_key: str, authorized: str) -> AsyncIterator[None]:
    """The system's own sshd on a loopback port with its own configuration."""
    argv = [SSHD, "-D", "-e", "-f", str(write_sshd_config(path, port, host_key, authorized))]
    async with program(argv, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL):
        await answers(port)
        yield


class _OpenServer(asyncssh.SSHServer):
    """Allows forwarding, as a task's server does, and remembers its clients."""

    def __init__(self, clients: list[asyncssh.SSHServerConnection]) -> None:
        self._clients = clients

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._clients.append(conn)

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
        return True

    def server_requested(self, listen_host: str, listen_port: int) -> bool:
        return True


class _Files(asyncssh.SFTPServer):
    """Ends its session with an exit status, which asyncssh leaves out and scp takes for a failure."""

    def __init__(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        super().__init__(chan)
        self._end = chan

    def exit(self) -> None:
        self._end.exit(0)


async def _bash(process: asyncssh.SSHServerProcess[bytes]) -> None:
    """Run the command until it ends or its channel is gone; nothing of it outlives that."""
    shell = await asyncio.create_subprocess_exec(
        *("bash", "-c", process.command or "bash"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    feeding = asyncio.create_task(_feed(process, shell))
    copying = asyncio.gather(_copy(shell.stdout, process.stdout), _copy(shell.stderr, process.stderr))
    gone = asyncio.create_task(process.channel.wait_closed())
    try:
        both: list[asyncio.Future[Any]] = [copying, gone]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if copying.done():
            status = await shell.wait()
            process.exit_with_signal("TERM") if status < 0 else process.exit(status)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
        await shell.wait()
        for task in (feeding, copying, gone):
            task.cancel()
        await asyncio.gather(feeding, copying, gone, return_exceptions=True)


async def _feed(process: asyncssh.SSHServerProcess[bytes], shell: asyncio.subprocess.Process) -> None:
    """Copy the client's input to the shell and close it; a signal arrives as an exception in between."""
    assert shell.stdin is not None
    while True:
        try:
            await _copy(process.stdin, shell.stdin)
        except asyncssh.SignalReceived as exc:
            shell.send_signal(getattr(signal, f"SIG{exc.signal}"))
        else:
            return shell.stdin.close()


async def _copy(source: Any, target: Any) -> None:
    """Copy a stream to its end; a reader that has gone away ends it too."""
    with contextlib.suppress(ConnectionError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()


@contextlib.asynccontextmanager
async def asyncssh_server(
    path: Path, port: int, host_key: str, authorized: str
) -> AsyncIterator[list[asyncssh.SSHServerConnection]]:
    """A task server made of asyncssh, as the local engine's agent is; gives the list of its connections."""
    clients: list[asyncssh.SSHServerConnection] = []
    commands: set[asyncio.Task[None]] = set()

    async def handle(process: asyncssh.SSHServerProcess[bytes]) -> None:
        running = asyncio.create_task(_bash(process))
        commands.add(running)
        running.add_done_callback(commands.discard)
        await running

    server = await asyncssh.listen(
        "127.0.0.1",
        port,
        server_factory=lambda: _OpenServer(clients),
        server_host_keys=[asyncssh.import_private_key(host_key)],
        authorized_client_keys=asyncssh.import_authorized_keys(authorized),
        process_factory=handle,
        sftp_factory=_Files,
        allow_scp=True,
        encoding=None,
        line_editor=False,
    )
    try:
        yield clients
    finally:
        server.close()
        for client in clients:
            client.abort()
        await server.wait_closed()
        if commands:
            await asyncio.wait(commands, timeout=LIMIT_S)


@contextlib.asynccontextmanager
async def agent_server(path: Path, port: int, host_key: str, authorized: str) -> AsyncIterator[None]:
    """The SSH server of a task of the local engine."""
    (path / layout.WORK).mkdir()
    task = TaskWorld("uid", path, {"PATH": os.environ["PATH"]})
    listener = await listen(task, port, host_key, "", [authorized])
    try:
        yield
    finally:
        await listener.aclose()


TASK_SERVERS = {"sshd": private_sshd, "asyncssh": asyncssh_server, "agent": agent_server}


@contextlib.asynccontextmanager
async def gateway(world: World, hurry: asyncio.Event | None = None, **options: Any) -> AsyncIterator[asyncio.Event]:
    """Run a gateway for ``world`` on a free port; its client files point to it. Gives its stop event."""
    stop = asyncio.Event()
    ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    settings = GatewayOptions(**{"port": 0, "task_user": getpass.getuser(), "drain_s": 0.1, **options})
    serving = asyncio.create_task(
        serve_gateway(
            settings,
            world.store.as_store(),
            world.engine.as_engine(),
            stop,
            lambda _, port: ready.set_result(port),
            hurry=hurry,
        )
    )
    try:
        first: list[asyncio.Future[Any]] = [serving, ready]
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()
        world.port = ready.result()
        pinned = known_hosts_line("127.0.0.1", world.port, await gateway_host_public_key(world.store.as_store()))
        (world.path / "known_hosts").write_text(pinned + "\n")
        yield stop
    finally:
        stop.set()
        async with asyncio.timeout(LIMIT_S):
            await serving


@contextlib.asynccontextmanager
async def make_world(path: Path, server: str = "asyncssh", **options: Any) -> AsyncIterator[World]:
    """A job named ``demo`` of ``alice`` that runs behind a gateway, and a registered key of hers."""
    store, engine = MemoryStore(), LoopbackEngine()
    port = free_port()
    job = store.put(running_job(port))
    host_key = await task_host_key(store.as_store(), slot_of(job.tasks[0].uid))
    world = World(path, store, engine, job, port, key=path / "id_ed25519")
    store.register(USER, write_key(world.key))
    authorized = await gateway_public_key(store.as_store())
    async with TASK_SERVERS[server](path, port, host_key, authorized), gateway(world, **options):
        yield world


@contextlib.asynccontextmanager
async def login(
    world: World, name: str | None = None, sock: socket.socket | None = None
) -> AsyncIterator[asyncssh.SSHClientConnection]:
    """A client that is asyncssh: it can do and see what OpenSSH's command line cannot. ``sock`` is connected."""
    async with asyncssh.connect(
        "127.0.0.1",
        world.port,
        username=name or world.job.alias,
        client_keys=[str(world.key)],
        known_hosts=str(world.path / "known_hosts"),
        config=None,
        agent_path=None,
        **({} if sock is None else {"sock": sock}),
    ) as conn:
        yield conn
