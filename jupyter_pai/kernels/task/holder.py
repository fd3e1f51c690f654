"""Holds one kernel of a task: starts it, keeps its connections while no client is attached, and says when it ends.

It is the kernel's parent, so a kernel without its holder ends itself. Its directory is the user's alone. The kernel
listens on sockets in it, not on ports: other users cannot connect, and no other program can take a port.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import shutil
import signal
import sys
from collections.abc import Awaitable
from typing import Any

from .link import CLOSE, HELLO, Streams, read_frame

CHANNELS = 5
IOPUB = 2
BUSY_S = 2.0
"""How often a client is told that the kernel computes, so that who watches the connection sees it in use."""
CONTROL_GROUPS = "/sys/fs/cgroup"
DEAD_S = 600
"""How long a holder whose kernel has ended waits for a client that starts it again."""
TAIL = 4000
"""Bytes of what a kernel wrote to its standard error that are told when it ends."""


class KernelHolder:
    """The kernel in ``directory``. ``keep_s``: how long it is kept without anybody attached; None: for ever."""

    def __init__(self, directory: str, keep_s: float | None) -> None:
        self._directory = directory
        self._keep_s = keep_s
        self._streams: Streams | None = None
        self._link: asyncio.StreamWriter | None = None
        self._kernel: asyncio.subprocess.Process | None = None
        self._status: int | None = None
        self._lacked_memory = False
        self._is_busy = False
        self._tail = b""
        self._left: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Future[Any]] = set()
        self._done = asyncio.Event()

    async def run(self) -> None:
        """Serve until told to end, or until no client has needed the kernel for long."""
        server = await asyncio.start_unix_server(self._attached, os.path.join(self._directory, "link"))
        asyncio.get_event_loop().add_signal_handler(signal.SIGTERM, self._done.set)
        self._wait()
        await self._done.wait()
        server.close()
        self._signal(signal.SIGKILL)
        shutil.rmtree(self._directory, ignore_errors=True)

    def _wait(self) -> None:
        """Begin to wait for a client: the last one has gone, or the kernel has ended."""
        if self._left is not None:
            self._left.cancel()
            self._left = None
        patience = DEAD_S if self._kernel is None else self._keep_s
        if self._link is None and patience is not None:
            self._left = asyncio.get_event_loop().call_later(patience, self._done.set)

    async def _attached(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection. A newer one replaces it; one of another client begins a new link."""
        try:
            kind, payload = await read_frame(reader)
            hello = json.loads(payload.decode())
        except (OSError, ValueError, asyncio.IncompleteReadError):
            writer.close()
            return
        if kind != HELLO:
            writer.close()
            return
        before, self._link = self._link, writer
        if before is not None:
            before.close()
        streams = self._streams
        if streams is None or streams.link.name != hello["link"]:
            if streams is not None:
                streams.close()
            streams = self._streams = Streams(hello["link"], self._told, self._arrived)
            streams.link.tell({"event": "state", **self._state()})
        self._wait()
        writer.write(streams.link.hello())
        try:
            await streams.link.serve(reader, writer, hello["received"])
        except ConnectionError:
            pass
        finally:
            writer.close()
            if self._link is writer:
                self._link = None
                self._wait()

    def _state(self) -> dict[str, Any]:
        return {
            "pid": None if self._kernel is None else self._kernel.pid,
            "status": self._status,
            "lacked_memory": self._lacked_memory,
            "tail": self._tail.decode(errors="replace"),
        }

    async def _arrived(self, stream: int, channel: int) -> None:
        """A client has connected to a channel of the kernel."""
        assert self._streams is not None
        try:
            reader, writer = await asyncio.open_unix_connection(self._socket(channel))
        except OSError:
            self._streams.link.send(CLOSE, stream)
        else:
            self._streams.join(stream, reader, writer)

    def _socket(self, channel: int) -> str:
        return os.path.join(self._directory, f"k-{channel}")

    async def _told(self, value: dict[str, Any]) -> None:
        """What the other end asks for; each is answered under its number."""
        operation = value["op"]
        if operation == "start":
            self._begin(self._answered(value, self._start(value)))
            return
        if operation == "signal":
            self._signal(value["signum"])
        elif operation == "quit":
            self._signal(signal.SIGKILL)
            asyncio.get_event_loop().call_later(0.5, self._done.set)
        self._tell({"answer": value["id"]})

    def _begin(self, work: Awaitable[Any]) -> asyncio.Future[Any]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _tell(self, value: dict[str, Any]) -> None:
        if self._streams is not None:
            self._streams.link.tell(value)

    async def _answered(self, value: dict[str, Any], work: Awaitable[dict[str, Any]]) -> None:
        try:
            answer = await work
        except OSError as error:
            answer = {"error": "no-kernel", "detail": str(error)}
        self._tell({"answer": value["id"], **answer})

    async def _start(self, value: dict[str, Any]) -> dict[str, Any]:
        """Start the kernel and wait until it listens. One that runs already is left alone."""
        if self._kernel is not None:
            return self._state()
        if importlib.util.find_spec("ipykernel") is None:
            version = ".".join(str(part) for part in sys.version_info[:2])
            return {"error": "no-ipykernel", "detail": f"{sys.executable}, Python {version}"}
        connection = self._prepared(value["connection"])
        self._status, self._lacked_memory, self._tail = None, False, b""
        kills = memory_kills()
        self._kernel = kernel = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "ipykernel_launcher",
            "-f",
            connection,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **value["env"], "JPY_PARENT_PID": str(os.getpid())},
            start_new_session=True,
        )
        self._wait()
        self._begin(self._watch(kernel, kills))
        while self._kernel is kernel and not self._listens():  # noqa: ASYNC110  # ipykernel does not tell
            await asyncio.sleep(0.02)
        return self._state() if self._kernel is kernel else {"error": "ended", **self._state()}

    def _prepared(self, connection: dict[str, Any]) -> str:
        """The connection file of a new kernel, whose sockets are not there yet."""
        for channel in range(1, CHANNELS + 1):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._socket(channel))
        path = os.path.join(self._directory, "connection.json")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump({**connection, "ip": os.path.join(self._directory, "k")}, file)
        return path

    def _listens(self) -> bool:
        return all(os.path.exists(self._socket(channel)) for channel in range(1, CHANNELS + 1))

    async def _watch(self, kernel: asyncio.subprocess.Process, kills: int) -> None:
        """Keep the end of what the kernel writes, until it ends. Its children may keep the pipe open."""
        assert kernel.stderr is not None
        reading = asyncio.ensure_future(self._keep_tail(kernel.stderr))
        watching = [asyncio.ensure_future(self._watch_state()), asyncio.ensure_future(self._tell_busy())]
        self._status = await kernel.wait()
        self._lacked_memory = self._status == -signal.SIGKILL and memory_kills() > kills >= 0
        await asyncio.wait([reading], timeout=1)
        for each in (reading, *watching):
            each.cancel()
        self._kernel = None
        self._wait()
        self._tell({"event": "ended", **self._state()})

    async def _watch_state(self) -> None:
        """Follow whether the kernel computes. ipykernel brings what this needs."""
        import zmq.asyncio

        self._is_busy = False
        with zmq.asyncio.Context() as context, context.socket(zmq.SUB) as socket:
            socket.subscribe(b"kernel.")
            socket.connect(f"ipc://{self._socket(IOPUB)}")
            while True:
                topic, *parts = await socket.recv_multipart()
                if topic.endswith(b".status"):
                    self._is_busy = json.loads(parts[5]).get("execution_state") == "busy"

    async def _tell_busy(self) -> None:
        while True:
            await asyncio.sleep(BUSY_S)
            if self._is_busy and self._link is not None:
                self._tell({"event": "busy"})

    async def _keep_tail(self, errors: asyncio.StreamReader) -> None:
        while True:
            data = await errors.read(65536)
            if not data:
                return
            self._tail = (self._tail + data)[-TAIL:]

    def _signal(self, number: int) -> None:
        """Signal the kernel's process group, as a local Jupyter does."""
        if self._kernel is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._kernel.pid, number)


def memory_kills(membership: str = "/proc/self/cgroup", groups: str = CONTROL_GROUPS) -> int:
    """How many processes here the system has killed for lack of memory; -1 where it is not counted.

    Source: the kernel's documentation, cgroup-v2 memory.events and cgroup-v1 memory.oom_control.
    """
    for line in _text(membership).splitlines():
        _, controllers, place = line.split(":", 2)
        if "memory" in controllers.split(","):
            base, name = os.path.join(groups, "memory"), "memory.oom_control"
        elif controllers == "":
            base, name = groups, "memory.events"
        else:
            continue
        for inside in (place, "/"):  # in a container the hierarchy may be mounted from further down
            for counted in _text(os.path.join(base, inside.lstrip("/"), name)).splitlines():
                if counted.startswith("oom_kill "):
                    return int(counted.split()[1])
    return -1


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def main(directory: str, keep_s: float | None) -> None:
    """Hold a kernel in this directory."""
    asyncio.run(KernelHolder(directory, keep_s).run())
