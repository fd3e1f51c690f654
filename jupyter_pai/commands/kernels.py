"""``kernel install``: a kernel spec for programs that run notebooks without a Jupyter server."""

from __future__ import annotations

import argparse

from jupyter_pai.commands.arguments import JOB
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import asked
from jupyter_pai.errors import OK, ClientError
from jupyter_pai.language import tr
from jupyter_pai.verbs import GROUPS, argument, verb
from pai_backend.model.text import Text

GROUPS["kernel"] = "Kernels in jobs"


@verb(
    "kernel install",
    JOB,
    argument("--python", metavar="PROGRAM", default="", help="the program in the task; default: python3 of its PATH"),
)
def kernel_install(args: argparse.Namespace, out: Output) -> int:
    """Write the kernel spec ``pai:JOB``, for papermill, nbclient and the like.

    Jupyter servers with the extension list running jobs by themselves. ``jupyter kernelspec remove`` removes it.
    """
    from jupyter_pai.kernels.specs import install, is_job_name

    job = args.job.partition("--")[0]
    if not is_job_name(args.job):
        raise ClientError(
            Text("{job} is not the name of a job or task.", job=f"{args.job!r}"), code="InvalidParametersError"
        )
    asked(lambda api: api.job(job))
    file = install(args.job, args.python)
    value = {"kernelName": f"pai:{args.job.lower()}", "file": str(file)}
    out.result(
        value,
        tr("wrote {path}", path=file)
        + "\n"
        + tr("Use it as kernel {kernel}, in `papermill -k {kernel}`.", kernel=value["kernelName"]),
    )
    return OK
