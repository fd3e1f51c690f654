"""``connect`` and ``doctor``: what to tell each program, and whether it will work."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path, PurePosixPath, PureWindowsPath

from jupyter_pai import access
from jupyter_pai.commands.arguments import INDEX, JOB, ROLE, job_names
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import connected
from jupyter_pai.commands.ssh import SSH_DIR, ssh_root
from jupyter_pai.connect.files import FileChange, read
from jupyter_pai.errors import JOB_FAILED, LOCKED_OUT, OK, ClientError
from jupyter_pai.language import language
from jupyter_pai.verbs import argument, flag, verb
from pai_backend.model.text import Text

CLIENTS = ("ssh", "scp", "sftp", "rsync", "vscode", "pycharm", "jetbrains", "putty")
"""Words of ``doctor --client``; a test compares them with its rules, which the parser must not load."""


SERVER_CONFIG = Path("/etc/jupyter-pai/backend.yaml")
"""What ``python -m pai_backend setup`` writes."""


@verb(
    "connect",
    SSH_DIR,
    JOB,
    ROLE,
    INDEX,
    argument("--directory", type=PurePosixPath, help="the directory to open; default: where a login begins"),
    argument("--pycharm", type=Path, metavar="FOLDER", help="write the project files of PyCharm into a folder"),
    flag(
        "--auto-upload",
        help="--pycharm: make the task the project's default server, and upload files as they are saved",
    ),
    argument("--putty", type=Path, metavar="FILE", help="write a .reg file with a session for PuTTY"),
    argument("--xshell", type=Path, metavar="FILE", help="write a .xsh session for xshell"),
    argument("--key", metavar="PATH", help="--putty, --xshell: the key's file on that machine"),
    flag("--dry-run", help="show what would be written, write nothing"),
)
def connect(args: argparse.Namespace, out: Output) -> int:
    """Show how editors, PyCharm, PuTTY and xshell reach a task."""
    from jupyter_pai.connect.guide import guide_text

    with connected() as client:
        reached = access.reach(client, args.job, ssh_root(args), role=args.role, index=args.index)
    found = access.guide_to(reached, args.directory)
    changes = _written(args, reached, PurePosixPath(found["directory"]))
    diff = "".join(change.diff for change in changes)
    if not args.dry_run:
        for change in changes:
            change.apply()
    paths = [str(change.path) for change in changes if change.after != change.before]
    value = {**found, "changed": paths, "applied": not args.dry_run, "diff": diff}
    text = [guide_text(found), *(f"wrote {path}" for path in paths)]
    out.result(value, diff.rstrip("\n") if args.dry_run and diff else "\n".join(text))
    return OK


def _written(args: argparse.Namespace, reached: access.Reached, directory: PurePosixPath) -> list[FileChange]:
    """The files that were asked for. Raises ClientError when one of them cannot be merged or named."""
    from jupyter_pai.connect import putty, pycharm

    changes = []
    if args.pycharm is not None:
        way = pycharm.Deployment(reached.login, directory, is_default=args.auto_upload)
        for name, build in pycharm.FILES.items():
            path = args.pycharm.expanduser() / ".idea" / name
            before = read(path)
            try:
                changes.append(FileChange(path, before, build(before, way)))
            except ValueError as error:
                raise _refused(
                    Text("{path} is left as it is: {error}", path=path, error=error), Text("Fix it or move it away.")
                ) from error
    for path, build_session in ((args.putty, putty.putty_reg), (args.xshell, putty.xshell_session)):
        if path is not None:
            key = PureWindowsPath(args.key or reached.files.identity)
            try:
                text = build_session(putty.PuttySession(reached.login, key, reached.host_key))
            except ValueError as error:
                raise _refused(str(error), Text("Ask an administrator for an Ed25519 host key.")) from error
            changes.append(FileChange(path.expanduser(), read(path.expanduser(), "utf-16"), text, "utf-16"))
    return changes


def _refused(message: str, hint: str) -> ClientError:
    return ClientError(message, code="InvalidParametersError", hint=hint)


def _draining(error: ClientError) -> ClientError:
    """The words for a gateway that tells no address because it is going or coming; any other error as it is."""
    from jupyter_pai.doctor.findings import Finding

    if "SSH gateway is not running" not in error.message:
        return error
    told = Finding("gateway-draining").texts[language()]
    return ClientError(told["what"], code=error.code, hint=told["remedy"])


@verb(
    "doctor",
    SSH_DIR,
    argument("job", nargs="?", help="name or alias", completer=job_names),
    flag("--server", help="check this machine, and the configuration of a backend of several people, instead"),
    ROLE,
    INDEX,
    argument("--client", action="append", choices=CLIENTS, help="only this program; repeatable"),
    argument("--config", type=Path, default=SERVER_CONFIG, help=f"--server: its file; default: {SERVER_CONFIG}"),
)
def doctor(args: argparse.Namespace, out: Output) -> int:
    """Check which SSH programs and editors will work, or how a server is set up.

    The exit code is 0 only when all that were asked for will, or when nothing keeps people from the server.
    """
    if args.server:
        return _check_server(args.config, out)
    if args.job is None:
        raise _refused(Text("Name a job."), Text("Or check a server: `pai doctor --server`."))
    from jupyter_pai.doctor.examining import report_text

    with connected() as client:
        root = ssh_root(args)
        try:
            reached = access.reach(client, args.job, root, role=args.role, index=args.index, register=out.in_cell)
            clients = args.client or ()
            # What a kernel's user has set up for their own SSH is on another machine.
            found = (
                access.examined(reached, clients) if out.in_cell else access.diagnosed(client, reached, root, clients)
            )
        except ClientError as error:
            if error.code != LOCKED_OUT:
                raise _draining(error) from None
            found = access.shut_out(args.job, args.client or ())
    out.result(found, report_text(found))
    return OK if found["works"] else JOB_FAILED


def _check_server(config: Path, out: Output) -> int:
    """Run the backend's own check: it needs the server's packages and rights, and no backend that runs."""
    command = [sys.executable, "-P", "-m", "pai_backend", "doctor", "--json", "--config", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (OK, JOB_FAILED):
        words = done.stderr.strip().rpartition("\n")[2].removeprefix("pai_backend: ")
        raise ClientError(words, code="InvalidParametersError", hint="Name the server's file: `--config FILE`.")
    found = json.loads(done.stdout)
    out.result(found, found["report"].rstrip("\n"))
    return JOB_FAILED if done.returncode else OK
