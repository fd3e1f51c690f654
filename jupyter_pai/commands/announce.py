"""``announce``: what administrators tell all users; the verbs that most begin with show it."""

from __future__ import annotations

import argparse
from datetime import datetime

from jupyter_pai.announced import text_of
from jupyter_pai.commands.keys import duration
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import connected
from jupyter_pai.errors import OK, ClientError
from jupyter_pai.language import tr
from jupyter_pai.verbs import argument, flag, verb


def moment(text: str) -> datetime:
    """A time of the clock here, or ``now``. Raises argparse.ArgumentTypeError."""
    if text == "now":
        return datetime.now().astimezone()
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            tr("{text} is neither `now` nor a time such as 2026-12-01T09:00", text=f"{text!r}")
        ) from None


@verb(
    "announce",
    argument("text", nargs="?", metavar="TEXT", help="what to announce; default: show what is announced"),
    argument("--for", dest="lifetime", type=duration, metavar="TIME", help="such as 2d; default: until --end"),
    argument(
        "--no-starts",
        type=moment,
        metavar="TIME",
        help="a maintenance: no job starts from TIME on, `now` or such as 2026-12-01T09:00; --for counts from then",
    ),
    flag("--end", help="announce nothing"),
)
def announce(args: argparse.Namespace, out: Output) -> int:
    """Show what is announced to all users; administrators announce a text in its place.

    The panel shows it above the jobs; `pai list`, `pai submit` and `pai login` say it.
    """
    terms = args.lifetime or args.no_starts
    if (args.end and (args.text is not None or terms)) or (terms and args.text is None):
        raise ClientError(
            "Give a TEXT, with --for and --no-starts or without, or --end alone.",
            code="InvalidParametersError",
            hint="`pai announce` shows what is announced.",
        )
    with connected() as client:
        if args.end:
            client.end_announcement()
        elif args.text is not None:
            client.announce(args.text, lifetime_s=args.lifetime, no_starts_from=args.no_starts)
        found = client.announcement()
    out.result({"announcement": found}, text_of(found) if found else tr("Nothing is announced."))
    return OK
