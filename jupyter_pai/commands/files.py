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

if TYPE_CHECKING:
    from jupyter_pai.fs.bar import ProgressBar
    from jupyter_pai.fs.moving import Connect, Moved

URI = "pai://USER/…, $PAI_DEFAULT_FS_URI/…, or a URI of another storage"


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser], common: argparse.ArgumentParser) -> None:
    """Add the verbs of this group."""
    verb = verbs.add_parser("upload", parents=[common], help="upload a file or directory; run it again to resume")
    verb.add_argument("path", type=Path, help="file, or directory whose content is uploaded")
    verb.add_argument("uri", help=URI)
    verb.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="PATTERN",
        help="skip these too, not only .git; repeatable",
    )
    verb.set_defaults(run=upload)
    group = verbs.add_parser("fs", help="files of storages")
    actions = group.add_subparsers(dest="action", required=True, metavar="ACTION")
    verb = actions.add_parser("ls", parents=[common], help="list a directory")
    verb.add_argument("uri", help=URI)
    verb.set_defaults(run=ls)
    verb = actions.add_parser("cat", parents=[common], help="print a file's bytes")
    verb.add_argument("uri", help=URI)
    verb.set_defaults(run=cat)
    verb = actions.add_parser(
        "cp", parents=[common], help="copy a file or directory within a storage, or from or to here"
    )
    verb.add_argument("source", help="a path, or " + URI)
    verb.add_argument("target", help="a path, or " + URI)
    verb.set_defaults(run=cp)
    verb = actions.add_parser("mkdir", parents=[common], help="make a directory and its parents")
    verb.add_argument("uri", help=URI)
    verb.set_defaults(run=mkdir)
    verb = actions.add_parser("rm", parents=[common], help="remove a file or an empty directory")
    verb.add_argument("uri", help=URI)
    verb.add_argument("-r", "--recursive", action="store_true", help="remove a directory and everything in it")
    verb.set_defaults(run=rm)


@contextlib.contextmanager
def _moving(out: Output) -> Iterator[tuple[Connect, ProgressBar]]:
    """A connection that is made when it is needed, and a bar where somebody watches."""
    from jupyter_pai.fs.bar import ProgressBar

    bar = ProgressBar(shown=sys.stderr.isatty() and not out.as_json)
    with contextlib.ExitStack() as stack:
        stack.callback(bar.close)
        yield lambda: stack.enter_context(connected()), bar


def upload(args: argparse.Namespace, out: Output) -> int:
    """Upload; run again after any interruption it sends what is missing."""
    from jupyter_pai.fs import moving
    from jupyter_pai.fs.places import place

    with _moving(out) as (connect, bar):
        moved = moving.upload(args.path, place(args.uri), args.exclude, connect, bar)
    _tell(moved, out)
    return OK


def cp(args: argparse.Namespace, out: Output) -> int:
    """Copy; what is there already is replaced."""
    from jupyter_pai.fs import moving
    from jupyter_pai.fs.places import place

    with _moving(out) as (connect, bar):
        moved = moving.copy(place(args.source), place(args.target), connect, bar)
    _tell(moved, out)
    return OK


def _tell(moved: Moved, out: Output) -> None:
    from dataclasses import asdict

    from jupyter_pai.fs.words import moved_line

    out.result(asdict(moved), moved_line(moved))


def ls(args: argparse.Namespace, out: Output) -> int:
    """Names, sizes and times."""
    from jupyter_pai.fs import looking
    from jupyter_pai.fs.words import listing

    entries = looking.entries(args.uri, connected)
    out.result(entries, listing(entries))
    return OK


def cat(args: argparse.Namespace, out: Output) -> int:
    """Bytes as they are; ``--json`` wraps them as text."""
    from jupyter_pai.fs import looking

    with contextlib.closing(looking.content(args.uri, connected)) as pieces:
        if out.as_json:
            out.json_line({"data": b"".join(pieces).decode(errors="replace")})
            return OK
        for piece in pieces:
            out.raw(piece)
    return OK


def mkdir(args: argparse.Namespace, out: Output) -> int:
    """Fine when it is there."""
    from jupyter_pai.fs import looking

    looking.make_directory(args.uri, connected)
    out.result({"made": args.uri}, f"{args.uri} is there")
    return OK


def rm(args: argparse.Namespace, out: Output) -> int:
    """Remove."""
    from jupyter_pai.fs import looking

    looking.remove(args.uri, connected, recursive=args.recursive)
    out.result({"removed": args.uri}, f"{args.uri} is removed")
    return OK
