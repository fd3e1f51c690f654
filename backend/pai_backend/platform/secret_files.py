"""Small files that hold a secret: made once by the first process, for their owner only, durable before they are used.

Standard library only.
"""

from __future__ import annotations

import logging
import os
import secrets
import stat
from pathlib import Path

log = logging.getLogger(__name__)


def make_once(path: Path, text: str) -> None:
    """Make the file with mode 0600 unless there is one. Whole or not there at any instant, and on the disk on return.

    Of processes that call it at once one makes the file and the others find it: the text is written under another
    name and linked into place, which only one of them can do. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = _draft(path, text)
    try:
        os.link(draft, path)
    except FileExistsError:
        log.debug("another process made %s first", path)
    finally:
        draft.unlink()
    _sync_directory(path.parent)


def replace(path: Path, text: str) -> None:
    """Put the text in the file's place in one step, with mode 0600, on the disk on return. Raises OSError."""
    draft = _draft(path, text)
    try:
        os.replace(draft, path)
    except OSError:
        draft.unlink()
        raise
    _sync_directory(path.parent)


def read_guarded(path: Path) -> str:
    """The text of the file, which others may no longer read from now on. Raises OSError.

    A file that is not ours to change (a mounted secret) is read with a warning in the log.
    """
    mode = path.stat().st_mode
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        try:
            path.chmod(0o600)
            log.warning("%s could be read by others; its mode is 0600 now. It may be known: replace it.", path)
        except OSError as error:
            log.warning("%s can be read by others, and its mode cannot be changed: %s", path, error.strerror)
    return path.read_text(encoding="utf-8", errors="replace")


def _draft(path: Path, text: str) -> Path:
    """The text in a file of another name beside ``path``, on the disk."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        draft.unlink()
        raise
    return draft


def _sync_directory(directory: Path) -> None:
    """Have the names in it on the disk: without this a power cut may lose a file whose content was flushed."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
