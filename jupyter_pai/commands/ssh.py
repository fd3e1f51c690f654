"""``ssh`` and ``ssh-config``: ordinary OpenSSH on the way to tasks."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING

from jupyter_pai import access
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import connected
from jupyter_pai.connect.files import Change, ClusterFiles, ssh_dir
from jupyter_pai.connect.ssh_config import path_word
from jupyter_pai.connect.windows import Profile, private_command, profile
from jupyter_pai.errors import OK, ClientError

if TYPE_CHECKING:
    from jupyter_pai.sync import Client


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser], common: argparse.ArgumentParser) -> None:
    """Add the verbs of this group."""
    verb = ssh_verb(verbs, common, "ssh", "log in to a task, or run a command there")
    verb.add_argument("command", nargs="*", help="after --: the command and its arguments")
    verb.add_argument(
        "--no-certificate",
        action="store_true",
        help="register your key instead of getting certificates for one hour (also PAI_SSH_CERTIFICATE=no)",
    )
    verb.set_defaults(run=ssh)
    verb = verbs.add_parser("ssh-config", parents=[common], help="write ssh names of running tasks")
    _add_place(verb)
    what = verb.add_mutually_exclusive_group()
    what.add_argument("--dry-run", action="store_true", help="show what would change, change nothing")
    what.add_argument("--remove", action="store_true", help="remove the names and the Include line")
    verb.add_argument(
        "--jump",
        action=argparse.BooleanOptionalAction,
        help="names NAME.jump too: encrypted up to the task, with a certificate for a day; default: as the last time",
    )
    verb.add_argument(
        "--windows",
        nargs="?",
        const="",
        metavar="PROFILE",
        help="in WSL: for Windows' own OpenSSH; the user's directory is asked for when it is not given",
    )
    verb.set_defaults(run=ssh_config)


def ssh_verb(
    verbs: argparse._SubParsersAction[argparse.ArgumentParser], common: argparse.ArgumentParser, name: str, told: str
) -> argparse.ArgumentParser:
    """A verb about one task that is reached by SSH."""
    verb = verbs.add_parser(name, parents=[common], help=told)
    _add_place(verb)
    verb.add_argument("job", help="name or alias")
    verb.add_argument("--role", help="the task's role; default: the first")
    verb.add_argument("--index", type=int, help="the task's index; default: 0")
    return verb


def _add_place(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--ssh-dir", type=Path, help="instead of ~/.ssh (also PAI_SSH_DIR)")


def ssh_root(args: argparse.Namespace) -> Path:
    """The SSH directory that a verb works with."""
    return args.ssh_dir.expanduser().absolute() if args.ssh_dir else ssh_dir()


def by_certificate(args: argparse.Namespace) -> bool:
    """Whether a login shall prove itself by a certificate, as it does unless told otherwise."""
    return not args.no_certificate and os.environ.get("PAI_SSH_CERTIFICATE", "").lower() not in ("no", "0", "false")


def ssh(args: argparse.Namespace, out: Output) -> int:
    """Run OpenSSH with the names of this job; its exit code is ours. ``--json`` prints the command instead.

    The certificate it logs in by is renewed while it runs, so that the login does not end with it.
    """
    from jupyter_pai import certificates

    root, certify = ssh_root(args), by_certificate(args)
    with connected() as client:
        reached = access.reach(client, args.job, root, role=args.role, index=args.index, register=not certify)
        wanted = access.certificate(client, reached) if certify else None
        if certify and wanted is None:
            access.register_key(client, reached.files)
        # On the command line and in no file: what else logs in, at any time, would be put out when it ends.
        proof = [] if wanted is None else ["-o", f"CertificateFile={path_word(wanted.path)}"]
        command = [*reached.command[:-1], *proof, reached.command[-1], *args.command]
        if out.as_json:
            out.json_line({"command": command}, indent=2)
            return OK
        if shutil.which(command[0]) is None:
            raise ClientError(
                "There is no ssh program on this machine.",
                code="InvalidParametersError",
                hint="Install OpenSSH's client (package openssh-client).",
            )
        with contextlib.nullcontext() if wanted is None else certificates.renewed(client, wanted):
            return subprocess.call(command)


def ssh_config(args: argparse.Namespace, out: Output) -> int:
    """Write, show or remove the included file, known_hosts and the Include line."""
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
    lines = [f"{'removed' if c.after is None else 'wrote'} {c.path}" for c in changed] or ["Nothing to change."]
    out.result(value, diff.rstrip("\n") if args.dry_run and diff else "\n".join(lines + notes))
    return OK


def _configured(client: Client, files: ClusterFiles, args: argparse.Namespace) -> list[Change]:
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
    return f"Should Windows call the key's permissions too open, type in PowerShell: {private_command(key)}"
