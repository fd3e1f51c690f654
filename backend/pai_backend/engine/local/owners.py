"""Giving files to the account of a user, and keeping the rest of the backend's directories to root.

Rules of the file. Root changes nothing by a path that leads through a directory of an account: what stands there may
be a link by then. So directories are made and taken over in directories of root's only.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

PASSABLE = 0o711
"""Of directories that accounts go through and do not list."""


def give(path: Path, uid: int, gid: int) -> None:
    """Give a file or a whole tree, which only root can have touched yet, to an account. Links are not followed."""
    os.chown(path, uid, gid, follow_symlinks=False)
    if path.is_dir() and not path.is_symlink():
        for _, names, files, folder in os.fwalk(path):
            for name in (*names, *files):
                about = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISDIR(about.st_mode) or about.st_nlink == 1:  # else it may be another's file, too
                    os.chown(name, uid, gid, dir_fd=folder, follow_symlinks=False)


def take_over(directory: Path, uid: int, gid: int) -> None:
    """Have a directory, right below one of root's, closed and the account's, made by us or by earlier tasks as root.

    Raises PermissionError when it belongs to another account, OSError.
    """
    directory.mkdir(mode=0o700, exist_ok=True)
    about = os.lstat(directory)
    if about.st_uid == uid:
        return
    if about.st_uid != os.geteuid() or not stat.S_ISDIR(about.st_mode):
        raise PermissionError(f"{directory} belongs to the account with uid {about.st_uid}, and should to {uid}")
    directory.chmod(0o700)
    give(directory, uid, gid)


def close_but(directory: Path, passable: Collection[str]) -> None:
    """Let other accounts pass through a directory of root's, to what is named ``passable`` and nothing else in it."""
    for name in os.listdir(directory):
        with suppress(FileNotFoundError):  # a draft that has its name now
            about = os.lstat(directory / name)
            if name not in passable and about.st_uid == os.geteuid() and not stat.S_ISLNK(about.st_mode):
                os.chmod(directory / name, stat.S_IMODE(about.st_mode) & 0o700)
    directory.chmod(PASSABLE)
