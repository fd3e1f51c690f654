"""What of a directory here is uploaded: plain files, in order, without what is excluded."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from jupyter_pai.errors import ClientError
from jupyter_pai.fs.places import wrong
from jupyter_pai.language import tr
from pai_backend.model.text import Text

ALWAYS_EXCLUDED = (".git",)


@dataclass(frozen=True)
class LocalFile:
    """A file to upload; ``relative`` has ``/`` between names and is empty when the file itself was named.

    ``sha256``: what it must be, where that is known; a file that has changed since is refused.
    """

    path: Path
    relative: str
    size: int
    modified: float  # seconds since the epoch
    sha256: str = ""


@dataclass(frozen=True)
class Found:
    """Files and empty directories below a path."""

    files: tuple[LocalFile, ...]
    empty: tuple[str, ...]


def sources(root: Path, exclude: Sequence[str], say: Callable[[str], None]) -> Found:
    """Everything at ``root``. ``say`` is told what is left out though it was not excluded.

    A pattern (``*.pyc``, ``data/raw``) is compared with a file's or directory's name and with its path below
    ``root``. Links to files are followed, links to directories are left out: they may lead anywhere, also back.
    Raises ClientError when something cannot be read.
    """
    try:
        status = root.stat()
        if stat.S_ISREG(status.st_mode):
            return Found((LocalFile(root, "", status.st_size, status.st_mtime),), ())
        if not stat.S_ISDIR(status.st_mode):
            raise wrong(Text("{root} is neither a file nor a directory.", root=root), Text("Name one of these."))
        return _below(root, (*ALWAYS_EXCLUDED, *exclude), say)
    except OSError as error:
        raise unreadable(Path(error.filename or root), error) from error


def _below(root: Path, exclude: Sequence[str], say: Callable[[str], None]) -> Found:
    files: list[LocalFile] = []
    empty: list[str] = []
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        with os.scandir(root / folder) as entries:
            children = sorted(entries, key=lambda entry: entry.name)
        kept = 0
        for child in children:
            relative = f"{folder}/{child.name}" if folder else child.name
            if any(fnmatchcase(child.name, pattern) or fnmatchcase(relative, pattern) for pattern in exclude):
                continue
            kept += 1
            if child.is_dir(follow_symlinks=False):
                waiting.append(relative)
            elif child.is_file():
                status = child.stat()
                files.append(LocalFile(Path(child.path), relative, status.st_size, status.st_mtime))
            else:
                say(
                    tr("left out: {path} is not a file, but a link", path=relative)
                    if child.is_symlink()
                    else tr("left out: {path} is not a file", path=relative)
                )
        if not kept and folder:
            empty.append(folder)
    return Found(tuple(sorted(files, key=lambda file: file.relative)), tuple(sorted(empty)))


def unreadable(path: Path, error: OSError) -> ClientError:
    """A path of this machine that cannot be read."""
    return wrong(
        Text("{path} cannot be read: {strerror}.", path=path, strerror=error.strerror),
        Text("Check its name and who may read it."),
    )
