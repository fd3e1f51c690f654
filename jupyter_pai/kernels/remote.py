"""The local end of a kernel in a task: an SSH session to it that is made again when it breaks, and local sockets.

OpenSSH carries one session, in which all channels of the kernel are streams of a link that loses nothing
(:mod:`jupyter_pai.kernels.task.link`). Clients of the kernel connect to Unix sockets in a directory that only this user
can enter: a port of this machine would be open to its other users.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import secrets
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from jupyter_pai.errors import ClientError
from jupyter_pai.kernels.route import Ended, KernelRoute, RouteCommand, TaskWaits
from jupyter_pai.kernels.task.link import CHUNK, ERROR, Streams, read_frame
from jupyter_pai.kernels.task.plug import MAGIC
from jupyter_pai.sync import LoopThread

CHANNELS = 5
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 15.0
WAITING_PAUSE_S = 1.0
TICK_S, SLEPT_S = 5.0, 30.0
"""How often the clock is looked at, and the gap that means that the machine slept: then it connects again."""
SHUTDOWN_S = 10.0
"""How long the end of a kernel waits for a connection that is broken."""
LACKED_MEMORY = (
    "The kernel was killed because its task has used up its memory. Use less of it, or give the job more (memoryMB)."
)
BOOTSTRAP = (
    "import json,sys;r=json.loads(sys.stdin.buffer.readline());"
    "n={'__name__':'plug'};exec(compile(r['program']['plug.py'],'plug','exec'),n);n['main'](r)"
)

T = TypeVar("T")


class KernelFailed(Exception):
    """A kernel cannot run; the message is for its user."""


class _LinkBroken(Exception):
    """A session ended before it was linked with the kernel's holder."""


@dataclass(frozen=True)
class KernelPlace:
    """Where a kernel is: the job (by its uid once known), the task's alias (empty: the first), a directory there."""

    job: str
    task: str
    directory: str


def new_place(name: str) -> KernelPlace:
    """A place for a new kernel in the job or task of that name."""
    job, _, task = name.partition("--")
    return KernelPlace(job, name if task else "", f"/tmp/pai-kernel-{secrets.token_hex(8)}")


def task_program() -> dict[str, str]:
    """The text of the modules that run in a task."""
    package = resources.files("jupyter_pai.kernels.task")
    return {name: (package / name).read_text("utf-8") for name in ("__init__.py", "link.py", "plug.py", "holder.py")}


