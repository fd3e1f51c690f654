"""``…/pai/notebooks/…`` of the Jupyter server: run one of its notebooks as a job, and follow and fetch that run.

Notebooks are read and written by the server's contents manager, so that they may be on any storage that it knows.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

from jupyter_core.utils import ensure_async
from jupyter_server.services.contents.filemanager import FileContentsManager
from jupyter_server.utils import ApiPath, to_os_path
from tornado.web import HTTPError
from typing_extensions import TypedDict

from jupyter_pai import running
from jupyter_pai.answering import AnsweringHandler, invalid, member
from jupyter_pai.errors import ClientError, NotFound
from jupyter_pai.guard import authenticated, authorized
from jupyter_pai.handlers import JOBS
from jupyter_pai.notebooks import packing
from jupyter_pai.notebooks.results import NotebookStep, Outputs
from jupyter_pai.wire_types import JobDetail

CONTENTS = "contents"
"""Jupyter's own resource for files."""
OF_JOB = "jupyter_pai"
"""Member of the metadata of a notebook that was fetched: the job's uid, so that it alone is overwritten."""


class NotebookRun(TypedDict):
    """How far a job is with its notebook. ``steps`` is empty before it began, ``error`` that of the failed cell."""

    steps: list[NotebookStep]
    error: str


class FetchedNotebook(TypedDict):
    """Where the notebook with its outputs is now, and the place of its failed cell among all cells; or null."""

    path: str
    failed: int | None


class _ContentsHandler(AnsweringHandler):
    """Reads and writes notebooks of the server."""

    @property
    def files(self) -> Any:
        """The server's contents manager, whose methods have no types; some are coroutines and some are not."""
        return self.contents_manager

    async def require(self, action: str) -> None:
        """Raises 403 for a user who may not do this with files here."""
        allowed = self.authorizer.is_authorized(self, self.current_user, action, CONTENTS)
        if not await ensure_async(allowed):
            raise HTTPError(403, f"{action} of {CONTENTS} is not allowed")

    async def read(self, path: str) -> Any:
        """What is in a notebook. Raises ClientError."""
        try:
            model = await ensure_async(self.files.get(path, content=True, type="notebook"))
        except HTTPError as error:
            raise ClientError(
                f"{path} cannot be read: {error.log_message or error.reason}",
                code="NoFileError",
                hint="Save the notebook, and run it again.",
                status=error.status_code,
            ) from error
        return model["content"]

    def folder_of(self, path: str) -> Path:
        """The directory on the server's disk that holds a notebook. Raises ClientError where there is none."""
        if not isinstance(self.files, FileContentsManager):
            raise invalid("The folder is not on this server's disk.", "Run the notebook without its folder.")
        return Path(to_os_path(ApiPath(path), self.files.root_dir)).parent


class NotebooksHandler(_ContentsHandler):
    """Runs notebooks."""

    @authenticated
    @authorized("write", JOBS)
    async def post(self) -> None:
        """Submit the notebook that the body names, with what it asks for."""
        await self.require("read")
        await self.answer(self._start())

    async def _start(self) -> JobDetail:
        asked = self.asked()
        path = member(asked, "path", str, "")
        parameters = {name: _value(name, text) for name, text in member(asked, "parameters", dict, {}).items()}
        notebook = packing.checked(await self.read(path), path)
        files = packing.files(packing.with_parameters(notebook, parameters), "notebook.ipynb", html="notebook.html")
        command = running.Command(
            packing.COMMAND,
            _needs(asked),
            member(asked, "name", str, "") or running.job_name([path]),
            self.folder_of(path) if member(asked, "withFolder", bool, False) else None,
            files,
            path,
        )
        return await running.start(await self.link.client(), command, self.log.info)


def _value(name: str, text: object) -> object:
    try:
        return packing.parameter(f"{name}={text}")[1]
    except ValueError:
        raise invalid(f"{name!r} is not the name of a variable.") from None


def _needs(asked: dict[str, Any]) -> running.Needs:
    """What the job gets. Raises ClientError."""
    gpus = member(asked, "gpus", int, 0)
    if gpus < 0:
        raise invalid("gpus is less than 0.", "Give a number from 0.")
    return running.Needs(
        gpus,
        member(asked, "gpuType", str, ""),
        image=member(asked, "image", str, ""),
        virtual_cluster=member(asked, "virtualCluster", str, ""),
    )


class NotebookRunHandler(_ContentsHandler):
    """The run of a notebook by a job."""

    @authenticated
    @authorized("read", JOBS)
    async def get(self, job: str) -> None:
        """How far it is."""
        await self.answer(self._progress(job))

    async def _progress(self, job: str) -> NotebookRun:
        client = await self.link.client()
        result = await Outputs(client, await client.job(job)).result()
        if result is None:
            return {"steps": [], "error": ""}
        failed = result["failed"]
        return {"steps": result.get("steps", []), "error": failed["error"] if failed else ""}

    @authenticated
    @authorized("read", JOBS)
    async def post(self, job: str) -> None:
        """Put the notebook with its outputs beside the one that was submitted."""
        await self.require("write")
        await self.answer(self._fetch(job))

    async def _fetch(self, name: str) -> FetchedNotebook:
        client = await self.link.client()
        job = await client.job(name)
        outputs = Outputs(client, job)
        try:
            notebook = await outputs.notebook("notebook.ipynb")
        except NotFound as error:
            raise ClientError(
                "The job has not written the notebook yet.", code="NoFileError", hint="Wait until it runs.", status=404
            ) from error
        notebook.setdefault("metadata", {})[OF_JOB] = {"job": job["uid"]}
        path = await self._place(job)
        model = {"type": "notebook", "format": "json", "content": notebook}
        try:
            await ensure_async(self.files.save(model, path))
        except HTTPError as error:
            raise ClientError(
                f"{path} cannot be written: {error.log_message or error.reason}",
                code="ConflictFileError",
                hint="Make the folder writable.",
                status=error.status_code,
            ) from error
        result = await outputs.result()
        steps = result.get("steps", []) if result else []
        failed = next((step["place"] for step in steps if step["state"] in ("failed", "running")), None)
        return {"path": path, "failed": failed}

    async def _place(self, job: JobDetail) -> str:
        """A path beside the notebook, where it is one of this server's: free, or of an earlier fetch of the job."""
        folder = str(PurePosixPath(job["notebook"]).parent)
        if folder == "." or not await ensure_async(self.files.dir_exists(folder)):
            folder = ""
        for number in range(100):
            path = f"{folder}/{job['name']}{f'-{number}' if number else ''}.ipynb".lstrip("/")
            if not await ensure_async(self.files.file_exists(path)):
                return path
            try:
                there = await self.read(path)
            except ClientError:  # it is no notebook
                continue
            if (there.get("metadata", {}).get(OF_JOB) or {}).get("job") == job["uid"]:
                return path
        raise invalid(f"There are 100 files named like {job['name']}.ipynb.", "Rename or remove them.")
