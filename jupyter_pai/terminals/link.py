"""One connection to a task's terminals: an OpenSSH client on pipes, and the frames that pass through it."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence

from jupyter_pai.errors import ClientError, NotFound
from jupyter_pai.terminals.frames import (
    ERROR,
    LIST,
    SUBSYSTEM,
    Frame,
    FrameError,
    FrameReader,
    input_frames,
    json_content,
    request_frame,
    size_frame,
)
from pai_backend.model.text import Text

_PIECE = 1 << 16
_WORDS_BYTES = 4096  # of what OpenSSH itself says
_END_S = 5.0
_OPTIONS = (
    *("-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3"),
    *("-o", "ControlMaster=no", "-o", "ControlPath=none", "-o", "ClearAllForwardings=yes", "-o", "LogLevel=ERROR"),
)
_GONE = "gone"


class TerminalLink:
    """A request to the subsystem, and what comes of it."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process, self._to, self._from = process, process.stdin, process.stdout
        self._reader = FrameReader()
        self._words = b""
        self._listening = asyncio.create_task(self._keep_words(process.stderr))

    @classmethod
    async def open(cls, login: Sequence[str], **request: object) -> TerminalLink:
        """Start OpenSSH and send the request. ``login`` is a command that logs in."""
        command = [login[0], *_OPTIONS, *login[1:-1], "-s", login[-1], SUBSYSTEM]
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
        )
        link = cls(process)
        await link._send(request_frame(**request))
        return link

    async def read(self) -> list[Frame]:
        """Some frames; none at the end. Raises FrameError."""
        while True:
            data = await self._from.read(_PIECE)
            if not data:
                return []
            if frames := self._reader.feed(data):
                return frames

    async def type(self, data: bytes) -> None:
        """Send what was typed; dropped when the connection is lost."""
        await self._send(input_frames(data))

    async def resize(self, rows: int, columns: int) -> None:
        """Send the size of the window."""
        await self._send(size_frame(rows, columns))

    async def _send(self, data: bytes) -> None:
        try:
            self._to.write(data)
            await self._to.drain()
        except (ConnectionError, RuntimeError):  # the reading side sees the end, and says why
            return

    async def _keep_words(self, stderr: asyncio.StreamReader) -> None:
        while data := await stderr.read(_PIECE):
            self._words = (self._words + data)[-_WORDS_BYTES:]

    async def aclose(self) -> None:
        """End the connection; the session stays."""
        self._to.close()
        try:
            async with asyncio.timeout(_END_S):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)

    async def failure(self) -> ClientError:
        """Why the connection ended before an answer came. Call it at the end of the frames."""
        status = await self._process.wait()
        await asyncio.gather(self._listening, return_exceptions=True)
        lines = printable(self._words.decode(errors="replace")).split("\n")
        said = next(
            (line.strip() for line in reversed(lines) if line.strip()),
            Text("OpenSSH ended with status {status}.", status=status),
        )
        if "subsystem request failed" in said:
            return ClientError(
                "The SSH server of this task has no persistent terminals: an earlier release started it.",
                code="NotImplementedError",
                hint="Use `pai ssh`, or run the job again.",
            )
        return ClientError(said, code="UnavailableError")


async def asked(login: Sequence[str], **request: object) -> list[dict[str, object]]:
    """The answer to a request that lists or ends sessions. Raises ClientError."""
    link = await TerminalLink.open(login, **request)
    try:
        while frames := await link.read():
            for kind, content in frames:
                if kind == LIST:
                    return _sessions(content)
                if kind == ERROR:
                    raise refusal(content)
        raise await link.failure()
    except FrameError as error:
        raise unreadable(error) from None
    finally:
        await link.aclose()


def _sessions(content: bytes) -> list[dict[str, object]]:
    found = json_content(b'{"sessions":' + content + b"}")["sessions"]
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise FrameError(Text("the content is not a list of sessions"))
    return found


def refusal(content: bytes) -> ClientError:
    """The error that the task answered with. Raises FrameError."""
    told = json_content(content)
    message = printable(str(told.get("message")))
    if told.get("error") == _GONE:
        return NotFound(
            message, code="NoTerminalError", status=404, hint="List the terminals with `pai terminal JOB --list`."
        )
    return ClientError(message, code="InvalidParametersError")


def unreadable(error: FrameError) -> ClientError:
    """The error for a task that does not speak as it should."""
    return ClientError(Text("The answer of the task cannot be read: {error}.", error=error), code="UnknownError")


def printable(text: str) -> str:
    """The text without characters that a terminal would obey; line breaks stay."""
    return "".join(each for each in text.replace("\r", "") if each == "\n" or each.isprintable())
