"""One SSH session in a task: a shell or a command, on pipes or on a terminal of its own.

Nothing is added to what the program prints, and nothing of it is lost, however slowly the client reads. Like OpenSSH's
server, a session without a terminal lasts until its output is closed by everybody who holds it, and a client that goes
away hangs up a terminal but sends no signal on pipes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from pai_backend.engine.local import layout, processes, terminal
from pai_backend.engine.local.descriptors import read_some, write_all
from pai_backend.engine.local.files import file_server
from pai_backend.engine.local.shim.account import groups_of, join
from pai_backend.engine.local.shim.command import find_program
from pai_backend.engine.local.ssh_process import SFTP, TERMINAL, Process
from pai_backend.engine.local.terminals import boot_file

_log = logging.getLogger(__name__)

ENDING_S = 1.0  # between the end of output and the exit; what lives on counts as silent
HANGUP_S = 1.0
"""How long a terminal that does not hang up is read after its session's leader has ended and nothing more has come.

The kernel hangs it up at that end, behind the last byte. A leader that gave it up leaves it open.
"""
_CANNOT_RUN = 255  # the exit status OpenSSH uses for errors of its own

_BEGIN = b"\n"
_AT_A_LINE = ("/bin/sh", "-c", 'read -r begin && exec "$@"', "sh")
"""Has what follows begin when a line comes from standard input. ``read`` takes no byte behind the line, POSIX."""


Spawn = Callable[[], Awaitable[asyncio.subprocess.Process]]


class Presence:
    """What is written down of a visit to a task, where only the account of the backend may."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def note(self) -> None:
        """Note that a process is about to be started in the task from outside. Raises OSError."""
        (self._directory / layout.SESSIONS).touch(mode=0o600)

    async def start(self, spawn: Spawn) -> asyncio.subprocess.Process:
        """Start a process in the task's control groups."""
        program = await spawn()
        with suppress(ProcessLookupError, FileNotFoundError):  # it has ended, or the task was kept over a restart
            join(groups_of(str(self._directory)), program.pid)
        return program


@dataclass(frozen=True)
class TaskWorld:
    """Where sessions of a task run, and with which environment."""

    uid: str
    directory: Path
    env: Mapping[str, str]
    asked: Presence | None = None
    """Who writes down the visits; None is this process itself."""

    @property
    def presence(self) -> Presence:
        """What notes a visit."""
        return self.asked or Presence(self.directory)


async def serve(process: Process, task: TaskWorld) -> None:
    """Run one shell or command request to its end and report how it ended."""
    try:
        session = await _start(process, task)
    except (OSError, ValueError) as exc:  # such as a command with a zero byte in it
        process.write(f"the session cannot start in the task: {exc}\n".encode(), is_stderr=True)
        process.exit(_CANNOT_RUN)
        return
    await session.run()


