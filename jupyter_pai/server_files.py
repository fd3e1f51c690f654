"""What handlers share that make jobs of files of the Jupyter server."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

from jupyter_core.utils import ensure_async
from jupyter_server.services.contents.filemanager import FileContentsManager
from jupyter_server.utils import ApiPath, to_os_path
from tornado.web import HTTPError

from jupyter_pai import running
from jupyter_pai.answering import AnsweringHandler, invalid, member
from jupyter_pai.errors import ClientError
from pai_backend.model.text import Text

CONTENTS = "contents"
"""Jupyter's own resource for files."""


class ServerFilesHandler(AnsweringHandler):
    """Reads and writes files of the server, as its contents manager lets it."""

    @property
    def files(self) -> Any:
        """The server's contents manager, whose methods have no types; some are coroutines and some are not."""
        return self.contents_manager

    async def require(self, action: str) -> None:
        """Raises 403 for a user who may not do this with files here."""
        allowed = self.authorizer.is_authorized(self, self.current_user, action, CONTENTS)
        if not await ensure_async(allowed):
            raise HTTPError(403, f"{action} of {CONTENTS} is not allowed")

    async def content(self, path: str, kind: str) -> Any:
        """What is in a file, by Jupyter's types of these: a notebook, or the text of a file. Raises ClientError."""
        text = "text" if kind == "file" else None
        try:
            model = await ensure_async(self.files.get(path, content=True, type=kind, format=text))
        except HTTPError as error:
            raise ClientError(
                Text("{path} cannot be read: {reason}", path=path, reason=error.log_message or error.reason),
                code="NoFileError",
                hint=Text("Save the file, and run it again."),
                status=error.status_code,
            ) from error
        return model["content"]

    def on_disk(self, path: str) -> Path:
        """Where a file or folder lies on the server's disk. Raises ClientError where it lies on another storage."""
        if not isinstance(self.files, FileContentsManager):
            raise invalid(Text("The folder is not on this server's disk."), Text("Run the file without its folder."))
        return Path(to_os_path(ApiPath(path), self.files.root_dir))

    async def folder(self, path: str) -> Path:
        """A folder that is to go along with a job. Raises ClientError for one that is not there or is too much.

        A home directory holds keys and tokens of other programs; what is sent by one press is never that.
        """
        folder = self.on_disk(path)
        is_hidden = not self.files.allow_hidden and await ensure_async(self.files.is_hidden(path))
        if is_hidden or not await ensure_async(self.files.dir_exists(path)):
            raise invalid(Text("There is no folder {path}.", path=path or "/"), Text("Choose another folder."))
        if Path.home().resolve().is_relative_to(folder.resolve()):
            raise invalid(
                Text("{path} is your home directory, which is not sent with a job.", path=folder),
                Text("Put the files of the job into a folder of their own."),
            )
        return folder


def parent(path: str) -> str:
    """The folder of a file of the server; empty for the server's root."""
    folder = str(PurePosixPath(path.strip("/")).parent)
    return "" if folder == "." else folder


def needs_of(asked: dict[str, Any]) -> running.Needs:
    """What a job is to get, of a request. Raises ClientError."""
    gpus = member(asked, "gpus", int, 0)
    if gpus < 0:
        raise invalid(Text("{name} is less than 0.", name="gpus"), Text("Give a number from 0."))
    return running.Needs(
        gpus,
        member(asked, "gpuType", str, ""),
        image=member(asked, "image", str, ""),
        virtual_cluster=member(asked, "virtualCluster", str, ""),
    )
