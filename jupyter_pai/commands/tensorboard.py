"""``tensorboard``: TensorBoard in a task, at a local port."""

from __future__ import annotations

import argparse
import contextlib
import secrets
import shlex
import shutil
import subprocess

from jupyter_pai import access
from jupyter_pai.commands.arguments import INDEX, JOB, ROLE
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import connected
from jupyter_pai.commands.ssh import SSH_DIR, by_certificate, ssh_root
from jupyter_pai.connect.ssh_config import path_word
from jupyter_pai.errors import OK, ClientError
from jupyter_pai.verbs import argument, flag, verb
from jupyter_pai.wire import FINAL_STATES

DEFAULT_PORT = 6006
LOOPBACK = "127.0.0.1"
FIRST_PORT, PORTS = 10000, 5000
"""Where the port in the task is taken from: below those leased to tasks, and those of outgoing connections."""
NOT_FOUND = (126, 127)
"""What a shell ends with when it cannot run a program. Source: POSIX, Shell Command Language 2.8.2."""


@verb(
    "tensorboard",
    SSH_DIR,
    JOB,
    ROLE,
    INDEX,
    argument("--logdir", help="the directory in the task; default: $PAI_OUTPUT_DIR, or where a login begins"),
    argument("--port", type=int, default=DEFAULT_PORT, help="the port here; default: 6006"),
    argument("--program", default="tensorboard", help="the program in the task; default: tensorboard of its PATH"),
    flag("--no-certificate", help="register your key instead of getting certificates (also PAI_SSH_CERTIFICATE=no)"),
)
def tensorboard(args: argparse.Namespace, out: Output) -> int:
    """Run TensorBoard in a task and lead a local port to it, until Ctrl-C.

    ``--json``, and a notebook, show OpenSSH's command instead of running it.
    """
    from jupyter_pai import certificates

    if not 0 < args.port < 65536:
        raise ClientError(f"{args.port} is not a port.", code="InvalidParametersError", hint="Ports are 1 to 65535.")
    with connected() as client:
        job = client.job(args.job)
        if job["state"] in FINAL_STATES:
            place = f"$PAI_DEFAULT_FS_URI/Output/{job['username']}/{job['uid']}"
            raise ClientError(
                f"Job {job['name']} has ended ({job['state']}), so nothing runs in it.",
                code="InvalidParametersError",
                hint=f"Copy its output with `pai cp '{place}' DIR` and run `tensorboard --logdir DIR` here.",
            )
        reached = access.reach(client, job["uid"], ssh_root(args), role=args.role, index=args.index)
        wanted = access.certificate(client, reached) if by_certificate(args) else None
        proof = [] if wanted is None else ["-o", f"CertificateFile={path_word(wanted.path)}"]
        there = FIRST_PORT + secrets.randbelow(PORTS)
        forward = ["-T", "-o", "ExitOnForwardFailure=yes", "-L", f"{LOOPBACK}:{args.port}:{LOOPBACK}:{there}"]
        script = _script(args.program, args.logdir, there)
        command = [*reached.command[:-1], *forward, *proof, reached.command[-1], script]
        url = f"http://{LOOPBACK}:{args.port}/"
        out.result({"url": url, "command": command}, f"TensorBoard: {url} (Ctrl-C ends it)")
        if out.as_json or out.in_cell:
            return OK
        if shutil.which("ssh") is None:
            raise ClientError("There is no ssh program on this machine.", hint="Install OpenSSH's client.")
        with contextlib.nullcontext() if wanted is None else certificates.renewed(client, wanted):
            code = _run(command)
    if code in NOT_FOUND:
        raise ClientError(
            f"The task has no program {args.program}.",
            code="InvalidParametersError",
            hint="Run `pip install tensorboard` in the task, choose an image that has it, or name it by --program.",
        )
    return code


def _script(program: str, logdir: str | None, port: int) -> str:
    """Runs the program until it ends or the session's input does: a session that breaks off must leave nothing."""
    directory = '"${PAI_OUTPUT_DIR:-.}"' if logdir is None else shlex.quote(logdir)
    run = f"{shlex.quote(program)} --logdir {directory} --host {LOOPBACK} --port {port}"
    watch = "(cat <&3 >/dev/null; kill $t) >/dev/null 2>&1 & w=$!"
    return f"exec 3<&0; {run} & t=$!; {watch}; wait $t; s=$?; kill $w; exit $s"


def _run(command: list[str]) -> int:
    """The exit status; 0 when the user ends it. The session's input stays open meanwhile."""
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            assert process.stdin is not None
            process.stdin.close()
            process.terminate()
            return OK
