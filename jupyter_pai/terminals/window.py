"""The user's own terminal as the window of a task's: raw, with its size, until the detach key is pressed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Iterator

from jupyter_pai.endpoint import Endpoint, resolve
from jupyter_pai.errors import ClientError
from jupyter_pai.language import tr
from jupyter_pai.terminals.login import TaskPlace, logged_in
from jupyter_pai.terminals.persistent import Ending, PersistentTerminal

_STDIN, _STDOUT = 0, 1
_PIECE = 1 << 14
_LEAVE = b"\x1b[?1049l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?1l\x1b>\x1b[?25h\x1b[0m\r\n"
"""Undoes what a full-screen program may have set: alternate screen, mouse, paste, keys, cursor, colours."""


def attached(place: TaskPlace, name: str, key: bytes) -> Ending | None:
    """Attach to a session until it ends, or until ``key`` is pressed (None then). Raises ClientError."""
    if sys.platform == "win32":
        raise ClientError(
            "Terminals can be attached to from Linux and macOS only.",
            code="NotImplementedError",
            hint="Use WSL, the terminals of JupyterLab, or `pai ssh`.",
        )
    with _raw():
        return asyncio.run(_attached(place, name, key))


async def _attached(place: TaskPlace, name: str, key: bytes) -> Ending | None:
    loop = asyncio.get_running_loop()
    window = _Window(key)

    def find() -> Endpoint:
        """Where the backend is. One that the user has stopped meanwhile is not started for this."""
        return resolve(start=not terminal.is_patient)

    term = os.environ.get("TERM", "xterm-256color")
    terminal = PersistentTerminal(lambda: logged_in(find, place), name, window, _size(), term)
    loop.add_reader(_STDIN, window.take)
    loop.add_signal_handler(signal.SIGWINCH, window.resized.set)
    running = asyncio.create_task(terminal.run())
    feeding, following = asyncio.create_task(window.feed(terminal)), asyncio.create_task(window.follow(terminal))
    try:
        await asyncio.wait({running, feeding, following}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            return running.result()
        (feeding if feeding.done() else following).result()
        return None
    finally:
        loop.remove_reader(_STDIN)
        for task in (running, feeding, following):
            task.cancel()
        await asyncio.gather(running, feeding, following, return_exceptions=True)


class _Window:
    """The terminal in which this program runs."""

    def __init__(self, key: bytes) -> None:
        self.resized = asyncio.Event()
        self._key = key
        self._typed: asyncio.Queue[bytes] = asyncio.Queue()

    def take(self) -> None:
        """Called by the loop when a key was pressed."""
        try:
            self._typed.put_nowait(os.read(_STDIN, _PIECE))
        except OSError:  # the window was closed
            self._typed.put_nowait(b"")

    async def feed(self, terminal: PersistentTerminal) -> None:
        """Send what is typed; returns at the detach key, and when the window is closed."""
        while data := await self._typed.get():
            before, pressed, _ = data.partition(self._key)
            await terminal.type(before)
            if pressed:
                return

    async def follow(self, terminal: PersistentTerminal) -> None:
        """Send the size whenever it changes."""
        while True:
            await self.resized.wait()
            self.resized.clear()
            await terminal.resize(*_size())

    async def show(self, data: bytes) -> None:
        """Write to the window, in a thread: a window that is stopped by the user blocks."""
        await asyncio.to_thread(_write, data)

    async def lost(self, reason: str) -> None:
        """Say so."""
        said = tr("The connection is lost; it is made again. {reason}", reason=tr(reason))
        await self.show(f"\r\n[{said}]\r\n".encode())


def _write(data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(_STDOUT, rest) :]


def _size() -> tuple[int, int]:
    """Rows and columns."""
    with contextlib.suppress(OSError):
        size = os.get_terminal_size(_STDIN)
        if size.lines > 0 and size.columns > 0:
            return size.lines, size.columns
    return 24, 80


@contextlib.contextmanager
def _raw() -> Iterator[None]:
    """Pass every key on, and undo that in the end."""
    import termios
    import tty

    before = termios.tcgetattr(_STDIN)
    try:
        tty.setraw(_STDIN, termios.TCSADRAIN)  # what was typed already is not thrown away
        yield
    finally:
        termios.tcsetattr(_STDIN, termios.TCSADRAIN, before)
        with contextlib.suppress(OSError):
            _write(_LEAVE)
