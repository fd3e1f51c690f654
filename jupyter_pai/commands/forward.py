"""``forward``: a port of this machine that leads to a service of a job."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from jupyter_pai.commands.arguments import INDEX, JOB, ROLE, service_labels
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import connected
from jupyter_pai.commands.ssh import NO_CERTIFICATE, SSH_DIR, by_certificate, ssh_root
from jupyter_pai.errors import OK, ClientError
from jupyter_pai.language import tr
from jupyter_pai.verbs import argument, verb
from pai_backend.model.text import Text

if TYPE_CHECKING:
    from jupyter_pai.sync import Client

HIGHEST_PORT = 65_535


def port_number(text: str) -> int:
    """A TCP port; 0 stands for any that is free. Raises ArgumentTypeError."""
    if not text.isascii() or not text.isdigit() or len(text) > 5 or int(text) > HIGHEST_PORT:
        raise argparse.ArgumentTypeError(
            tr(
                "{text} is not a port: 1 to {highest_port}, or 0 for a free one",
                text=f"{text[:20]!r}",
                highest_port=HIGHEST_PORT,
            )
        )
    return int(text)


@verb(
    "forward",
    SSH_DIR,
    JOB,
    argument("label", help="the service", completer=service_labels),
    argument("port", nargs="?", type=port_number, default=0, metavar="PORT", help="local port; default: a free one"),
    ROLE,
    INDEX,
    argument("--address", default="127.0.0.1", help="where to listen; default: 127.0.0.1, this machine alone"),
    NO_CERTIFICATE,
    shell_only=True,
)
def forward(args: argparse.Namespace, out: Output) -> int:
    """Forward a local port to a service of a job.

    Anything over TCP goes through the SSH gateway to the service's port. It prints the local address and runs until
    Ctrl-C. When the task is retried, moves to another node or its job is restarted, new connections wait up to a minute
    for it and then reach it there; those that were open end.
    """
    import asyncio

    with connected() as client:
        asyncio.run(_forward(client, args, out))
    return OK


async def _forward(client: Client, args: argparse.Namespace, out: Output) -> None:
    import asyncio

    from jupyter_pai.local_port import LocalPort
    from jupyter_pai.tunnel import ServiceName, TaskAway, TaskTunnel

    service = ServiceName(args.job, args.label, args.role, args.index)
    tunnel = TaskTunnel(client, service, ssh_root(args), said=out.progress, certify=by_certificate(args))
    local = LocalPort(tunnel.open, out.progress, passing=TaskAway)
    try:
        try:
            await tunnel.connect()
        except TaskAway as error:
            local.tell(tr("{message} Connections wait for it.", message=error.message))
        try:
            host, port = await local.listen(args.address, args.port)
        except OSError as error:
            raise ClientError(
                Text(
                    "Port {port} of {address} cannot be listened at: {strerror}.",
                    port=args.port,
                    address=args.address,
                    strerror=error.strerror,
                ),
                code="InvalidParametersError",
                hint="Choose another one, or leave it out for a free one.",
            ) from error
        shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        if out.as_json:
            out.json_line({"address": host, "port": port, "job": args.job, "label": args.label})
        else:
            print(
                tr("{shown} leads to {label} of {job}. Ctrl-C ends it.", shown=shown, label=args.label, job=args.job),
                flush=True,
            )
        await asyncio.Event().wait()
    finally:
        await local.aclose()
        await tunnel.aclose()
