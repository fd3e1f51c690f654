"""SSH into a task that runs as another account than the agent: its server is a process of that account.

Sessions, SFTP, sockets and forwards then have the rights of the task and no others, as they are made by a process that
has no others. The agent listens, starts the server (this module, executed) when a client comes, and lends it the
listening socket; without logins the server ends. What only root may do the server asks for, in lines: to note that
a user was in the task, and to be in the task's control groups for as long as it takes to start a process there.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pai_backend.engine.local.account import SystemAccount
from pai_backend.engine.local.layout import LOOPBACK
from pai_backend.engine.local.shim.account import UMASK, groups_of, homes_of, join, leave
from pai_backend.engine.local.ssh_session import Presence, Spawn, TaskWorld

_log = logging.getLogger(__name__)

IDLE_S = 60.0  # without logins, before a server ends
AGAIN_S = 1.0  # before one that has failed is started again
ENDING_S = 5.0  # that one is given to end all its connections
_LINE_BYTES = 4 * 2**20  # what a server is told in one: keys, and the environment of a task of a large job
_LET_GO, _DONE = b"let go\n", b"done\n"

Told = dict[str, Any]


class AccountListener:
    """The SSH port of one task, in the agent. Its methods are those of ``ssh_server.Listener``."""

    def __init__(self, account: SystemAccount, task: TaskWorld, port: int, told: Mapping[str, object]) -> None:
        """Listen. ``told`` is what the server needs. Raises OSError when the port is taken."""
        self._account, self._task, self._told = account, task, told
        self._groups: list[str] = []
        self._homes: list[str] = []
        self._loop = asyncio.get_running_loop()
        self._listening = socket.create_server((LOOPBACK, port), backlog=100)
        self._listening.setblocking(False)
        self._serving: asyncio.Task[None] | None = None
        self._control: asyncio.StreamWriter | None = None
        self._listens, self._closed = True, False
        self._let_go = asyncio.Event()
        self._empty = asyncio.Event()
        self._logins = 0
        self._count(0)
        self._await_client()

    @property
    def logins(self) -> int:
        """How many connections are open."""
        return self._logins

    async def hand_over(self) -> None:
        """Stop listening, so that another process may, and let the connections go on."""
        if self._listens:
            self._stop_listening()
            self._say(_LET_GO)
        if self._serving is not None:
            await self._let_go.wait()

    async def wait_empty(self) -> None:
        """Return when no connection is open."""
        await self._empty.wait()

    async def aclose(self) -> None:
        """Stop listening and end every connection; returns when they are ended."""
        self._closed = True
        if self._listens:
            self._stop_listening()
        if self._control is not None:
            self._control.close()  # the server ends at that
        if self._serving is not None:
            await asyncio.gather(self._serving, return_exceptions=True)

    def _stop_listening(self) -> None:
        self._listens = False
        self._loop.remove_reader(self._listening)
        self._listening.close()

    def _await_client(self) -> None:
        if self._listens:
            self._loop.add_reader(self._listening, self._begin)

    def _begin(self) -> None:
        """Called by the loop when a client is there, and no server."""
        self._loop.remove_reader(self._listening)
        self._let_go.clear()
        self._serving = asyncio.create_task(self._serve(), name="account-ssh")

    def _count(self, logins: int) -> None:
        self._logins = logins
        self._empty.clear() if logins else self._empty.set()

    def _say(self, line: bytes) -> None:
        if self._control is not None and not self._control.is_closing():
            self._control.write(line)

    async def _serve(self) -> None:
        """Keep one server until it ends; then wait for the next client."""
        failed = True
        try:
            failed = await self._kept() != 0
        except OSError as error:
            _log.warning("SSH cannot be served as %s: %s", self._account.name, error)
        finally:
            self._serving, self._control = None, None
            self._count(0)
            self._let_go.set()
        if failed:
            self._loop.call_later(AGAIN_S, self._await_client)
        else:
            self._await_client()

    async def _kept(self) -> int:
        """Start a server and answer it until it has ended; its exit status. Raises OSError."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            listening = self._listening.dup()
            with listening:
                process = await _spawn(self._account, listening, theirs)
            theirs.close()
            reader, self._control = await asyncio.open_unix_connection(sock=ours.dup())
            ours.close()
        self._say(json.dumps(self._told).encode() + b"\n")
        if self._closed:
            self._control.close()
        elif not self._listens:
            self._say(_LET_GO)
        try:
            while line := await reader.readline():
                await self._answer(json.loads(line), process.pid)
        except (OSError, ValueError, TypeError, RecursionError) as error:  # of that account anybody may be speaking
            _log.warning("the SSH server of %s is ended: %s", self._account.name, error)
        finally:
            self._control.close()
            code = await _ended(process)
        return code

    async def _answer(self, said: Told, pid: int) -> None:
        if "logins" in said:
            self._count(int(said["logins"]))
        elif "visit" in said:
            await self._task.presence.note()
            self._say(_DONE)
        elif "enter" in said:
            with suppress(ProcessLookupError, FileNotFoundError):  # the task was kept over a restart
                self._groups = groups_of(str(self._task.directory))
                self._homes = homes_of(self._groups)
                join(self._groups, pid)
            self._say(_DONE)
        elif "leave" in said:
            leave(self._groups, self._homes, pid)
            self._say(_DONE)
        else:
            self._let_go.set()


