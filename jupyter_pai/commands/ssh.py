"""``ssh`` and ``ssh-config``: ordinary OpenSSH on the way to tasks."""

from __future__ import annotations

import argparse
import shlex
import subprocess
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING

from jupyter_pai import access
from jupyter_pai.commands.arguments import INDEX, JOB, ROLE
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import connected
from jupyter_pai.connect.files import ClusterFiles, FileChange, ssh_dir
from jupyter_pai.connect.windows import Profile, private_command, profile
from jupyter_pai.errors import OK
from jupyter_pai.language import tr
from jupyter_pai.verbs import argument, flag, one_of, verb

if TYPE_CHECKING:
    from jupyter_pai.sync import Client

SSH_DIR = argument("--ssh-dir", type=Path, help="instead of ~/.ssh (also PAI_SSH_DIR)")

NO_CERTIFICATE = flag(
    "--no-certificate",
    help="register your key instead of getting certificates for one hour (also PAI_SSH_CERTIFICATE=no)",
)


def ssh_root(args: argparse.Namespace) -> Path:
    """The SSH directory that a verb works with."""
    return args.ssh_dir.expanduser().absolute() if args.ssh_dir else ssh_dir()


def by_certificate(args: argparse.Namespace) -> bool:
    """Whether a login shall prove itself by a certificate, as it does by default."""
    return not args.no_certificate and access.by_certificate()


@verb(
    "ssh",
    SSH_DIR,
    JOB,
    ROLE,
    INDEX,
    argument("command", nargs="*", help="after --: the command and its arguments"),
    NO_CERTIFICATE,
)
def ssh(args: argparse.Namespace, out: Output) -> int:
    """Log in to a task, or run a command there.

    The exit code is that of OpenSSH. The certificate that it logs in by is renewed while it runs, so that the login
    does not end with it. ``--json``, and a notebook, show OpenSSH's command instead of running it.
    """
    # A certificate would expire: it is not renewed while the command that a cell shows runs elsewhere.
    root, certify = ssh_root(args), by_certificate(args) and not out.in_cell
    with connected() as client:
        reached = access.reach(client, args.job, root, role=args.role, index=args.index, register=not certify)
        with access.proven(client, reached, certify=certify) as login:
            command = [*login, *args.command]
            if out.as_json or out.in_cell:
                out.result({"command": command}, shlex.join(command))
                return OK
            access.require_openssh()
            return subprocess.call(command)


@verb(
    "ssh-config",
    SSH_DIR,
    one_of(
        flag("--dry-run", help="show what would change, change nothing"),
        flag("--remove", help="remove the names and the Include line"),
    ),
    flag(
        "--jump",
        action=argparse.BooleanOptionalAction,
        help="names NAME.jump too: encrypted up to the task, with a certificate for a day; default: as the last time",
    ),
    argument(
        "--windows",
        nargs="?",
        const="",
        metavar="PROFILE",
        help="in WSL: for Windows' own OpenSSH; the user's directory is asked for when it is not given",
    ),
)
def ssh_config(args: argparse.Namespace, out: Output) -> int:
    """Write ssh names of running tasks.

    They are in a file of their own, which a line of ``~/.ssh/config`` includes.
    """
    windows = None if args.windows is None else profile(args.windows)
    with connected() as client:
        files = _files(args, access.cluster(client), windows)
        changed = _configured(client, files, args)
    diff = "".join(change.diff for change in changed)
    notes = [] if windows is None or args.remove else [_permissions(files)]
    value = {
        "changed": [str(change.path) for change in changed],
        "applied": not args.dry_run,
        "diff": diff,
        "notes": notes,
    }
    lines = [
        tr("removed {path}", path=c.path) if c.after is None else tr("wrote {path}", path=c.path) for c in changed
    ] or [tr("Nothing to change.")]
    out.result(value, diff.rstrip("\n") if args.dry_run and diff else "\n".join(lines + notes))
    return OK


def _configured(client: Client, files: ClusterFiles, args: argparse.Namespace) -> list[FileChange]:
    """What has changed, or with ``--dry-run`` would."""
    if args.remove:
        changes = access.removal(files)
    else:
        if not args.dry_run:
            access.register_key(client, files)
        found = access.names(client)
        jumps = access.jumps(files) if args.jump is None else args.jump
        changes = access.changes(files, found, jumps=jumps)
        if jumps and not args.dry_run:
            access.certify_jumps(client, files, found)
    changed = [change for change in changes if change.after != change.before]
    if not args.dry_run:
        for change in changed:
            change.apply()
    return changed


def _files(args: argparse.Namespace, cluster: str, windows: Profile | None) -> ClusterFiles:
    """Where the files go: below the SSH directory of this system, or of the Windows around it."""
    if windows is None:
        return ClusterFiles(ssh_root(args), cluster)
    return ClusterFiles(windows.here / ".ssh", cluster, windows.windows / ".ssh")


def _permissions(files: ClusterFiles) -> str:
    key = PureWindowsPath(files.places.identity)
    return tr("Should Windows call the key's permissions too open, type in PowerShell: {key}", key=private_command(key))