class RemoteKernel:
    """A kernel in a task. Its coroutines run on a loop in a thread of its own; others' loops wait for their results.

    ``keep_s``: how long the kernel lives without a client; None: as long as its task. ``python``: the program there.
    """

    def __init__(self, place: KernelPlace, log: logging.Logger, *, keep_s: float | None, python: str = "") -> None:
        self.place = place
        self.status: int | None = None
        self.reason = ""
        self.died = ""
        """Why the kernel was ended that is started again now, where that is known."""
        self.waiting = ""
        self._log = log
        self._keep_s = keep_s
        self._python = python or "python3"
        self._thread = LoopThread()
        self._local = Path(tempfile.mkdtemp(prefix="pai-kernel-"))
        self._route = KernelRoute(self._local)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._working: list[asyncio.Task[None]] = []
        self._servers: list[asyncio.Server] = []
        self._ended = asyncio.Event()
        self._new = False

    @property
    def ip(self) -> str:
        """What stands before ``-<channel>`` in the names of the local sockets."""
        return str(self._local / "k")

    @property
    def state(self) -> str:
        """``waiting`` for its job, ``connected``, ``connecting`` or ``ended``."""
        if self.reason:
            return "ended"
        if self.waiting:
            return "waiting"
        return "connected" if self._streams.link.connected.is_set() else "connecting"

    def run(self, work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """Do work on the kernel's own loop; awaitable on any other."""
        return asyncio.wrap_future(self._thread.start(work))

    async def open(self, *, new: bool) -> None:
        """Reach the kernel's holder, which is made when ``new``: waits for a job that waits, and raises KernelFailed.

        Otherwise returns before it is reached. What clients send meanwhile arrives later.
        """
        self._new = new
        self._streams = Streams(secrets.token_hex(8), self._told)
        first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._working = [asyncio.create_task(self._keep_connected(first)), asyncio.create_task(self._notice_sleep())]
        try:
            if new:
                await first
            else:
                first.add_done_callback(lambda done: done.exception())  # which is the kernel's reason as well
            await self._listen()
        except BaseException:
            await self.close()
            raise

    async def start(self, connection: dict[str, Any], env: dict[str, str]) -> None:
        """Start the kernel, and return when it listens. Raises KernelFailed."""
        self.status = None
        self._ended.clear()
        await self._listen()
        answer = await self._ask({"op": "start", "connection": connection, "env": env})
        error = answer.get("error")
        if error == "no-ipykernel":
            raise KernelFailed(
                f"The task's Python has no package ipykernel ({answer['detail']}). Run `pip install ipykernel` in the "
                "task, or choose an image that has it."
            )
        if error is not None:
            tail = str(answer.get("tail") or answer.get("detail") or "").strip()
            raise KernelFailed(f"The kernel in the task ended while it started. Its last words: {tail[-1500:]}")

    async def signal(self, number: int) -> None:
        """Send a signal to the kernel and what it started; at the next connection when there is none now."""
        asked = asyncio.ensure_future(self._ask({"op": "signal", "signum": number}))
        await asyncio.wait([asked], timeout=SHUTDOWN_S)

    async def wait(self) -> None:
        """Wait until the kernel has ended."""
        await self._ended.wait()

    async def quit(self) -> bool:
        """End the kernel and its holder; whether they were reached."""
        if self.reason:
            return True
        asked = asyncio.ensure_future(self._ask({"op": "quit"}))
        done, _ = await asyncio.wait([asked], timeout=SHUTDOWN_S)
        asked.cancel()
        return bool(done)

    async def close(self) -> None:
        """Leave the kernel as it is and give up everything here."""
        for task in self._working:
            task.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)
        self._streams.close()
        for server in self._servers:
            server.close()
        shutil.rmtree(self._local, ignore_errors=True)

    def end(self) -> None:
        """End the loop; from another thread, after :meth:`close`."""
        self._thread.close()

    async def _listen(self) -> None:
        """Listen for clients. A manager removes the sockets' names when it restarts a kernel."""
        for server in self._servers:
            server.close()
        self._servers = [
            await asyncio.start_unix_server(self._accepting(channel), f"{self.ip}-{channel}")
            for channel in range(1, CHANNELS + 1)
        ]

    def _accepting(self, channel: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        return lambda reader, writer: self._streams.open(channel, reader, writer)

    async def _ask(self, value: dict[str, Any]) -> dict[str, Any]:
        """Ask the holder, and wait for its answer however long the connection is broken. Raises KernelFailed."""
        if self.reason:
            raise KernelFailed(self.reason)
        number = len(self._answers) + 1
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        self._streams.link.tell({"id": number, **value})
        told: dict[str, Any] = await answer
        return told

    async def _told(self, value: dict[str, Any]) -> None:
        if "answer" in value:
            waiting = self._answers[value["answer"]]
            if not waiting.done():
                waiting.set_result(value)
        if value.get("event") == "ended" or (value.get("event") == "state" and value["status"] is not None):
            if value.get("lacked_memory"):
                self.died = LACKED_MEMORY
                self._log.warning("Kernel in job %s: %s", self.place.job, self.died)
            self._over(value["status"])

    def _over(self, status: int, reason: str = "") -> None:
        self.status = status
        self.reason = self.reason or reason
        self._ended.set()
        if reason:
            self._log.warning("Kernel in job %s: %s", self.place.job, reason)
            for waiting in self._answers.values():
                if not waiting.done():
                    waiting.set_exception(KernelFailed(reason))
                    waiting.exception()  # its caller may have given up

    async def _keep_connected(self, first: asyncio.Future[None]) -> None:
        """Connect, and again whenever the connection breaks, until the kernel cannot be there any more."""
        pause = FIRST_PAUSE_S
        while not self.reason:
            began = time.monotonic()
            try:
                await self._connected(first)
            except Ended as error:
                self._over(1, str(error))
            except TaskWaits as error:
                self._note_waiting(str(error))
                await asyncio.sleep(WAITING_PAUSE_S)
                continue
            except (_LinkBroken, ClientError, OSError) as error:
                self._log.info("Kernel in job %s is not reached: %s", self.place.job, error)
                if self._new and not isinstance(error, OSError):
                    first.set_exception(KernelFailed(_explained(error)))
                    return
            if time.monotonic() - began > LONGEST_PAUSE_S:
                pause = FIRST_PAUSE_S
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_S)
        if not first.done():
            first.set_exception(KernelFailed(self.reason))

    async def _connected(self, first: asyncio.Future[None]) -> None:
        """One connection, until it breaks. Raises Waits, Ended, _LinkBroken, ClientError, OSError."""
        way = await asyncio.to_thread(self._route.command, self.place)
        self.waiting, self.place = "", KernelPlace(way.uid, way.alias, self.place.directory)
        process = await asyncio.create_subprocess_exec(
            *way.command,
            f"exec {shlex.quote(self._python)} -c {_quoted(BOOTSTRAP)}",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=4 * CHUNK,
            start_new_session=True,  # Ctrl-C at a Jupyter server's terminal is not meant for it
        )
        try:
            await self._linked(process, way, first)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _linked(
        self, process: asyncio.subprocess.Process, way: RouteCommand, first: asyncio.Future[None]
    ) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        complaints = asyncio.create_task(process.stderr.read())
        request = {
            "directory": self.place.directory,
            "begin": self._new,
            "keep_s": self._keep_s,
            "program": task_program(),
        }
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n" + self._streams.link.hello())
            await process.stdin.drain()
            await _skip_noise(process.stdout)
            kind, payload = await read_frame(process.stdout)
        except (OSError, asyncio.IncompleteReadError):
            said = (await complaints).decode(errors="replace").strip().splitlines()
            code = await process.wait()
            raise self._broken(code, said[-1] if said else f"ssh ended with exit status {code}") from None
        except BaseException:
            complaints.cancel()
            raise
        hello = json.loads(payload)
        if kind == ERROR:
            complaints.cancel()
            raise Ended(_refusal(hello))
        self._new = False
        if not first.done():
            first.set_result(None)
        async with way.proof:
            await self._streams.link.serve(process.stdout, process.stdin, hello["received"])
        complaints.cancel()

    def _broken(self, code: int, said: str) -> Exception:
        if code in (126, 127):
            return Ended(
                f"The task has no program {self._python} ({said}). Choose an image with Python, or name the program "
                "with `pai kernel install --python`."
            )
        return _LinkBroken(said)

    async def _notice_sleep(self) -> None:
        """After a sleep of this machine the other end may have given the connection up without telling it."""
        before = time.time()
        while True:
            await asyncio.sleep(TICK_S)
            now = time.time()
            if now - before > TICK_S + SLEPT_S:
                self.reconnect()
            before = now

    def reconnect(self) -> None:
        """Give up the present connection for a new one; nothing that was sent is lost."""
        self._streams.link.disconnect()

    def _note_waiting(self, why: str) -> None:
        if why != self.waiting:
            self.waiting = why
            self._log.warning("The kernel waits for job %s: %s", self.place.job, why)


