"""Accounts of this machine for local tasks, as configured: what they may reach of the backend's directories.

The data directory stays root's. Accounts pass through it to the directories of their own tasks, to what tasks share of
a Python, and to their user's part of the default file system; they list nothing on the way.
"""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pai_backend.config.settings import Settings
from pai_backend.engine.base import EngineError
from pai_backend.engine.local import layout
from pai_backend.engine.local.account import SystemAccount
from pai_backend.engine.local.accounts import SystemAccounts
from pai_backend.engine.local.owners import PASSABLE, close_but, take_over
from pai_backend.engine.local.reading import read_record
from pai_backend.storage.areas import OUTPUT, parts_of
from pai_backend.storage.faults import StorageFault
from pai_backend.storage.uris import parse

log = logging.getLogger(__name__)

_SHARED: Final = 0o1777
"""Of a directory that everyone may write to: who did not make a file there does not move it away."""
_HARD_LINKS: Final = Path("/proc/sys/fs/protected_hardlinks")
_LOOK: Final = """
import os, sys
import pai_backend.engine.local.account_ssh, pai_backend.storage.stage
for path in sys.argv[2:]:
    os.stat(os.path.join(path, "."))
os.access(sys.argv[1], os.X_OK) or sys.exit(f"PermissionError: {sys.argv[1]} may not be executed")
"""
_LOOK_S: Final = 60.0


@dataclass(frozen=True)
class _Storage:
    """A default file system that is a directory of this machine."""

    root: Path
    shared: tuple[str, ...]
    ours: bool
    """Whether it lies in the data directory; if not, the modes of what else is in it are the administrator's."""

    def prepare(self, user: str = "", uid: int = 0, gid: int = 0) -> None:
        """Make what everyone shares, and the directories of a user. Raises OSError."""
        self.root.mkdir(mode=PASSABLE, parents=True, exist_ok=True)
        if self.ours:
            self.root.chmod(PASSABLE)
        about = self.root.stat()
        if about.st_uid != os.geteuid() or about.st_mode & 0o022:
            raise PermissionError(f"{self.root} must belong to root, and no other account may write to it")
        output = self.root / OUTPUT
        output.mkdir(mode=PASSABLE, exist_ok=True)
        output.chmod(PASSABLE)
        for name in self.shared:
            (self.root / name).mkdir(exist_ok=True)
            (self.root / name).chmod(_SHARED)
        if _is_a_name(user):
            take_over(output / user, uid, gid)
            if user not in (OUTPUT, *self.shared):
                take_over(self.root / user, uid, gid)

    def close(self) -> None:
        """Close what others have left in it. Raises OSError."""
        self.prepare()
        close_but(self.root / OUTPUT, ())
        if self.ours:
            close_but(self.root, (OUTPUT, *self.shared))


def accounts_of(settings: Settings, root: Path) -> SystemAccounts | None:
    """The accounts as configured; None where all tasks run as the backend's. ``root`` is the engine's.

    Raises EngineError where this process cannot give tasks accounts.
    """
    given = settings.engine.accounts
    if not given.given:
        return None
    if sys.platform != "linux":
        raise EngineError("tasks run as other accounts on Linux only; leave it out, see engine.trust_all_users")
    if os.geteuid() != 0:
        raise EngineError("only root can run tasks as other accounts; start the backend as root, or leave it out")
    storage = _storage(settings)
    return SystemAccounts(
        root, named=given.map, pool=given.for_all, prepare=storage.prepare if storage is not None else lambda *_: None
    )


def open_to(accounts: SystemAccounts, settings: Settings, root: Path) -> None:
    """Have all that the configuration names accounts, and let these into their own and nothing else. Blocks.

    Raises EngineError, with the remedy, when that cannot be.
    """
    accounts.check()
    if _HARD_LINKS.exists() and _HARD_LINKS.read_text("ascii").strip() == "0":
        raise EngineError("accounts can link each other's files here; run `sysctl fs.protected_hardlinks=1`")
    storage = _storage(settings)
    python = settings.engine.python or Path(sys.executable)
    for path in (settings.data_dir, python, *([storage.root] if storage is not None else [])):
        if other := _not_roots(path) or _not_roots(path.resolve()):
            raise EngineError(
                f"{other} belongs to another account, or others may write to it: root must not use {path}"
            )
    try:
        for folder in (settings.data_dir, root, root / layout.TASKS):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        inside = storage is not None and storage.ours
        passable = storage.root.relative_to(settings.data_dir).parts[:1] if storage is not None and inside else ()
        close_but(settings.data_dir, (root.name, *passable))
        close_but(root, (layout.TASKS, layout.HOMES, layout.INTERPRETERS))
        (root / layout.TASKS).chmod(PASSABLE)
        if storage is not None:
            storage.close()
    except OSError as error:
        raise EngineError(f"the data directory cannot be closed to other accounts: {error}") from error
    known = [accounts.of(user) for user in settings.known_users]
    reached = [root / layout.TASKS, *([storage.root] if storage is not None else [])]
    _look(known[0], str(python), [str(path) for path in reached])
    if older := _older_tasks(root):
        log.warning("%d tasks go on as the account of the backend, which reads everything: they began before", older)


def _not_roots(path: Path) -> Path | None:
    """What on the way to a path, which need not be there yet, an account could put something else in the place of."""
    for step in (path, *path.parents):
        try:
            about = step.stat()
        except FileNotFoundError:
            continue
        writable = about.st_mode & stat.S_IWOTH or (about.st_mode & stat.S_IWGRP and about.st_gid != 0)
        if about.st_uid != 0 or (writable and not about.st_mode & stat.S_ISVTX):
            return step
    return None


def _storage(settings: Settings) -> _Storage | None:
    place = parse(settings.default_fs_uri)
    if not place.local:
        return None
    root = Path(place.path)
    ours = settings.data_dir in root.parents
    return _Storage(root, settings.storage.shared, ours)


def _look(account: SystemAccount, python: str, directories: list[str]) -> None:
    """Raises EngineError when the account cannot run our programs and ``python``, or reach a directory."""
    try:
        done = subprocess.run(
            [sys.executable, "-E", "-P", "-c", _LOOK, python, *directories],
            cwd="/",
            env={},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LOOK_S,
            user=account.uid,
            group=account.gid,
            extra_groups=account.groups or (account.gid,),
        )
        said = done.stderr.decode("utf-8", "replace").strip() if done.returncode else ""
    except (OSError, subprocess.TimeoutExpired) as error:
        said = str(error)
    if said:
        raise EngineError(
            f"tasks could not start as {account.name}: {said.splitlines()[-1]}. Accounts must be able to run "
            f"{sys.executable} and {python}, and to pass through {', '.join(directories)}: keep these outside of "
            "closed directories such as /root"
        )


def _older_tasks(root: Path) -> int:
    """How many tasks run that were started before there were accounts."""
    found = 0
    for directory in (root / layout.TASKS).iterdir():
        plan = read_record(directory / layout.PLAN)
        if plan is not None and plan.get("account") is None and not (directory / layout.EXIT).exists():
            found += 1
    return found


def _is_a_name(user: str) -> bool:
    """Whether a user's name can be that of a directory."""
    try:
        return parts_of(user) == (user,)
    except StorageFault:
        return False
