"""The node agent: keeps an SSH server open for every task that runs, or is kept after it failed, and wants one.

It is a process of its own, so that sessions cannot slow the backend down, and it keeps nothing: what
it serves follows from the task directories, so after any end a new one opens everything again. It
avoids the backend's models on purpose; importing them would double its memory.
``python -m pai_backend.engine.local.agent ROOT`` runs it alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pai_backend.engine.local import dispositions, layout, processes
from pai_backend.engine.local.account import SystemAccount, by_record
from pai_backend.engine.local.account_ssh import AccountListener
from pai_backend.engine.local.hints import HintFifo
from pai_backend.engine.local.layout import HANDOVER_S, take_lock
from pai_backend.engine.local.reading import is_kept
from pai_backend.engine.local.shim.account import groups_of
from pai_backend.engine.local.shim.command import read_launch
from pai_backend.engine.local.ssh_server import Listener, listen
from pai_backend.engine.local.ssh_session import TaskWorld

_log = logging.getLogger(__name__)

PATIENCE_S = 10.0  # how long an agent waits for the place of one that is leaving
SCAN_S = 2.0  # the safety net when a hint is lost, and how often a taken port is tried again


@dataclass(frozen=True)
class _Wanted:
    """What a task's plan says about SSH."""

    task: TaskWorld
    port: int
    host_key: str
    host_certificate: str
    authorized_keys: tuple[str, ...]
    account: SystemAccount | None
    """That the task runs as, where it is another than the agent's."""

    async def listen(self) -> Listener | AccountListener:
        """Open the port. Raises OSError, ValueError."""
        if self.account is None:
            return await listen(self.task, self.port, self.host_key, self.host_certificate, self.authorized_keys)
        task, keys = self.task, {"host_key": self.host_key, "host_certificate": self.host_certificate}
        told = {"uid": task.uid, "directory": str(task.directory), "env": task.env, **keys}
        return AccountListener(self.account, task, self.port, {**told, "authorized_keys": self.authorized_keys})


async def serve_agent(
    root: Path,
    stop: asyncio.Event,
    *,
    drain_s: float = 0.0,
    leaving: Callable[[], None] = lambda: None,
    hurry: asyncio.Event | None = None,
) -> None:
    """Serve the tasks below ``root`` until ``stop`` is set; then end all sessions and return.

    Sessions may go on for ``drain_s`` or until ``hurry`` is set. ``leaving`` is called when that begins: from then on
    another agent has this one's place as soon as it asks. Call it in the main thread. Raises BlockingIOError when
    another agent serves this root and does not give it up.
    """
    dispositions.ignore_alone()
    agent = Agent(root)
    lock = await asyncio.to_thread(_take_lock, root)
    with ExitStack() as place:
        place.callback(os.close, lock)
        place.enter_context(HintFifo(root / layout.AGENT_FIFO, agent.hint))
        try:
            await agent.serve_until(asyncio.create_task(stop.wait()))
            leaving()
            ending = asyncio.create_task(agent.let_end(drain_s, hurry or asyncio.Event()))
            await agent.serve_until(ending, asyncio.create_task(agent.successor.wait()))
            if not ending.done():
                await agent.hand_over()
                place.close()
                await agent.serve_until(ending)
        finally:
            await agent.aclose()


