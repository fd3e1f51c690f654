"""``run``: a command as a job, without a document."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import connected
from jupyter_pai.commands.waiting import INTERRUPTED, ended
from jupyter_pai.errors import JOB_FAILED, OK, ClientError
from jupyter_pai.language import tr
from jupyter_pai.verbs import argument, flag, verb

if TYPE_CHECKING:
    from jupyter_pai.running import Needs
    from jupyter_pai.wire_types import JobDetail

_MEMORY = re.compile(r"(\d{1,9})(M|G|T)?B?", re.IGNORECASE)


def memory_mb(text: str) -> int:
    """MiB of ``16G`` or ``16384``. Raises ArgumentTypeError."""
    found = _MEMORY.fullmatch(text)
    if found is None or not int(found[1]):
        raise argparse.ArgumentTypeError(
            tr("{text} is not a size: write 16G, 512M or a number of MiB", text=f"{text!r}")
        )
    return int(found[1]) * {"M": 1, "G": 1024, "T": 1024 * 1024}[(found[2] or "M").upper()]


def variable(text: str) -> tuple[str, str]:
    """``NAME=VALUE``. Raises ArgumentTypeError."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(tr("{text} is not NAME=VALUE", text=f"{text!r}"))
    return name, value


def count(text: str) -> int:
    """A whole number from 0. Raises ArgumentTypeError."""
    if not text.isdecimal() or not text.isascii():
        raise argparse.ArgumentTypeError(tr("{text} is not a number from 0", text=f"{text!r}"))
    return int(text)


NEEDS = (
    argument("--gpu", type=count, default=0, metavar="N", help="GPUs; default: 0"),
    argument("--gpu-type", help="which GPUs; default: any"),
    argument("--cpu", type=count, metavar="N", help="CPUs; default: 2 for each GPU, or 1"),
    argument("--memory", type=memory_mb, metavar="SIZE", help="such as 16G; default: 8G for each GPU, or 2G"),
    argument("--image", help="image of a cluster with containers; default: PAI_IMAGE, else python:3.12"),
    argument("--vc", help="virtual cluster; default: default"),
    argument("--env", type=variable, action="append", default=[], metavar="NAME=VALUE", help="a variable; repeatable"),
    argument("--code", type=Path, metavar="DIR", help="send this directory along, and start in it"),
    argument("--name", help="name of the job; default: after the program"),
)


def needs(args: argparse.Namespace) -> Needs:
    """What these arguments ask for."""
    from jupyter_pai.running import Needs

    return Needs(args.gpu, args.gpu_type or "", args.cpu, args.memory, args.image or "", args.vc or "", dict(args.env))


@verb(
    "run",
    *NEEDS,
    flag("--detach", help="submit it, and do not wait"),
    flag("--print", dest="only_print", help="print the document that it makes, and submit nothing"),
    argument("command", nargs="*", literal=True, help="after --: the command; a single word is a command line"),
)
def run(args: argparse.Namespace, out: Output) -> int:
    """Run a command as a job, and show what it writes.

    No document is needed: one is made, which `pai config` prints. The exit code is the command's. Ctrl-C leaves the job
    running. `--code` sends what git and `.paiignore` do not ignore, and only what the backend does not have yet; the
    job keeps it, so that it runs the same again. With `--print` the code is sent, too.
    """
    from jupyter_pai import running

    if not args.command:
        raise ClientError(
            "There is no command.", code="InvalidParametersError", hint="Write it after --: pai run -- python train.py"
        )
    command = running.Command(
        running.command_text(args.command), needs(args), args.name or running.job_name(args.command), args.code
    )
    with connected() as client:
        if args.only_print:
            out.content(client.thread.run(running.prepared(client.api, command, out.progress)) + b"\n")
            return OK
        job = client.thread.run(running.start(client.api, command, out.progress))
        if args.detach:
            out.job(client, job)
            return OK
        out.awaited(client, job)
        out.progress(tr("Job {name} is submitted. `pai config {name}` prints its document.", name=job["name"]))
        return exit_code(ended(client, job["uid"], out, show_log=True))


def exit_code(final: JobDetail | None) -> int:
    """The command's exit code, where a shell can tell it; None: the waiting was interrupted."""
    if final is None:
        return INTERRUPTED
    if final["state"] == "SUCCEEDED":
        return OK
    status = final["exit"]["status"] if final["exit"] else JOB_FAILED
    return status if 0 < status < 256 else JOB_FAILED
