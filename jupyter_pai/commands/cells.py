"""``%%pai run`` and ``%pai form``: a cell as a job, and a form in one. A shell has no cells, and no such verbs."""

from __future__ import annotations

import argparse
import re
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

from jupyter_pai.commands.output import Output
from jupyter_pai.commands.running import NEEDS, needs
from jupyter_pai.commands.session import DocumentFile, connected, read_document
from jupyter_pai.commands.templates import template_names
from jupyter_pai.commands.waiting import ended
from jupyter_pai.errors import OK, ClientError, NotFound
from jupyter_pai.language import tr
from jupyter_pai.verbs import Verb, argument
from pai_backend.model.text import Text

if TYPE_CHECKING:
    from jupyter_pai.sync import Client
    from jupyter_pai.wire_types import JobDetail

_NAMES = re.compile(r"[\s,]+")
OUTPUT = "cell.ipynb"


def names(text: str) -> list[str]:
    """Names of variables with commas between. Raises ArgumentTypeError."""
    found = [name for name in _NAMES.split(text) if name]
    for name in found:
        if not name.isidentifier():
            raise argparse.ArgumentTypeError(tr("{name} is not the name of a variable", name=f"{name!r}"))
    return found


def run_cell(args: argparse.Namespace, out: Output) -> int:
    """Run the cell in a job. What it prints comes at once, what it displays at its end."""
    from jupyter_pai import running
    from jupyter_pai.notebooks import packing

    namespace: MutableMapping[str, Any] = args.namespace
    if missing := [name for name in args.send if name not in namespace]:
        raise ClientError(Text("There is no variable {missing}.", missing=missing[0]), code="InvalidParametersError")
    send = {name: namespace[name] for name in args.send}
    files = packing.files(packing.cell_notebook(args.cell), OUTPUT, quiet=True, send=send, fetch=args.fetch)
    name = args.name or running.job_name(["cell"])
    command = running.Command(packing.COMMAND, needs(args), name, args.code, files)
    with connected() as client:
        job = client.thread.run(running.start(client.api, command, out.progress))
        out.awaited(client, job)
        final = None
        try:
            final = ended(client, job["uid"], out, show_log=True)
        finally:
            fetched = _back(client, job, args.fetch)
            namespace.update(fetched)
        if final is not None and (missing := [name for name in args.fetch if name not in fetched]):
            raise ClientError(
                Text("{missing} did not come back, although the cell ran to its end.", missing=missing[0]),
                code="NoFileError",
                hint=Text("`pai fs ls` lists what the job {name} has left.", name=job["name"]),
            )
    return OK


def _back(client: Client, job: JobDetail, fetch: list[str]) -> dict[str, object]:
    """Show what the cell displayed, and return the variables that came back, as far as the cell got."""
    from IPython.display import display

    from jupyter_pai.notebooks.results import Outputs

    outputs = Outputs(client.api, job)
    try:
        notebook = client.thread.run(outputs.notebook(OUTPUT))
    except NotFound:
        return {}  # it did not begin
    for output in notebook["cells"][0]["outputs"]:
        if output["output_type"] in ("display_data", "execute_result") and set(output["data"]) != {"text/plain"}:
            display(output["data"], metadata=output["metadata"], raw=True)
    result = client.thread.run(outputs.result())
    if result is None:
        return {}
    return {name: client.thread.run(outputs.variable(name, result)) for name in fetch if name in result["fetched"]}


CELL = Verb(
    "run",
    "Run the cell in a job",
    "Variables go there with --send and come back with --fetch. They are pickled, so that functions and classes of the "
    "notebook need the same Python there. What comes back is loaded here, as trusted as the cell itself.",
    (
        *NEEDS,
        argument("--send", type=names, default=[], metavar="NAMES", help="variables that the cell finds: x,y"),
        argument("--fetch", type=names, default=[], metavar="NAMES", help="variables that come back"),
    ),
    run_cell,
    False,
)


def show_form(args: argparse.Namespace, out: Output) -> int:
    """Show the form of a document, and give it back."""
    from jupyter_pai.cell import MagicCell
    from jupyter_pai.widgets.form import form

    assert isinstance(out, MagicCell), "no shell has this verb"
    given: DocumentFile | None = None if args.file is None else read_document(args.file)
    made = form(None if given is None else given.data, template=args.template)
    made.filename = (given.filename or "") if given is not None else ""
    out.show(made)
    return OK


FORM = Verb(
    "form",
    "Show a form that builds a job, and submits it",
    "Without a document it offers templates and drafts. `form = %pai form` keeps it: form.value is what the document "
    "says, form.text the document, form.job the job that was submitted.",
    (
        argument("file", nargs="?", document=True, help="the document; default: one to choose"),
        argument("--template", metavar="NAME", help="begin with a template", completer=template_names),
    ),
    show_form,
    False,
)
