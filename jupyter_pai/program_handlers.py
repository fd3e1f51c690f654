"""``…/pai/programs`` and ``…/pai/folders`` of the Jupyter server: run a file of it as a job, send a folder of it.

A folder that was sent is a code tree (``pai_backend.model.code_tree``), which documents name as ``codeDir``.
"""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath

from typing_extensions import TypedDict

from jupyter_pai import running
from jupyter_pai.answering import invalid, member
from jupyter_pai.fs import code
from jupyter_pai.guard import authenticated, authorized
from jupyter_pai.handlers import JOBS
from jupyter_pai.server_files import ServerFilesHandler, needs_of, parent
from jupyter_pai.wire_types import JobDetail
from pai_backend.model.text import Text

INTERPRETERS = {".py": "$(command -v python || echo python3)", ".sh": "bash"}
"""What runs a file, by the end of its name. Debian without a virtual environment has no ``python``."""


class SentFolder(TypedDict):
    """``codeDir`` is what a document names the folder by, ``name`` its directory in a task's working directory."""

    codeDir: str
    name: str


class FoldersHandler(ServerFilesHandler):
    """Sends folders."""

    @authenticated
    @authorized("write", JOBS)
    async def post(self) -> None:
        """Keep the folder that the body names at the backend, unless it is there."""
        await self.require("read")
        await self.answer(self._send())

    async def _send(self) -> SentFolder:
        folder = await self.folder(member(self.asked(), "path", str, ""))
        sent = await code.send(await self.link.client(), folder, {}, self.log.info)
        return {"codeDir": sent.code_dir, "name": sent.name}


class ProgramsHandler(ServerFilesHandler):
    """Runs programs."""

    @authenticated
    @authorized("write", JOBS)
    async def post(self) -> None:
        """Submit the file that the body names, with what it asks for."""
        await self.require("read")
        await self.answer(self._start())

    async def _start(self) -> JobDetail:
        asked = self.asked()
        path = member(asked, "path", str, "").strip("/")
        name = PurePosixPath(path).name
        interpreter = INTERPRETERS.get(PurePosixPath(path).suffix)
        if interpreter is None:
            raise invalid(
                Text("{path} is not a program that a job can run.", path=path),
                Text("Name a file that ends with .py or .sh."),
            )
        arguments = _arguments(member(asked, "arguments", str, ""))
        text = str(await self.content(path, "file"))
        command = running.Command(
            f"{interpreter} {shlex.quote(f'./{name}' if name.startswith('-') else name)}{arguments}",
            needs_of(asked),
            member(asked, "name", str, "") or running.job_name([name]),
            await self.folder(parent(path)) if member(asked, "withFolder", bool, False) else None,
            {name: text.encode()},
        )
        return await running.start(await self.link.client(), command, self.log.info)


def _arguments(text: str) -> str:
    """Arguments as they were typed, if a shell can read them. Raises ClientError."""
    try:
        shlex.split(text)
    except ValueError:
        raise invalid(
            Text("The arguments have a quotation mark that is not closed."), Text("Close it, or put a \\ before it.")
        ) from None
    if "\n" in text or "\r" in text:
        raise invalid(Text("The arguments have several lines."), Text("Put them on one line."))
    return f" {text.strip()}" if text.strip() else ""
