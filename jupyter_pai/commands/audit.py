"""``audit``: who changed what, who entered where, and whether that list is whole."""

from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_pai.commands.arguments import job_names
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import asked
from jupyter_pai.commands.usage import moment
from jupyter_pai.errors import OK, ClientError
from jupyter_pai.language import tr
from jupyter_pai.verbs import GROUPS, argument, flag, verb
from pai_backend.model.text import Text

if TYPE_CHECKING:
    from jupyter_pai.audit import ChainCheck
    from jupyter_pai.client import AsyncClient
    from jupyter_pai.wire_types import AuditEventWire, AuditPlace

GROUPS["audit"] = "who changed what and entered where"

_HEAD = re.compile(r"(\d{1,15}):([0-9a-f]{64})")
_FILTERS = (
    argument("--type", metavar="TYPE", action="append", default=[], help="such as key.*; may be repeated"),
    argument("--user", default="", help="whom it concerns"),
    argument("--by", default="", help="who did it"),
    argument("--job", default="", help="a job", completer=job_names),
    argument("--since", type=moment, metavar="WHEN", help="a day such as 2026-11-25, or a time such as 30d"),
    argument("--until", type=moment, metavar="WHEN", help="the same"),
    flag("--refused", help="only what was refused for lack of rights"),
)
_REFUSED = "ForbiddenUserError"


def _head(text: str) -> AuditPlace:
    """An end as :func:`verify` prints it. Raises ArgumentTypeError."""
    found = _HEAD.fullmatch(text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(tr("{text} is not POSITION:HASH", text=f"{text[:80]!r}"))
    return {"position": int(found[1]), "hash": found[2]}


@verb("audit list", *_FILTERS, argument("--limit", type=int, default=100, help="events at most; default: 100"))
def list_events(args: argparse.Namespace, out: Output) -> int:
    """Changes and entries that concern you, newest first; for administrators all."""
    from jupyter_pai import audit

    found = asked(lambda api: audit.page(api, **_query(args), limit=args.limit))
    out.result(found, "\n".join(map(_line, found)) or tr("No events."))
    return OK


@verb(
    "audit export",
    *_FILTERS,
    argument("--after", type=int, default=0, metavar="POSITION", help="only events after this one"),
    argument("-o", "--output", type=Path, required=True, metavar="FILE", help="a new file, one JSON object a line"),
)
def export(args: argparse.Namespace, out: Output) -> int:
    """Write events into a file, oldest first; without filters it can be verified."""
    number = asked(lambda api: _export(api, args))
    out.result(
        {"path": str(args.output), "events": number},
        tr("wrote {number} events to {path}", number=number, path=args.output),
    )
    return OK


@verb(
    "audit verify",
    argument("file", type=Path, nargs="?", help="a file of `pai audit export`; default: the backend's events"),
    argument(
        "--head",
        type=_head,
        action="append",
        default=[],
        metavar="POSITION:HASH",
        help="an end that an earlier check has printed; may be repeated",
    ),
)
def verify(args: argparse.Namespace, out: Output) -> int:
    """Check that no event was changed, put in or taken out.

    Keep the end that it prints where administrators of the backend cannot write, and give it to a later check: it
    proves everything up to it.
    """
    from jupyter_pai.audit import Broken
    from jupyter_pai.audit import verify as verified

    try:
        check = _of_file(args.file, args.head) if args.file else asked(lambda api: verified(api, args.head))
    except Broken as broken:
        raise ClientError(
            Text("The audit is not whole. {broken}", broken=broken),
            code="InvalidAuditError",
            hint="Compare it with a backup, or with what `pai audit export` or a sink has kept.",
        ) from None
    if check.last is None:
        out.result({"events": 0, "head": None}, tr("No events."))
        return OK
    text = f"{check.last['position']}:{check.last['hash']}"
    out.result(
        {"events": check.checked, "head": check.last},
        tr("{number} events are whole, up to", number=check.checked) + f"\n{text}",
    )
    return OK


def _query(args: argparse.Namespace) -> dict[str, str | int | None]:
    return {
        "types": ",".join(args.type) or None,
        "user": args.user or None,
        "by": args.by or None,
        "job": args.job or None,
        "since": args.since.isoformat() if args.since else None,
        "until": args.until.isoformat() if args.until else None,
        "result": _REFUSED if args.refused else None,
    }


async def _export(api: AsyncClient, args: argparse.Namespace) -> int:
    from asyncio import to_thread

    from jupyter_pai import audit

    try:
        handle = os.open(args.output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise ClientError(
            Text("{path} cannot be written: {strerror}", path=args.output, strerror=error.strerror),
            code="InvalidParametersError",
            hint="Name a new file; existing files are not overwritten.",
        ) from None
    number = 0
    with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
        async for some in audit.every(api, args.after, **_query(args)):
            text = "".join(f"{json.dumps(event, ensure_ascii=False)}\n" for event in some)
            await to_thread(file.write, text)
            number += len(some)
    return number


def _of_file(path: Path, wanted: list[AuditPlace]) -> ChainCheck:
    from jupyter_pai.audit import ChainCheck

    check = ChainCheck(None, wanted)
    try:
        with path.expanduser().open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    check.add(json.loads(line))
                except (json.JSONDecodeError, KeyError, TypeError, AttributeError):
                    raise ClientError(
                        Text("{path}, line {number}: this is not an event of the audit.", path=path, number=number),
                        code="InvalidParametersError",
                        hint="Name a file of `pai audit export`.",
                    ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ClientError(
            Text("{path} cannot be read: {error}", path=path, error=error),
            code="InvalidParametersError",
            hint="Name a file of `pai audit export`.",
        ) from None
    check.end()
    return check


def _line(event: AuditEventWire) -> str:
    place = tr(" from {source}", source=event["source"]) if event["source"] else ""
    whom = tr(" of {user}", user=event["user"]) if event["user"] != event["by"] else ""
    result = "" if event["result"] == "done" else f"{event['result']}: "
    words = tr(
        "{at}  {type}  {subject}{whom}  by {by}{place}",
        at=event["at"],
        type=event["type"],
        subject=event["subject"],
        whom=whom,
        by=event["by"] or "-",
        place=place,
    )
    return f"{words}  {result}{event['detail']}".rstrip()