class Session:
    """A running program and the descriptors that lead to it."""

    def __init__(
        self, process: Process, program: asyncio.subprocess.Process, stdin: int, outputs: Mapping[int, bool]
    ) -> None:
        """``outputs`` are descriptors to read, each with whether it is standard error; a terminal is both in one."""
        self._process = process
        self._program = program
        self._stdin = stdin
        self._outputs = dict(outputs)
        self._terminal = stdin in outputs
        self._feeding = True
        self._reading_since: float | None = None
        """Since when a terminal has had nothing to read; None while the client is waited for."""

    async def run(self) -> None:
        """Carry bytes both ways until the program has ended or the client has gone."""
        feed = asyncio.create_task(self._feed())
        finish = asyncio.create_task(self._finish())
        gone = asyncio.create_task(self._process.channel.wait_closed())
        try:
            await asyncio.wait({finish, gone}, return_when=asyncio.FIRST_COMPLETED)
            if finish.done():
                self._report(await finish)
        finally:
            for task in (feed, finish, gone):
                task.cancel()
            await asyncio.gather(feed, finish, gone, return_exceptions=True)
            self._close()
        if self._process.subsystem == SFTP:
            await self._end_files()
        await self._program.wait()  # after a client that went away, so that the program is reaped

    async def _end_files(self) -> None:
        """Kill a file server that does not see that its client has gone: it may wait for a named pipe."""
        ended = asyncio.ensure_future(self._program.wait())
        await asyncio.wait({ended}, timeout=ENDING_S)
        if not ended.done():
            self._program.kill()
        await ended

    def _close(self) -> None:
        descriptors = set(self._outputs)
        if self._feeding:
            descriptors.add(self._stdin)
        for fd in descriptors:
            os.close(fd)

    async def _finish(self) -> int:
        """The program's return code, once all output has been handed to the client."""
        drains = [asyncio.create_task(self._drain(fd, is_stderr)) for fd, is_stderr in self._outputs.items()]
        try:
            if self._terminal:
                code = await self._program.wait()
                await self._hang_up(*drains)
            else:
                await asyncio.gather(*drains)
                code = await self._end_output()
        finally:
            for drain in drains:
                drain.cancel()
            await asyncio.gather(*drains, return_exceptions=True)
        return code

    async def _hang_up(self, drain: asyncio.Task[None]) -> None:
        """Return when a terminal whose leader has ended has sent all. A client that is slow loses nothing."""
        now = asyncio.get_running_loop().time
        ended_at, rest = now(), HANGUP_S
        while rest > 0:
            await asyncio.wait({drain}, timeout=rest)
            if drain.done():
                return
            since = self._reading_since
            rest = HANGUP_S if since is None else HANGUP_S - (now() - max(since, ended_at))

    async def _end_output(self) -> int:
        """The return code of a program that has closed its output.

        Most programs end then. Clients that have sent all of theirs close the channel at the end of ours (PuTTY,
        OpenSSH's shared connections), and would never read an exit status behind it.
        """
        ended = asyncio.ensure_future(self._program.wait())
        try:
            await asyncio.wait({ended}, timeout=ENDING_S)
            if not ended.done():
                self._process.write_eof()
            return await ended
        finally:
            ended.cancel()

    async def _drain(self, fd: int, is_stderr: bool) -> None:
        now = asyncio.get_running_loop().time
        self._reading_since = now()
        while data := await read_some(fd):
            self._reading_since = None
            self._process.write(data, is_stderr=is_stderr)
            await self._process.drain()
            if (wait_taken := getattr(self._process.get_extra_info("connection"), "wait_taken", None)) is not None:
                await wait_taken()
            self._reading_since = now()

    async def _feed(self) -> None:
        """Hand over what the client sends: bytes, window sizes, signals, and the end of its input."""
        while True:
            try:
                data = await self._process.read()
            except asyncssh.TerminalSizeChanged as change:
                terminal.apply_size(self._stdin, change.width, change.height)
                continue
            except asyncssh.SignalReceived as received:
                self._signal(received.signal)
                continue
            except asyncssh.BreakReceived:
                self._signal("INT")
                continue
            except (asyncssh.Error, OSError):  # the connection is lost: run() sees that too
                return
            if not data:
                await self._end_input()
                return
            if self._feeding and not await write_all(self._stdin, data):
                await self._end_input()

    async def _end_input(self) -> None:
        """Half-close towards the program; a terminal cannot be, so it gets its end-of-file character."""
        if self._terminal:
            await write_all(self._stdin, terminal.end_of_input(self._stdin))
        elif self._feeding:
            self._feeding = False
            os.close(self._stdin)

    def _signal(self, name: str) -> None:
        """Signal the program's group; names this system does not have are ignored, as the protocol asks."""
        number = getattr(signal, f"SIG{name}", None)
        if isinstance(number, signal.Signals) and self._program.returncode is None:
            os.killpg(self._program.pid, number)

    def _report(self, code: int) -> None:
        if code >= 0:
            self._process.exit(code)
            return
        try:
            name = signal.Signals(-code).name.removeprefix("SIG")
        except ValueError:  # a real-time signal has no name
            name = f"RT{-code}@local"
        self._process.exit_with_signal(name)


async def _start(process: Process, task: TaskWorld) -> Session:
    """Spawn what the client asked for. Raises OSError or ValueError when that cannot be done."""
    await task.presence.note()  # before the first process, so that none is overlooked
    env = _session_environment(process, task)
    if process.subsystem == SFTP:
        argv = file_server()
    elif process.command is None:
        argv = _shell(env.get("SHELL") or find_program("bash", env["PATH"]), task.directory / layout.SHELL_START)
        if process.subsystem == TERMINAL:
            argv = [sys.executable, "-I", "-S", boot_file(), str(task.directory / layout.TERMINALS), *argv]
    else:
        argv = [find_program("bash", env["PATH"]), "-c", process.command]
    if process.term_type:
        return await _start_on_terminal(process, task, argv, env)
    return await _start_on_pipes(process, task, argv, env)