async def _spawn(
    account: SystemAccount, listening: socket.socket, control: socket.socket
) -> asyncio.subprocess.Process:
    """A server, as the account from its first instruction on. Raises OSError, PermissionError where we may not."""
    descriptors = [listening.fileno(), control.fileno()]
    inherited = {key: os.environ[key] for key in ("PATH", "LANG", "LD_LIBRARY_PATH") if key in os.environ}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-E", "-P", "-m", __name__, *map(str, descriptors)),
        stdin=asyncio.subprocess.DEVNULL,
        cwd="/",
        env={**inherited, **account.environment},
        pass_fds=descriptors,
        start_new_session=True,
        user=account.uid,
        group=account.gid,
        extra_groups=account.groups or (account.gid,),
        umask=UMASK,
    )


async def _ended(process: asyncio.subprocess.Process) -> int:
    try:
        async with asyncio.timeout(ENDING_S):
            return await process.wait()
    except TimeoutError:
        process.kill()
        return await process.wait()


class _AskedPresence(Presence):
    """What a server asks of the agent, one thing after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        super().__init__(Path())
        self._reader, self._writer = reader, writer
        self._turn, self._starting = asyncio.Lock(), asyncio.Lock()
        self.let_go = asyncio.Event()
        self._answers: asyncio.Queue[None] = asyncio.Queue()

    async def note(self) -> None:
        """Have the agent do it."""
        await self._ask({"visit": 1})

    async def start(self, spawn: Spawn) -> asyncio.subprocess.Process:
        """Start it while the agent has put this process into the groups, so that nothing of it is ever outside."""
        async with self._starting:
            await self._ask({"enter": 1})
            try:
                return await spawn()
            finally:
                await self._ask({"leave": 1})

    def tell(self, said: Told) -> None:
        """Say something that wants no answer."""
        if not self._writer.is_closing():
            self._writer.write(json.dumps(said).encode() + b"\n")

    async def _ask(self, said: Told) -> None:
        async with self._turn:
            self.tell(said)
            await self._answers.get()

    async def listen(self) -> None:
        """Hear what the agent says, until it is gone or has done with this server."""
        while line := await self._reader.readline():
            self.let_go.set() if line == _LET_GO else self._answers.put_nowait(None)


async def _serve_task(listening: socket.socket, control: socket.socket) -> None:
    """Be the server of a task, until it has had no login for a while or the agent ends it."""
    from pai_backend.engine.local.ssh_server import listen_on  # the agent has it, and need not import this

    reader, writer = await asyncio.open_unix_connection(sock=control, limit=_LINE_BYTES)
    told: Told = json.loads(await reader.readline())
    asked = _AskedPresence(reader, writer)
    world = TaskWorld(told["uid"], Path(told["directory"]), told["env"], asked)
    counted = asyncio.Event()

    def changed(logins: int) -> None:
        asked.tell({"logins": logins})
        counted.set()

    certificate, keys = told["host_certificate"], told["authorized_keys"]
    server = await listen_on(listening.dup(), world, told["host_key"], certificate, keys, changed)
    hearing, leaving = asyncio.create_task(asked.listen()), asyncio.create_task(asked.let_go.wait())
    try:
        while not hearing.done():
            counted.clear()
            changing = asyncio.create_task(counted.wait())
            waits = {hearing, changing} | (set() if leaving.done() else {leaving})
            idle = None if server.logins else IDLE_S
            done, _ = await asyncio.wait(waits, timeout=idle, return_when=asyncio.FIRST_COMPLETED)
            changing.cancel()
            if leaving in done or not done:
                await server.hand_over()
            if leaving in done:
                listening.close()  # as long as any descriptor of it is open, another agent cannot listen there
                asked.tell({"let go": 1})
            if (leaving.done() or not done) and not server.logins:
                return
            if not done:  # a login came in the last moment
                server.listen_again(listening.dup())
    finally:
        for task in (hearing, leaving):
            task.cancel()
        await server.aclose()
        writer.close()


def main(arguments: Sequence[str]) -> None:
    """Run as ``python -m pai_backend.engine.local.account_ssh LISTENING CONTROL``, numbers of descriptors."""
    listening, control = (socket.socket(fileno=int(word)) for word in arguments)
    for end in (listening, control):
        end.set_inheritable(False)
        end.setblocking(False)
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(_serve_task(listening, control))


if __name__ == "__main__":
    main(sys.argv[1:])