def _explained(error: Exception) -> str:
    """An error with its remedy."""
    return f"{error.message} {error.hint}".strip() if isinstance(error, ClientError) else str(error)


def _refusal(hello: dict[str, Any]) -> str:
    """The sentence for what the plug refused."""
    detail = str(hello.get("detail", ""))
    return {
        "gone": "The kernel has ended, because its task was started again or ended it.",
        "not-ours": "The kernel's directory in the task belongs to another user.",
        "no-place": f"The kernel's directory cannot be made in the task: {detail}",
        "no-holder": f"Python in the task cannot hold a kernel: {detail}",
    }.get(hello["error"], detail)


async def _skip_noise(reader: asyncio.StreamReader) -> None:
    """Read over what the shell of a login prints. Raises IncompleteReadError, ConnectionError."""
    try:
        await reader.readuntil(MAGIC)
    except asyncio.LimitOverrunError as error:
        raise ConnectionError("the login prints too much") from error


def _quoted(text: str) -> str:
    assert '"' not in text
    assert "$" not in text
    return f'"{text}"'


def remove_leftovers(path: Path) -> None:
    """Remove the local directory of a kernel whose process was killed."""
    with contextlib.suppress(OSError):
        if path.name.startswith("pai-kernel-") and path.stat().st_uid == os.getuid():
            shutil.rmtree(path)