def _shell(program: str, start: Path) -> list[str]:
    """How a shell of a login is begun; bash reads ``start``, which a task of an older backend does not have."""
    is_bash = os.path.basename(program) == "bash" and start.exists()
    return [program, "--rcfile", str(start)] if is_bash else [program]


def _session_environment(process: Process, task: TaskWorld) -> dict[str, str]:
    """The task's environment, what the client sends on top, and what tells programs of the connection.

    The task's mark stays: by it the session's processes are found when the task ends. There is no
    SSH_CLIENT: it makes bash read ~/.bashrc before a command, which may print and change PATH.
    """
    client = process.get_extra_info("peername") or ("", 0)
    server = process.get_extra_info("sockname") or ("", 0)
    env = {**task.env, **({} if _is_forced(process) else process.env)}
    env["SSH_CONNECTION"] = f"{client[0]} {client[1]} {server[0]} {server[1]}"
    env[layout.MARK] = task.uid
    env.pop("SSH_AUTH_SOCK", None)  # of the user who started the backend
    if agent := process.channel.get_agent_path():
        env["SSH_AUTH_SOCK"] = agent
    if process.term_type:
        env["TERM"] = process.term_type
    return env


def _is_forced(process: Process) -> bool:
    """Whether the login may run one command only: variables such as BASH_ENV would have bash run another."""
    connection = process.get_extra_info("connection")
    forced = connection.get_certificate_option("force-command"), connection.get_key_option("command")
    return forced != (None, None)


async def _start_on_pipes(process: Process, task: TaskWorld, argv: list[str], env: dict[str, str]) -> Session:
    # Real pipes: asyncio would make standard input a socket, which /dev/stdin cannot be opened on.
    stdin_reader, stdin = os.pipe()
    stdout, stdout_writer = os.pipe()
    stderr, stderr_writer = os.pipe()
    ours, theirs = (stdin, stdout, stderr), (stdin_reader, stdout_writer, stderr_writer)
    try:
        program = await _spawn([*_AT_A_LINE, *argv], task, env, theirs)
        os.write(stdin, _BEGIN)
    except (OSError, ValueError):
        for fd in ours:
            os.close(fd)
        raise
    finally:
        for fd in theirs:
            os.close(fd)
    for fd in ours:
        os.set_blocking(fd, False)
    return Session(process, program, stdin, {stdout: False, stderr: True})


async def _start_on_terminal(process: Process, task: TaskWorld, argv: list[str], env: dict[str, str]) -> Session:
    master, slave = os.openpty()
    env["SSH_TTY"] = os.ttyname(slave)
    columns, rows, _, _ = process.term_size
    terminal.apply_modes(slave, process.term_modes)
    terminal.apply_size(slave, columns, rows)
    gate, opening = os.pipe()
    trampoline = [sys.executable, "-I", "-S", terminal.__file__, str(gate)]
    try:
        program = await _spawn([*trampoline, *argv], task, env, (slave, slave, slave), gate)
        os.write(opening, _BEGIN)
    except (OSError, ValueError):
        os.close(master)
        raise
    finally:
        for fd in (slave, gate, opening):
            os.close(fd)
    os.set_blocking(master, False)
    return Session(process, program, master, {master: False})


async def _spawn(
    argv: list[str], task: TaskWorld, env: dict[str, str], stdio: tuple[int, int, int], *passed: int
) -> asyncio.subprocess.Process:
    """Start what waits to be told that it may begin: by then it is in the task's groups and carries its mark."""
    stdin, stdout, stderr = stdio

    async def spawn() -> asyncio.subprocess.Process:
        program = await asyncio.create_subprocess_exec(
            *argv,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=task.directory / layout.WORK,
            env=env,
            start_new_session=True,
            pass_fds=passed,
        )
        processes.mark(program.pid, task.uid)
        return program

    return await task.presence.start(spawn)
