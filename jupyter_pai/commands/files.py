"""``upload`` and ``fs``: files of the default file system and of other storages."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import connected
from jupyter_pai.errors import OK
from jupyter_pai.language import tr
from jupyter_pai.verbs import GROUPS, argument, flag, verb

if TYPE_CHECKING:
    from jupyter_pai.fs.bar import ProgressBar
    from jupyter_pai.fs.moving import Connect, Transfer

GROUPS["fs"] = "Files of storages"

_URI = "pai://USER/…, $PAI_DEFAULT_FS_URI/…, or a URI of another storage"
URI = argument("uri", literal=True, help=_URI)


@contextlib.contextmanager
def _moving(out: Output) -> Iterator[tuple[Connect, ProgressBar]]:
    """A connection that is made when it is needed, and a bar where a user watches."""
    from jupyter_pai.fs.bar import ProgressBar

    bar = ProgressBar(shown=out.in_cell or (sys.stderr.isatty() and not out.as_json), notebook=out.in_cell)
    with contextlib.ExitStack() as stack:
        stack.callback(bar.close)
        yield lambda: stack.enter_context(connected()), bar


@verb(
    "upload",
    argument("path", type=Path, help="file, or directory whose content is uploaded"),
    URI,
    argument(
        "--exclude",
        action="append",
        default=[],
        metavar="PATTERN",
        help="skip these too, not only .git; repeatable",
    ),
)
def upload(args: argparse.Namespace, out: Output) -> int:
    """Upload a file or directory; run it again to resume.

    Run again after any interruption it sends what is missing.
    """
    from jupyter_pai.fs import moving
    from jupyter_pai.fs.places import place

    with _moving(out) as (connect, bar):
        moved = moving.upload(args.path, place(args.uri), args.exclude, connect, bar)
    _tell(moved, out)
    return OK


@verb(
    "fs cp",
    argument("source", literal=True, files=True, help=f"a path, or {_URI}"),
    argument("target", literal=True, files=True, help=f"a path, or {_URI}"),
)
def cp(args: argparse.Namespace, out: Output) -> int:
    """Copy a file or directory within a storage, or from or to here.

    What is there already is replaced.
    """
    from jupyter_pai.fs import moving
    from jupyter_pai.fs.places import place

    with _moving(out) as (connect, bar):
        moved = moving.copy(place(args.source), place(args.target), connect, bar)
    _tell(moved, out)
    return OK


def _tell(moved: Transfer, out: Output) -> None:
    from dataclasses import asdict

    from jupyter_pai.fs.words import moved_line

    out.result(asdict(moved), moved_line(moved))


@verb("fs ls", URI)
def ls(args: argparse.Namespace, out: Output) -> int:
    """List a directory."""
    from jupyter_pai.fs import browsing
    from jupyter_pai.fs.words import listing

    entries = browsing.entries(args.uri, connected)
    out.result(entries, listing(entries))
    return OK


@verb("fs cat", URI)
def cat(args: argparse.Namespace, out: Output) -> int:
    """Print a file's bytes.

    ``--json`` wraps them as text.
    """
    from jupyter_pai.fs import browsing

    with contextlib.closing(browsing.content(args.uri, connected)) as pieces:
        if out.as_json:
            out.json_line({"data": b"".join(pieces).decode(errors="replace")})
            return OK
        for piece in pieces:
            out.raw(piece)
    return OK


@verb("fs mkdir", URI)
def mkdir(args: argparse.Namespace, out: Output) -> int:
    """Make a directory and its parents."""
    from jupyter_pai.fs import browsing

    browsing.make_directory(args.uri, connected)
    out.result({"made": args.uri}, tr("{uri} is there", uri=args.uri))
    return OK


@verb("fs rm", URI, flag("-r", "--recursive", help="remove a directory and everything in it"))
def rm(args: argparse.Namespace, out: Output) -> int:
    """Remove a file or an empty directory."""
    from jupyter_pai.fs import browsing

    browsing.remove(args.uri, connected, recursive=args.recursive)
    out.result({"removed": args.uri}, tr("{uri} is removed", uri=args.uri))
    return OK
