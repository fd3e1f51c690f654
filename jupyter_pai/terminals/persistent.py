"""A terminal that connects again after its connection was lost, until the shell or the task ends."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from jupyter_pai.errors import AWAY, ClientError, NotFound
from jupyter_pai.terminals.frames import ERROR, EXIT, OUTPUT, REPLAY, Frame, FrameError, json_content
from jupyter_pai.terminals.link import TerminalLink, refusal, unreadable
from jupyter_pai.terminals.login import LoginCommand, entered

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 10.0
_MOST_EARLY = 1 << 16


class Screen(Protocol):
    """Where a terminal is shown."""

    async def show(self, data: bytes) -> None:
        """Output; returns when there is room for more."""

    async def lost(self, reason: str) -> None:
        """The connection is lost, and will be made again."""


@dataclass(frozen=True)
class Ending:
    """How a shell ended: by itself, by a signal, or with its task, which ``reason`` tells then."""

    code: int | None = None
    signal: int | None = None
    reason: str = ""


@dataclass
class PersistentTerminal:
    """One client of a session. ``log_in`` blocks; it is entered in a thread, again for each connection.

    ``may_start``: there may be no such session yet. ``is_patient``: it waits also before the first connection.
    """

    log_in: Callable[[], AbstractContextManager[LoginCommand]]
    name: str
    screen: Screen
    size: tuple[int, int]
    term: str = "xterm-256color"
    may_start: bool = True
    is_patient: bool = False
    _link: TerminalLink | None = field(default=None, init=False)
    _early: bytearray | None = field(default_factory=bytearray, init=False)

    async def run(self) -> Ending:
        """Show the shell until it ends. Raises ClientError when it was never shown."""
        pause = _FIRST_PAUSE_S
        while True:
            try:
                if (ending := await self._connected()) is not None:
                    return ending
                why, pause = "", _FIRST_PAUSE_S
            except ClientError as error:
                is_away = error.exit_code == AWAY and not isinstance(error, NotFound)
                was_shown = self._early is None
                if not is_away and was_shown:
                    return Ending(reason=error.message)
                if not is_away or not self.is_patient:
                    raise
                why = error.message
            await self.screen.lost(why)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    async def type(self, data: bytes) -> None:
        """Send what was typed. Before the first connection it is kept for that; while one is lost it is dropped, as the
        user does not see where it would go.
        """
        if self._link is not None:
            await self._link.type(data)
        elif self._early is not None and len(self._early) + len(data) <= _MOST_EARLY:
            self._early += data

    async def resize(self, rows: int, columns: int) -> None:
        """Send the window's size, and remember it for the next connection."""
        self.size = rows, columns
        if self._link is not None:
            await self._link.resize(rows, columns)

    async def _connected(self) -> Ending | None:
        """One connection, until it ends: how the shell ended, or None. Raises ClientError when it failed."""
        async with entered(self.log_in()) as login:
            rows, columns = self.size
            request = {"do": "attach", "owner": login.folder, "name": self.name, "start": self.may_start}
            link = await TerminalLink.open(login.command, **request, term=self.term, rows=rows, cols=columns)
            try:
                return await self._shown(link)
            finally:
                self._link = None
                await link.aclose()

    async def _shown(self, link: TerminalLink) -> Ending | None:
        try:
            while frames := await link.read():
                for each in frames:
                    if (ending := await self._take(link, each)) is not None:
                        return ending
        except FrameError as error:
            raise unreadable(error) from None
        if self._link is None:
            raise await link.failure()
        return None

    async def _take(self, link: TerminalLink, taken: Frame) -> Ending | None:
        kind, content = taken
        if kind == ERROR:
            raise refusal(content)
        if kind == EXIT:
            told = json_content(content)
            return Ending(_number(told.get("code")), _number(told.get("signal")))
        if kind == REPLAY:
            early, self._early = self._early, None
            self._link, self.may_start, self.is_patient = link, False, True
            if early:
                await link.type(bytes(early))
            if content:
                await self.screen.show(CLEAR + without_queries(content))
        elif kind == OUTPUT:
            await self.screen.show(content)
        return None


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


CLEAR = b"\x1bc"
"""Resets a terminal (RIS), its own scrollback included."""

_CSI, _OSC, _DCS = rb"(?:\x1b\[|\xc2\x9b)", rb"(?:\x1b\]|\xc2\x9d)", rb"(?:\x1bP|\xc2\x90)"
_PARTS = re.compile(
    rb"(?P<osc>" + _OSC + rb"(?P<text>[^\x07\x1b]*)(?:\x07|\x1b\\)?)"
    rb"|(?P<query>"
    + _CSI + rb"[?>=]?[\d;]*c"  # device attributes
    rb"|" + _CSI + rb"\??[\d;]*n"  # status and cursor position
    rb"|" + _CSI + rb"\??[\d;]*\$p"  # modes
    rb"|" + _CSI + rb">[\d;]*q"  # name and version
    rb"|" + _CSI + rb"\?u"  # keyboard protocol
    rb"|" + _CSI + rb"[\d;]*[tx]"  # window reports, terminal parameters
    rb"|" + _DCS + rb"[$+]q[^\x1b]*(?:\x1b\\)?"  # settings, termcap
    rb"|\x1bZ|\x05|\x07)"
)  # fmt: skip
_OSC_QUERY = re.compile(rb"(?:52;|(?:4|5|1\d|21|104);.*\?)", re.DOTALL)


def without_queries(scrollback: bytes) -> bytes:
    """The same output, which no terminal answers.

    A terminal that is sent ``ESC [ 6 n`` types its cursor's position. In a replay the program that asked is long gone,
    and the shell would read the answer as a command. Bells and writes to the clipboard have happened once, too. Source
    of the sequences: ctlseqs, XTerm Control Sequences.
    """
    return _PARTS.sub(_kept, scrollback)


def _kept(found: re.Match[bytes]) -> bytes:
    text = found["text"]
    return b"" if text is None or _OSC_QUERY.match(text) else found[0]
