"""``code``: VS Code in the browser, from a server in a task."""

from __future__ import annotations

import argparse

from jupyter_pai import access, vscode_server
from jupyter_pai.addresses import address_of
from jupyter_pai.commands.arguments import INDEX, JOB, ROLE
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import connected
from jupyter_pai.commands.ssh import NO_CERTIFICATE, SSH_DIR, ssh_root
from jupyter_pai.commands.task_program import TaskProgram, address, run_in_task
from jupyter_pai.errors import OK
from jupyter_pai.language import tr
from jupyter_pai.task_ports import require_port
from jupyter_pai.verbs import argument, flag, verb

DEFAULT_PORT = 8080


@verb(
    "code",
    SSH_DIR,
    JOB,
    ROLE,
    INDEX,
    argument("--directory", help="the folder in the task; default: where a login begins"),
    argument("--port", type=int, default=DEFAULT_PORT, help="the port here; default: 8080"),
    argument("--program", help="the program in the task; default: code-server or openvscode-server of its PATH"),
    flag("--web", help="at an address of the job's, with code-server, until the task ends"),
    NO_CERTIFICATE,
)
def code(args: argparse.Namespace, out: Output) -> int:
    """Run VS Code in a task, for a browser at a local port, until Ctrl-C.

    It prints the password, or the address with it, that this server takes. ``--json``, and a notebook, show OpenSSH's
    command instead of running it. With ``--web`` the browser comes by the service proxy, as ``pai open`` does. An
    editor on this machine needs no server in the task: see ``pai connect``.
    """
    require_port(args.port)
    with connected() as client:
        if args.web:
            reached = access.reach(client, args.job, ssh_root(args), role=args.role, index=args.index)
            found = vscode_server.kept_in(reached, args.program, args.directory)
            ticket = client.ticket(args.job, found["label"], role=args.role, index=args.index)
            url = address_of(ticket, client.api.endpoint)
            out.result(
                {**found, "url": url}, tr("VS Code: {url}\nPassword: {password}", url=url, password=found["password"])
            )
            return OK

        def script(there: int) -> str:
            return vscode_server.held_script(args.program, args.directory, address(args), there)

        program = TaskProgram("VS Code", script, vscode_server.lacking(args.program, args.job))
        return run_in_task(client, args.job, program, args, out)
