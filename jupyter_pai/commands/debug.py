"""``debug``: a local port that leads to debugpy in a task, and what debuggers must be told."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
from pathlib import Path, PurePosixPath

from jupyter_pai import access
from jupyter_pai.commands.arguments import INDEX, JOB, ROLE
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import connected
from jupyter_pai.commands.ssh import SSH_DIR, by_certificate, ssh_root
from jupyter_pai.connect import debugging
from jupyter_pai.connect.files import FileChange, read
from jupyter_pai.connect.ssh_config import path_word
from jupyter_pai.errors import OK, ClientError
from jupyter_pai.verbs import argument, flag, verb


@verb(
    "debug",
    SSH_DIR,
    JOB,
    ROLE,
    INDEX,
    argument("--port", type=int, default=debugging.DEFAULT_PORT, help="where debugpy listens in the task"),
    argument("--local-port", type=int, help="the port here; default: the same"),
    argument("--local-root", type=Path, default=Path(), help="the folder of the program here; default: this one"),
    argument("--remote-root", type=PurePosixPath, help="the same folder in the task; default: where a login begins"),
    flag("--write", help="write .vscode/launch.json below --local-root; an existing one is left alone"),
    flag("--no-certificate", help="register your key instead of getting certificates (also PAI_SSH_CERTIFICATE=no)"),
)
def debug(args: argparse.Namespace, out: Output) -> int:
    """Lead a local port to debugpy in a task, for VS Code, PyCharm and Visual Studio.

    The task runs ``python -m debugpy --listen 127.0.0.1:5678 --wait-for-client PROGRAM``. The port leads there until
    Ctrl-C. ``--json``, and a notebook, show OpenSSH's command instead of running it.
    """
    root, certify = ssh_root(args), by_certificate(args)
    for port in (args.port, args.local_port):
        if port is not None and not 0 < port < 65536:
            raise ClientError(f"{port} is not a port.", code="InvalidParametersError", hint="Ports are 1 to 65535.")
    with connected() as client:
        reached = access.reach(client, args.job, root, role=args.role, index=args.index)
        wanted = access.certificate(client, reached) if certify else None
        remote = args.remote_root or PurePosixPath(access.guide_to(reached)["directory"])
        local_port = args.local_port or args.port
        local_root = args.local_root.expanduser().absolute()
        way = debugging.DebugWay(reached.login.alias, local_port, args.port, local_root, remote)
        proof = [] if wanted is None else ["-o", f"CertificateFile={path_word(wanted.path)}"]
        forward = f"{debugging.HOST}:{local_port}:{debugging.HOST}:{args.port}"
        options = ["-N", "-o", "ExitOnForwardFailure=yes", "-L", forward, *proof]
        command = [*reached.command[:-1], *options, reached.command[-1]]
        changed = _written(way) if args.write else []
        value = {"launch": debugging.attach(way), "command": command, "changed": changed}
        out.result(value, "\n".join([debugging.steps(way), *(f"wrote {path}" for path in changed)]))
        if out.as_json or out.in_cell:
            return OK
        if shutil.which("ssh") is None:
            raise ClientError(
                "There is no ssh program on this machine.",
                code="InvalidParametersError",
                hint="Install OpenSSH's client (package openssh-client).",
            )
        from jupyter_pai import certificates

        with contextlib.nullcontext() if wanted is None else certificates.renewed(client, wanted):
            process = subprocess.Popen(command)
            try:
                return process.wait()
            except KeyboardInterrupt:
                process.terminate()
                process.wait()
                return OK


def _written(way: debugging.DebugWay) -> list[str]:
    """Write the configuration where there is none. Raises ClientError."""
    path = Path(way.local_root) / ".vscode" / "launch.json"
    if os.path.lexists(path):
        raise ClientError(
            f"{path} exists and is left as it is.",
            code="InvalidParametersError",
            hint="Copy the configuration that `pai debug` prints into it.",
        )
    FileChange(path, read(path), debugging.launch_json(way)).apply()
    return [str(path)]