class Agent:
    """The open SSH servers by task uid."""

    def __init__(self, root: Path) -> None:
        self.successor = asyncio.Event()
        """Set when another agent waits for this one's place."""
        self._root = root
        self._open: dict[str, Listener | AccountListener] = {}
        self._refused: dict[str, str] = {}  # why a task's port is not open, as last logged
        self._plain: set[str] = set()  # tasks that want no SSH
        self._hints = asyncio.Event()
        self._closing: set[asyncio.Task[None]] = set()
        self._handed_over = False

    async def serve_until(self, *ends: asyncio.Task[Any]) -> None:
        """Follow the tasks until one of ``ends`` is done; the others are cancelled, but for the first."""
        try:
            while not any(end.done() for end in ends):
                await self._scan()
                await self._rest(ends)
        finally:
            for end in ends[1:]:
                end.cancel()

    async def let_end(self, seconds: float, hurry: asyncio.Event) -> None:
        """Return when no session is open, or after ``seconds``, or when ``hurry`` is set."""
        waits = [asyncio.create_task(self._wait_empty()), asyncio.create_task(hurry.wait())]
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _wait_empty(self) -> None:
        while busy := [listener for listener in self._open.values() if listener.logins]:
            await busy[0].wait_empty()

    async def hand_over(self) -> None:
        """Listen for no task any more. Sessions go on until their task ends."""
        self._handed_over = True
        await asyncio.gather(*(listener.hand_over() for listener in self._open.values()))

    def hint(self, uid: str) -> None:
        """Some task has changed, or another agent waits for us."""
        if uid == layout.SUCCESSOR:
            self.successor.set()
        self._hints.set()

    async def _rest(self, ends: Sequence[asyncio.Task[Any]]) -> None:
        """Sleep until a hint, the next scan, or the end."""
        hinted = asyncio.create_task(self._hints.wait())
        try:
            await asyncio.wait({hinted, *ends}, timeout=SCAN_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            hinted.cancel()
        self._hints.clear()

    async def _scan(self) -> None:
        """Open what is to be served and is not open, close what is open and should not be."""
        served = await asyncio.to_thread(_served, self._root)
        for uid in self._open.keys() - served:
            self._close(uid)
        self._plain &= served
        if self._handed_over:
            return
        self._refused = {uid: why for uid, why in self._refused.items() if uid in served}
        for uid in sorted(served - self._open.keys() - self._plain):
            await self._consider(uid)

    async def _consider(self, uid: str) -> None:
        directory = self._root / layout.TASKS / uid
        try:
            wanted = await asyncio.to_thread(_read_wanted, uid, directory)
            if wanted is None:
                self._plain.add(uid)
                return
            self._open[uid] = await wanted.listen()
        except (OSError, ValueError, KeyError, TypeError) as exc:
            why = f"{type(exc).__name__}: {exc}"
            if self._refused.get(uid) != why:
                self._refused[uid] = why
                _log.warning("SSH of task %s is not open, it is tried again every %.0f s: %s", uid, SCAN_S, why)
                await asyncio.to_thread(_note, directory, {"state": "failed", "error": why})
            return
        self._refused.pop(uid, None)
        await asyncio.to_thread(_note, directory, {"state": "listening", "port": wanted.port})

    def _close(self, uid: str) -> None:
        """End a task's server without making the other tasks wait for it."""
        closing = asyncio.create_task(self._end(uid, self._open.pop(uid)))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def _end(self, uid: str, listener: Listener | AccountListener) -> None:
        """Close the server, then end what a session may have started while the task's own sweep was over."""
        await listener.aclose()
        directory = self._root / layout.TASKS / uid
        if not layout.has_reader(str(directory / layout.CONTROL)):
            await asyncio.to_thread(processes.kill_marked, uid, groups_of(str(directory)))

    async def aclose(self) -> None:
        """Close all servers; the tasks go on, and so do processes that sessions left in the background."""
        await asyncio.gather(*self._closing, *(listener.aclose() for listener in self._open.values()))
        self._open.clear()


def _served(root: Path) -> set[str]:
    """Uids of the tasks whose command has begun and that a shim keeps now, and of those kept after they failed."""
    try:
        names = os.listdir(root / layout.TASKS)
    except FileNotFoundError:
        return set()
    return {name for name in names if not name.startswith(".") and _is_served(root / layout.TASKS / name)}


def _is_served(directory: Path) -> bool:
    if not (directory / layout.STARTED).exists():
        return False
    if not (directory / layout.EXIT).exists() and layout.has_reader(str(directory / layout.CONTROL)):
        return True
    try:
        return is_kept(directory)
    except ValueError:  # a record that is no JSON: the engine reports it, and the other tasks go on
        return False


def _read_wanted(uid: str, directory: Path) -> _Wanted | None:
    """The SSH part of a plan; None when the task wants no SSH. Raises OSError, ValueError or KeyError."""
    plan = json.loads((directory / layout.PLAN).read_bytes())
    if plan["ssh"] is None:
        return None
    env = read_launch(str(directory / layout.LAUNCH)).env
    ssh = plan["ssh"]
    certificate = str(ssh.get("host_certificate", ""))  # a task that an older backend started has none
    world, keys = TaskWorld(uid, directory, env), tuple(ssh["authorized_keys"])
    account = by_record(plan.get("account"))
    return _Wanted(world, int(ssh["port"]), str(ssh["host_key"]), certificate, keys, account)


def _note(directory: Path, state: dict[str, object]) -> None:
    """Leave word in the task's directory; the directory may be gone by now."""
    with contextlib.suppress(OSError):
        path = directory / layout.SSH_STATE
        path.touch(mode=0o600)
        path.write_text(json.dumps(state), encoding="utf-8")


def _take_lock(root: Path) -> int:
    """Hold the agent's lock, which one that is leaving gives up when it is asked to. Blocks for ``PATIENCE_S``."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    deadline = time.monotonic() + PATIENCE_S
    while True:
        layout.send_line(str(root / layout.AGENT_FIFO), layout.SUCCESSOR)
        fd = take_lock(root / layout.AGENT_LOCK, HANDOVER_S)
        if fd is not None:
            return fd
        if time.monotonic() >= deadline:
            raise BlockingIOError(errno.EWOULDBLOCK, f"another agent already serves {root}; stop it first")


async def _main(root: Path) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await serve_agent(root, stop)


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1])))
