"""``debug``: a local port that leads to debugpy in a task, and what debuggers must be told."""

from __future__ import annotations

import argparse
import os
from pathlib import Path, PurePosixPath

from jupyter_pai import access
from jupyter_pai.commands.arguments import INDEX, JOB, ROLE
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import connected
from jupyter_pai.commands.ssh import NO_CERTIFICATE, SSH_DIR, by_certificate, ssh_root
from jupyter_pai.connect import debugging
from jupyter_pai.connect.files import FileChange, read
from jupyter_pai.errors import OK, ClientError
from jupyter_pai.language import tr
from jupyter_pai.task_ports import forwarded, lead, require_port
from jupyter_pai.verbs import argument, flag, verb
from pai_backend.model.text import Text


@verb(
    "debug",
    SSH_DIR,
    JOB,
    ROLE,
    INDEX,
    argument("--port", type=int, help="where debugpy listens in the task; default: where the job has it, else 5678"),
    argument("--local-port", type=int, help="the port here; default: the same, else 5678"),
    argument("--local-root", type=Path, default=Path(), help="the folder of the program here; default: this one"),
    argument("--remote-root", type=PurePosixPath, help="the same folder in the task; default: where a login begins"),
    flag("--write", help="write .vscode/launch.json below --local-root; an existing one is left alone"),
    NO_CERTIFICATE,
)
def debug(args: argparse.Namespace, out: Output) -> int:
    """Lead a local port to debugpy in a task, for VS Code, PyCharm and Visual Studio.

    A job whose document has ``extras.jupyterPai.debug`` runs its Python programs under debugpy. The task of another job
    runs ``python -m debugpy --listen 127.0.0.1:5678 --wait-for-client PROGRAM``. The port leads there until Ctrl-C.
    ``--json``, and a notebook, show OpenSSH's command instead of running it.
    """
    for port in (args.port, args.local_port):
        require_port(port)
    with connected() as client:
        reached = access.reach(client, args.job, ssh_root(args), role=args.role, index=args.index)
        told = access.guide_to(reached)
        remote = args.remote_root or PurePosixPath(told["directory"])
        there = args.port or (None if told["debugger"] else debugging.DEFAULT_PORT)
        local_port = args.local_port or there or debugging.DEFAULT_PORT
        local_root = args.local_root.expanduser().absolute()
        way = debugging.DebugWay(reached.login.alias, local_port, there, local_root, remote)
        with access.proven(client, reached, certify=by_certificate(args)) as login:
            command = forwarded(login, local_port, there or debugging.DEBUG_SOCKET)
            changed = _written(way) if args.write else []
            value = {"launch": debugging.attach(way), "command": command, "changed": changed}
            out.result(value, "\n".join([debugging.steps(way), *(tr("wrote {path}", path=path) for path in changed)]))
            if out.as_json or out.in_cell:
                return OK
            access.require_openssh()
            return lead(command)


def _written(way: debugging.DebugWay) -> list[str]:
    """Write the configuration where there is none. Raises ClientError."""
    path = Path(way.local_root) / ".vscode" / "launch.json"
    if os.path.lexists(path):
        raise ClientError(
            Text("{path} exists and is left as it is.", path=path),
            code="InvalidParametersError",
            hint="Copy the configuration that `pai debug` prints into it.",
        )
    FileChange(path, read(path), debugging.launch_json(way)).apply()
    return [str(path)]
