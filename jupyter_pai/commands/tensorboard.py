"""``tensorboard``: TensorBoard in a task, at a local port."""

from __future__ import annotations

import argparse
import shlex

from jupyter_pai.commands.arguments import INDEX, JOB, ROLE
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import connected
from jupyter_pai.commands.ssh import NO_CERTIFICATE, SSH_DIR
from jupyter_pai.commands.task_program import TaskProgram, run_in_task
from jupyter_pai.errors import ClientError
from jupyter_pai.task_ports import HOST, held, quoted, require_port
from jupyter_pai.verbs import argument, verb
from jupyter_pai.wire import FINAL_STATES
from pai_backend.model.text import Text

DEFAULT_PORT = 6006


@verb(
    "tensorboard",
    SSH_DIR,
    JOB,
    ROLE,
    INDEX,
    argument("--logdir", help="the directory in the task; default: $PAI_OUTPUT_DIR, or where a login begins"),
    argument("--port", type=int, default=DEFAULT_PORT, help="the port here; default: 6006"),
    argument("--program", default="tensorboard", help="the program in the task; default: tensorboard of its PATH"),
    NO_CERTIFICATE,
)
def tensorboard(args: argparse.Namespace, out: Output) -> int:
    """Run TensorBoard in a task and lead a local port to it, until Ctrl-C.

    ``--json``, and a notebook, show OpenSSH's command instead of running it.
    """
    require_port(args.port)
    lacking = ClientError(
        Text("The task has no program {program}.", program=args.program),
        code="InvalidParametersError",
        hint="Run `pip install tensorboard` in the task, choose an image that has it, or name it by --program.",
    )
    with connected() as client:
        job = client.job(args.job)
        if job["state"] in FINAL_STATES:
            place = f"$PAI_DEFAULT_FS_URI/Output/{job['username']}/{job['uid']}"
            raise ClientError(
                Text(
                    "Job {name} has ended ({state}), so nothing runs in it.", name=job["name"], state=Text(job["state"])
                ),
                code="InvalidParametersError",
                hint=Text(
                    "Copy its output with `pai cp '{place}' DIR` and run `tensorboard --logdir DIR` here.", place=place
                ),
            )
        program = TaskProgram("TensorBoard", lambda there: _script(args.program, args.logdir, there), lacking)
        return run_in_task(client, job["uid"], program, args, out)


def _script(program: str, logdir: str | None, port: int) -> str:
    directory = quoted(logdir, '"${PAI_OUTPUT_DIR:-.}"')
    return held(f"{shlex.quote(program)} --logdir {directory} --host {HOST} --port {port}")
