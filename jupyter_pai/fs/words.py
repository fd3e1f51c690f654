"""Plain text for people about files. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jupyter_pai.language import tr
from jupyter_pai.render import clock, safe, table

if TYPE_CHECKING:
    from jupyter_pai.fs.moving import Transfer
    from jupyter_pai.wire_types import FileEntry

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def size_text(size: int) -> str:
    """Bytes in the largest unit that leaves a whole part, with powers of 1000."""
    amount, unit = float(size), 0
    while amount >= 999.5 and unit + 1 < len(_UNITS):
        amount, unit = amount / 1000, unit + 1
    return f"{amount:.0f} {_UNITS[unit]}" if unit == 0 or amount >= 99.95 else f"{amount:.1f} {_UNITS[unit]}"


def listing(entries: Sequence[FileEntry]) -> str:
    """A table; directories end with a slash."""
    rows = [
        (size_text(entry["size"]) if entry["kind"] == "file" else "", clock(entry["modified"]), shown(entry))
        for entry in entries
    ]
    return table(("SIZE", "MODIFIED", "NAME"), rows)


def shown(entry: FileEntry) -> str:
    """A name as a listing has it."""
    return entry["name"] + ("/" if entry["kind"] == "directory" else "")


def moved_line(moved: Transfer) -> str:
    """What an upload or a copy did, in a line."""
    if moved.files is None:
        return safe(tr("copied to {target}", target=moved.target))
    words = [tr("1 file") if moved.files == 1 else tr("{number} files", number=moved.files)]
    if moved.size is not None:
        words.append(size_text(moved.size))
    if moved.same:
        words.append(tr("{number} there already", number=moved.same))
    return safe(f"{moved.target}: {', '.join(words)}")
