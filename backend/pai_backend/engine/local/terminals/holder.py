"""The process that holds one session: its terminal, its scrollback and its clients."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import termios
import time
from contextlib import suppress
from typing import Any

from pai_backend.engine.local.terminals.client import PIECE_BYTES, Scrollback, TerminalAttachment
from pai_backend.engine.local.terminals.frames import (
    ERROR,
    EXIT,
    INPUT,
    INPUT_BYTES,
    OUTPUT,
    REPLAY,
    REQUEST_BYTES,
    SIZE,
    Request,
    TerminalRefused,
    frame,
    json_frame,
)

MOST_CLIENTS = 16  # of one session
BEHIND_BYTES = 1 << 18  # a client that takes output holds the shell up when it is further behind than this
STALLED_S = 5.0  # a client that has taken nothing for so long holds it up no longer
HANGUP_S = 1.0  # a shell that gave its terminal up leaves it open: its output is over when nothing has come for so long
KILL_S = 2.0  # between a hang-up that was asked for and a kill
UNUSED_S = 60.0  # a holder to which no client attaches ends
FULL = f"{MOST_CLIENTS} clients are attached to the terminal. Detach one of them."
_IUTF8 = 0x4000  # asm-generic/termbits.h and macOS sys/termios.h; the termios module has it from 3.13 only


class TerminalHolder:
    """The process that owns one session."""

    def __init__(self, listening: socket.socket, name: str, program: list[str]) -> None:
        self._listening, self._name, self._program = listening, name, program
        self._scrollback = Scrollback()
        self._clients: list[TerminalAttachment] = []
        self._terminal, self._shell = -1, 0
        self._typed = bytearray()
        self._since = time.time()
        self._status: int | None = None
        self._read_at = 0.0  # when output or the shell's end came last
        self._is_over = False  # whether all output has been read
        self._is_told = False
        self._kill_at = 0.0
        self._enders: list[socket.socket] = []  # who asked for the end, and waits for it
        self._wake, wake = os.pipe()
        for descriptor in (self._wake, wake):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run(self) -> None:
        """Serve until the shell has ended and a client knows, or no client has ever attached."""
        self._turn()
        while not self._is_finished:
            self._turn()

    @property
    def has_arrivals(self) -> bool:
        """Whether a client has come that was not looked at."""
        return bool(select.select([self._listening], [], [], 0)[0])

    @property
    def _is_finished(self) -> bool:
        if not self._shell:
            return time.time() - self._since > UNUSED_S
        return self._is_told and not self._clients and self._is_over and self._status is not None

    def _turn(self) -> None:
        readers: list[Any] = [self._listening, self._wake]
        writers: list[int] = [client.sink for client in self._clients if self._has_more(client)]
        if len(self._typed) < INPUT_BYTES:
            readers += [client.source for client in self._clients]
        if self._terminal >= 0 and not self._is_over:
            if not self._is_held_up():
                readers.append(self._terminal)
            if self._typed:
                writers.append(self._terminal)
        ready, writable, _ = select.select(readers, writers, [], self._rest())
        if self._wake in ready:
            self._reap()
        if self._terminal in writable:
            self._type()
        if self._terminal in ready:
            self._read()
        for client in list(self._clients):
            try:
                if client.source in ready:
                    self._hear(client)
                if client.sink in writable:
                    client.write()
                if client.is_told and not client.out:
                    self._is_told = True
                    self._drop(client)
            except EOFError:
                self._drop(client)
        if self._listening in ready:
            self._welcome()
        self._end_what_is_due()

    def _rest(self) -> float | None:
        """How long there is nothing to do by itself."""
        waits_for_silence = self._status is not None and not self._is_over
        return HANGUP_S / 4 if waits_for_silence or self._kill_at or not self._shell or self._is_held_up() else None

    def _is_held_up(self) -> bool:
        """Whether a client that takes output has much of it to take."""
        late = time.monotonic() - STALLED_S
        end = self._scrollback.end
        return any(end - client.at > BEHIND_BYTES and client.moved_at > late for client in self._clients)

    def _has_more(self, client: TerminalAttachment) -> bool:
        """Whether there is something to send, which this prepares."""
        if client.out or client.is_told:
            return bool(client.out)
        if client.at < self._scrollback.first:
            client.out += frame(REPLAY, self._scrollback.whole())
            client.at = self._scrollback.end
        elif client.at < self._scrollback.end:
            piece = self._scrollback.read(client.at)
            client.out += frame(OUTPUT, piece)
            client.at += len(piece)
        elif self._is_over and self._status is not None:
            client.out += json_frame(EXIT, self._ending())
            client.is_told = True
        return bool(client.out)

    def _ending(self) -> dict[str, int]:
        assert self._status is not None
        code = os.waitstatus_to_exitcode(self._status)
        return {"code": code} if code >= 0 else {"signal": -code}

    def _hear(self, client: TerminalAttachment) -> None:
        for kind, content in client.frames():
            if kind == INPUT:
                self._typed += content
            elif kind == SIZE and len(content) == 4:
                self._resize(*struct.unpack(">HH", content))

    def _type(self) -> None:
        try:
            del self._typed[: os.write(self._terminal, self._typed[:PIECE_BYTES])]
        except BlockingIOError:
            return
        except OSError:  # the terminal has been hung up: no program will read this
            self._typed.clear()

    def _read(self) -> None:
        try:
            data = os.read(self._terminal, PIECE_BYTES)
        except BlockingIOError:
            return
        except OSError:  # hung up: EIO on Linux
            data = b""
        if not data:
            self._is_over = True
        self._scrollback.add(data)
        self._read_at = time.monotonic()

    def _reap(self) -> None:
        with suppress(BlockingIOError):
            while os.read(self._wake, 512):
                pass
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._shell:
                self._status, self._read_at = status, time.monotonic()

    def _end_what_is_due(self) -> None:
        now = time.monotonic()
        if self._status is not None and now - self._read_at >= HANGUP_S and not self._is_held_up():
            self._is_over = True
        if self._kill_at and now >= self._kill_at and self._status is None:
            os.kill(self._shell, signal.SIGKILL)
            self._kill_at = 0.0

    def _resize(self, rows: int, columns: int, *, repaint: bool = False) -> None:
        if self._terminal < 0 or self._is_over:
            return
        with suppress(OSError):
            if termios.tcgetwinsize(self._terminal) != (rows, columns):
                termios.tcsetwinsize(self._terminal, (rows, columns))
            elif repaint and (group := os.tcgetpgrp(self._terminal)) > 0:
                os.killpg(group, signal.SIGWINCH)

    def _drop(self, client: TerminalAttachment) -> None:
        self._clients.remove(client)
        client.close()

    def _welcome(self) -> None:
        """Take a request that another process of this program brings. It sends it at once, and whole."""
        control, _ = self._listening.accept()
        control.settimeout(STALLED_S)
        try:
            content, passed, _, _ = socket.recv_fds(control, REQUEST_BYTES, 2)
            request = Request(content)
        except (OSError, TerminalRefused):
            control.close()
            return
        if request.action == "attach" and len(passed) == 2:
            self._attach(request, TerminalAttachment(control, *passed))
            return
        for descriptor in passed:
            os.close(descriptor)
        if request.action == "end":
            self._enders.append(control)
            self._end()
            return
        with control, suppress(OSError):
            control.sendall(json.dumps(self._about()).encode())

    def _attach(self, request: Request, client: TerminalAttachment) -> None:
        if len(self._clients) >= MOST_CLIENTS:
            with suppress(OSError):
                os.write(client.sink, json_frame(ERROR, {"error": "full", "message": FULL}))
            client.close()
            return
        self._clients.append(client)
        if not self._shell:
            self._start(request)
        else:
            self._resize(*request.size, repaint=True)

    def _start(self, request: Request) -> None:
        pid, terminal = os.forkpty()
        if pid == 0:
            _become(self._program, request)
        self._shell, self._terminal = pid, terminal
        os.set_blocking(terminal, False)

    def _about(self) -> dict[str, object]:
        ended = self._ending() if self._status is not None else None
        return {"name": self._name, "since": self._since, "clients": len(self._clients), "ended": ended}

    def _end(self) -> None:
        """Hang the terminal up. Clients are told as after any other end."""
        self._is_told = self._is_told or not self._clients
        if not self._shell:
            self._since = 0.0
        elif self._status is None:
            self._kill_at = time.monotonic() + KILL_S
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._shell, signal.SIGHUP)
                os.killpg(self._shell, signal.SIGCONT)


def _become(program: list[str], request: Request) -> None:
    """Be the shell, in a process that has just been forked; never returns."""
    try:
        attributes = termios.tcgetattr(0)
        attributes[0] |= _IUTF8
        termios.tcsetattr(0, termios.TCSANOW, attributes)
        termios.tcsetwinsize(0, request.size)
        for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(ignored_by_python, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        environment = {key: value for key, value in os.environ.items() if key != "SSH_AUTH_SOCK"}
        environment |= {"TERM": request.term, "SSH_TTY": os.ttyname(0)}
        os.execve(program[0], program, environment)
    except (OSError, ValueError, termios.error) as error:
        os.write(2, f"the shell cannot be started: {error}\r\n".encode())
    finally:
        os._exit(255)
