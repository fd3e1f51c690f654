"""``mcp``: jobs for assistants of language models, by the Model Context Protocol."""

from __future__ import annotations

import argparse
import importlib.util
from functools import partial

from jupyter_pai.commands.output import Output
from jupyter_pai.errors import OK, ClientError
from jupyter_pai.language import tr
from jupyter_pai.verbs import argument, flag, verb

LOOPBACK = "127.0.0.1"


def http_place(text: str) -> tuple[str, int]:
    """``[HOST:]PORT``, where port 0 is any that is free. Raises ArgumentTypeError."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65_535:
        raise argparse.ArgumentTypeError(tr("{text} is not a port, nor HOST:PORT", text=f"{text!r}"))
    return host.strip("[]") or LOOPBACK, int(port)


@verb(
    "mcp",
    argument("--http", type=http_place, metavar="[HOST:]PORT", help="serve HTTP there; default: stdin and stdout"),
    flag("--read-only", help="offer nothing that submits or stops a job"),
    shell_only=True,
)
def mcp(args: argparse.Namespace, out: Output) -> int:
    """Let an assistant of a language model look at, plan, submit and stop your jobs.

    The assistant's program starts it and speaks the Model Context Protocol with it. Before it submits or stops a job,
    you are asked. The audit has the assistant's name with what it did. Over HTTP each request needs a token of the
    backend, and acts for its user: `pai token add --scope read` makes one that only looks.
    """
    if importlib.util.find_spec("mcp") is None:
        raise ClientError(
            "The package mcp is not installed.",
            code="InvalidParametersError",
            hint="Install it: pip install 'jupyter-pai[mcp]'",
        )
    from jupyter_pai.assistants.serving import make_server, serve_http
    from jupyter_pai.endpoint import resolve

    endpoint = partial(resolve, start=True)
    endpoint()  # what is wrong with it is told now, not to the assistant
    server = make_server(endpoint, read_only=args.read_only, by_token=args.http is not None)
    if args.http is None:
        server.run("stdio")
    else:
        host, port = args.http

        def began(url: str) -> None:
            out.progress(tr("Assistants reach it at {url}, each with a token of the backend.", url=url))

        serve_http(server, host, port, began)
    return OK
