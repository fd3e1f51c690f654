"""What a notebook or cell has left in its job's output directory."""

from __future__ import annotations

import json
import pickle
import tempfile
from pathlib import Path
from typing import Any, Literal, cast

from typing_extensions import TypedDict

from jupyter_pai.client import AsyncClient
from jupyter_pai.errors import ClientError, NotFound
from jupyter_pai.fs.backend_files import BackendFiles
from jupyter_pai.fs.download import download
from jupyter_pai.notebooks import execute
from jupyter_pai.streams import patiently
from jupyter_pai.wire_types import JobDetail
from pai_backend.model.text import Text


class FailedCell(TypedDict):
    """The cell that failed, counted from 1 among those with code, and its error."""

    cell: int
    error: str


class NotebookStep(TypedDict):
    """A cell with code: its place among all cells of the notebook from 0, its first line, and how it goes.

    ``began`` is in seconds since 1970 by the task's clock; ``seconds`` is how long it took.
    """

    place: int
    line: str
    state: Literal["waiting", "running", "done", "failed"]
    began: float | None
    seconds: float | None


class Result(TypedDict):
    """``result.json``: how it went, and the variables that came back with whether every Python can read them."""

    cells: int
    python: str
    failed: FailedCell | None
    fetched: dict[str, bool]
    steps: list[NotebookStep]


class Outputs:
    """Files of a job's output directory. Every call raises a ClientError when it fails, NotFound for no such file.

    A backend that is away for a moment is asked again: what a job of hours has left is not lost by that.
    """

    def __init__(self, client: AsyncClient, job: JobDetail) -> None:
        self._files = BackendFiles(client)
        self._folder = f"/Output/{job['username']}/{job['uid']}"

    async def copy(self, name: str, target: Path) -> None:
        """Copy a file to here."""
        await patiently(lambda: download(self._files, f"{self._folder}/{name}", target, lambda _: None))

    async def read(self, name: str) -> bytes:
        """A file's bytes."""
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "file"
            await self.copy(name, target)
            return target.read_bytes()

    async def result(self) -> Result | None:
        """How it went; None when it did not begin."""
        try:
            return cast(Result, json.loads(await self.read("result.json")))
        except NotFound:
            return None

    async def notebook(self, name: str) -> dict[str, Any]:
        """The notebook as it ran."""
        return cast(dict[str, Any], json.loads(await self.read(name)))

    async def variable(self, name: str, result: Result) -> object:
        """A variable that came back. It is code of the user's own job that is loaded: as trusted as the cell itself."""
        if not result["fetched"][name] and result["python"] != execute.version():
            raise ClientError(
                Text(
                    "{name} holds functions or classes of Python {python}; this is Python {execute}.",
                    name=name,
                    python=result["python"],
                    execute=execute.version(),
                ),
                code="InvalidParametersError",
                hint=Text("Use an image with Python {execute}, or fetch plain data.", execute=execute.version()),
            )
        data = await self.read(f"{name}.pickle")
        try:
            return pickle.loads(data)
        except Exception as error:
            raise ClientError(
                Text("{name} cannot be read here: {kind}: {error}", name=name, kind=type(error).__name__, error=error),
                code="InvalidParametersError",
                hint="Install here what the job has, or fetch plain data.",
            ) from error


def write_html(notebook: Path, target: Path) -> None:
    """The notebook as HTML, made here."""
    import nbformat
    from nbconvert import HTMLExporter

    text, _ = HTMLExporter().from_notebook_node(nbformat.read(notebook, as_version=4))
    target.write_text(text, encoding="utf-8")
