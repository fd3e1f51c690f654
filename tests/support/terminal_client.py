"""A client of persistent terminals that speaks their frames over the pipes of a program."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

PATIENCE_S = 90.0
OWNER = "00c0ffee"


class TerminalClient:
    """One request to a program that serves terminals, and what comes of it."""

    def __init__(self, command: Sequence[str], *, cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=cwd, env=env)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._to, self._from = self.process.stdin.fileno(), self.process.stdout.fileno()
        self._unread = bytearray()
        self.frames: list[tuple[bytes, bytes]] = []
        self.screen = bytearray()
        """What the shell has written since the client attached; a replay takes the place of all before it."""

    def send(self, kind: bytes, content: bytes) -> None:
        """Send one frame."""
        os.write(self._to, kind + struct.pack(">I", len(content)) + content)

    def ask(self, **request: object) -> None:
        """Send the request."""
        self.send(b"H", json.dumps({"owner": OWNER, **request}).encode())

    def type(self, text: str) -> None:
        """Type."""
        self.send(b"I", text.encode())

    def resize(self, rows: int, columns: int) -> None:
        """Tell another size."""
        self.send(b"S", struct.pack(">HH", rows, columns))

    def next(self) -> tuple[bytes, bytes] | None:
        """The next frame; None at the end."""
        while (found := self._taken()) is None:
            assert select.select([self._from], [], [], PATIENCE_S)[0], f"nothing comes after {self.screen[-500:]!r}"
            data = os.read(self._from, 1 << 16)
            if not data:
                return None
            self._unread += data
        self.frames.append(found)
        if found[0] == b"R":
            self.screen[:] = found[1]
        elif found[0] == b"O":
            self.screen += found[1]
        return found

    def _taken(self) -> tuple[bytes, bytes] | None:
        if len(self._unread) < 5:
            return None
        (length,) = struct.unpack_from(">I", self._unread, 1)
        if len(self._unread) < 5 + length:
            return None
        found = bytes(self._unread[:1]), bytes(self._unread[5 : 5 + length])
        del self._unread[: 5 + length]
        return found

    def until(self, text: bytes) -> None:
        """Read until the screen has the text."""
        deadline, seen = time.monotonic() + PATIENCE_S, 0
        while self.screen.find(text, max(0, min(seen, len(self.screen)) - len(text))) < 0:
            assert time.monotonic() < deadline, f"{text!r} is not in {self.screen[-500:]!r}"
            seen = len(self.screen)
            assert self.next() is not None, f"the output ended without {text!r}: {self.screen[-500:]!r}"

    def number(self, name: str) -> int:
        """The number that the shell printed as ``NAME=NUMBER`` and something that is no digit."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := re.search(rb"%s=(\d+)\D" % name.encode(), self.screen)) is None:
            assert time.monotonic() < deadline, f"{name} is not in {self.screen[-500:]!r}"
            assert self.next() is not None, f"the output ended without {name}: {self.screen[-500:]!r}"
        return int(found[1])

    def answer(self, kind: bytes) -> Any:
        """The content of the next frame of that kind."""
        while (found := self.next()) is not None:
            if found[0] == kind:
                return json.loads(found[1])
        assert self.process.stderr is not None
        raise AssertionError(f"the output ended without {kind!r}: {self.process.stderr.read()!r}")

    def close(self) -> None:
        """Go away, as a client does whose connection is lost; returns when the program has ended."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        self.process.wait(PATIENCE_S)


@contextlib.contextmanager
def requesting(
    command: Sequence[str], *, cwd: Path | None = None, env: dict[str, str] | None = None, **request: object
) -> Iterator[TerminalClient]:
    """A request that is sent, and ends with the block."""
    client = TerminalClient(command, cwd=cwd, env=env)
    try:
        client.ask(**request)
        yield client
    finally:
        client.close()
