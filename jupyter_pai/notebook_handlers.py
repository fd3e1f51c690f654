"""``…/pai/notebooks/…`` of the Jupyter server: run one of its notebooks as a job, and follow and fetch that run.

Notebooks are read and written by the server's contents manager, so that they may be on any storage that it knows.
"""

from __future__ import annotations

from jupyter_core.utils import ensure_async
from tornado.web import HTTPError
from typing_extensions import TypedDict

from jupyter_pai import running
from jupyter_pai.answering import invalid, member
from jupyter_pai.errors import ClientError, NotFound
from jupyter_pai.guard import authenticated, authorized
from jupyter_pai.handlers import JOBS
from jupyter_pai.notebooks import packing
from jupyter_pai.notebooks.results import NotebookStep, Outputs
from jupyter_pai.server_files import ServerFilesHandler, needs_of, parent
from jupyter_pai.wire_types import JobDetail
from pai_backend.model.text import Text

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


class NotebooksHandler(ServerFilesHandler):
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
        notebook = packing.checked(await self.content(path, "notebook"), path)
        files = packing.files(packing.with_parameters(notebook, parameters), "notebook.ipynb", html="notebook.html")
        command = running.Command(
            packing.COMMAND,
            needs_of(asked),
            member(asked, "name", str, "") or running.job_name([path]),
            await self.folder(parent(path)) if member(asked, "withFolder", bool, False) else None,
            files,
            path,
        )
        return await running.start(await self.link.client(), command, self.log.info)


def _value(name: str, text: object) -> object:
    try:
        return packing.parameter(f"{name}={text}")[1]
    except ValueError:
        raise invalid(Text("'{name}' is not the name of a variable.", name=name)) from None


class NotebookRunHandler(ServerFilesHandler):
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
                Text("The job has not written the notebook yet."),
                code="NoFileError",
                hint=Text("Wait until it runs."),
                status=404,
            ) from error
        notebook.setdefault("metadata", {})[OF_JOB] = {"job": job["uid"]}
        path = await self._place(job)
        model = {"type": "notebook", "format": "json", "content": notebook}
        try:
            await ensure_async(self.files.save(model, path))
        except HTTPError as error:
            raise ClientError(
                Text("{path} cannot be written: {reason}", path=path, reason=error.log_message or error.reason),
                code="ConflictFileError",
                hint=Text("Make the folder writable."),
                status=error.status_code,
            ) from error
        result = await outputs.result()
        steps = result.get("steps", []) if result else []
        failed = next((step["place"] for step in steps if step["state"] in ("failed", "running")), None)
        return {"path": path, "failed": failed}

    async def _place(self, job: JobDetail) -> str:
        """A path beside the notebook, where it is one of this server's: free, or of an earlier fetch of the job."""
        folder = parent(job["notebook"])
        if not await ensure_async(self.files.dir_exists(folder)):
            folder = ""
        for number in range(100):
            path = f"{folder}/{job['name']}{f'-{number}' if number else ''}.ipynb".lstrip("/")
            if not await ensure_async(self.files.file_exists(path)):
                return path
            try:
                there = await self.content(path, "notebook")
            except ClientError:  # it is no notebook
                continue
            if (there.get("metadata", {}).get(OF_JOB) or {}).get("job") == job["uid"]:
                return path
        raise invalid(
            Text("There are 100 files named like {name}.ipynb.", name=job["name"]), Text("Rename or remove them.")
        )
