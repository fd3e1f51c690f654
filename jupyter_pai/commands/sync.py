"""``sync``: a folder here and one in a task, kept in step."""

from __future__ import annotations

import argparse
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from jupyter_pai import access
from jupyter_pai.commands.arguments import INDEX, JOB, ROLE
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import connected
from jupyter_pai.commands.ssh import NO_CERTIFICATE, SSH_DIR, by_certificate, ssh_root
from jupyter_pai.errors import JOB_FAILED, OK
from jupyter_pai.language import tr
from jupyter_pai.verbs import argument, flag, verb

if TYPE_CHECKING:
    from jupyter_pai.foldersync import Pair, SyncPlan

POLL_MS = 2000
"""How often the task is asked what changed there, with ``--both``."""


@verb(
    "sync",
    SSH_DIR,
    JOB,
    argument("folder", type=Path, help="the folder here"),
    flag("--both", help="bring what changes in the task back, too"),
    argument("--to", type=PurePosixPath, help="the folder in the task; default: its name, where a login begins"),
    flag("--once", help="bring both in step and end; exit code 1 if there are conflicts"),
    ROLE,
    INDEX,
    NO_CERTIFICATE,
    shell_only=True,
)
def sync(args: argparse.Namespace, out: Output) -> int:
    """Keep a folder and one in a task in step, until Ctrl-C.

    Changes go over SSH, by rsync where both sides have it, else by sftp. What changed on both sides is told and left
    alone. What `.gitignore` and `.paiignore` in the folder name is left out.
    """
    from jupyter_pai.foldersync import LocalFolder, Pair, TaskFolder
    from jupyter_pai.fs import code

    access.require_openssh()
    folder = LocalFolder(args.folder.expanduser())
    with connected() as client:
        reached = access.reach(
            client, args.job, ssh_root(args), role=args.role, index=args.index, register=not by_certificate(args)
        )
        with access.proven(client, reached, certify=by_certificate(args)) as login:
            task = TaskFolder(login, args.to or PurePosixPath(code.task_name(folder.root)))
            if not task.open():
                out.progress(tr("One side has no rsync; files go by sftp, as a whole each time."))
            pair = Pair(folder, task, reached.login.alias, both=args.both)
            plan = pair.step()
            _tell(plan, out)
            if args.once:
                out.result(
                    plan.__dict__,
                    tr("{folder} and {path} are in step.", folder=args.folder, path=task.path)
                    if not plan.conflicts
                    else "",
                )
                return JOB_FAILED if plan.conflicts else OK
            out.progress(tr("Keeping {folder} and {path} in step. Ctrl-C ends it.", folder=args.folder, path=task.path))
            _keep(folder.root, pair, args, out)
    return OK


def _keep(root: Path, pair: Pair, args: argparse.Namespace, out: Output) -> None:
    import watchfiles

    told: list[str] = []
    for changes in watchfiles.watch(root, rust_timeout=POLL_MS, yield_on_timeout=True):
        if changes or args.both:
            plan = pair.step()
            _tell(plan, out, told)
            told = plan.conflicts


def _tell(plan: SyncPlan, out: Output, told: list[str] | None = None) -> None:
    for mark, paths in (("->", plan.push), ("<-", plan.pull), ("x>", plan.remove_there), ("<x", plan.remove_here)):
        for path in paths:
            out.progress(f"{mark} {path}")
    for path in plan.conflicts:
        if path not in (told or ()):
            out.progress(
                tr("!! {path} changed on both sides: left as it is. Rename or remove one of the two.", path=path)
            )
