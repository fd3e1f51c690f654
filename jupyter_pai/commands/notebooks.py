"""``run-notebook``: a notebook as a job."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_pai.commands.output import Output
from jupyter_pai.commands.running import NEEDS, exit_code, needs
from jupyter_pai.commands.session import connected
from jupyter_pai.commands.waiting import ended
from jupyter_pai.errors import OK, ClientError, NotFound
from jupyter_pai.language import tr
from jupyter_pai.verbs import argument, flag, verb

if TYPE_CHECKING:
    from jupyter_pai.sync import Client
    from jupyter_pai.wire_types import JobDetail


def parameter(text: str) -> tuple[str, object]:
    """``NAME=VALUE``. Raises ArgumentTypeError."""
    from jupyter_pai.notebooks import packing

    try:
        return packing.parameter(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


@verb(
    "run-notebook",
    argument("notebook", nargs="?", type=Path, help="the notebook; in JupyterLab left out for the open one"),
    argument(
        "-p",
        "--parameter",
        type=parameter,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set a variable behind the cell that is tagged parameters; repeatable",
    ),
    argument("-o", "--output", type=Path, metavar="OUT", help="where it is fetched to; default: NAME.out.ipynb"),
    *NEEDS,
    flag("--detach", help="submit it, and do not wait"),
)
def run_notebook(args: argparse.Namespace, out: Output) -> int:
    """Run a notebook as a job, and fetch it with its outputs.

    Its cells run in order until one fails, which is named. The notebook and its HTML stay with the job, in its output
    directory, and are fetched. IPython runs the cells where the image has it, else plain Python; nothing else is needed
    there. Run it again with `--detach` for many notebooks, and fetch them with `pai fs cp`.
    """
    from jupyter_pai import running
    from jupyter_pai.notebooks import packing

    path = (args.notebook or _open_notebook()).expanduser()
    notebook = packing.with_parameters(packing.read_notebook(path), dict(args.parameter))
    files = packing.files(notebook, "notebook.ipynb", html="notebook.html")
    name = args.name or running.job_name([path.name])
    command = running.Command(packing.COMMAND, needs(args), name, args.code, files, path.name)
    with connected() as client:
        job = client.thread.run(running.start(client.api, command, out.progress))
        if args.detach:
            out.job(client, job)
            return OK
        out.awaited(client, job)
        try:
            final = ended(client, job["uid"], out, show_log=True)
        finally:
            _fetch(client, job, args.output or path.with_suffix(".out.ipynb"), out)
        return exit_code(final)


def _open_notebook() -> Path:
    """The notebook of this kernel, which Jupyter tells it. Raises ClientError."""
    name = os.environ.get("JPY_SESSION_NAME", "")
    if not name.endswith(".ipynb"):
        raise ClientError(
            "No notebook is named.", code="InvalidParametersError", hint="Write its file: pai run-notebook nb.ipynb"
        )
    return Path(name)


def _fetch(client: Client, job: JobDetail, target: Path, out: Output) -> None:
    """Fetch the notebook and its HTML, also of a job that failed or goes on."""
    from jupyter_pai.notebooks import results

    outputs = results.Outputs(client.api, job)
    page = target.with_suffix(".html")
    try:
        client.thread.run(outputs.copy("notebook.ipynb", target))
    except NotFound:
        return  # it did not begin
    try:
        client.thread.run(outputs.copy("notebook.html", page))
    except NotFound:  # the image cannot make it, or a cell failed
        results.write_html(target, page)
    result = client.thread.run(outputs.result())
    if result is not None and (failed := result["failed"]):
        out.progress(
            tr("Cell {cell} of {cells}: {error}", cell=failed["cell"], cells=result["cells"], error=failed["error"])
        )
    out.progress(tr("Wrote {target} and {page}.", target=target, page=page))
