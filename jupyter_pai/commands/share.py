"""``share``, ``shares`` and ``unshare``: let other users enter a job by SSH."""

from __future__ import annotations

import argparse

from jupyter_pai.commands.keys import ONLY, duration
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import asked
from jupyter_pai.errors import OK, ClientError
from jupyter_pai.share_text import share_line, shares_text


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser], common: argparse.ArgumentParser) -> None:
    """Add the verbs of this group."""
    verb = verbs.add_parser("share", parents=[common], help="let another user log in to a job")
    verb.add_argument("job", nargs="?", help="name or alias; default: what others share with you")
    verb.add_argument("--with", dest="user", metavar="USER", help="the user to share it with")
    verb.add_argument("--list", action="store_true", help="show with whom the job is shared")
    verb.add_argument(
        "--for", dest="lifetime", type=duration, metavar="TIME", help="for how long; default: until the job ends"
    )
    verb.add_argument("--only", action="append", default=[], metavar="WHAT", help=ONLY)
    verb.set_defaults(run=share)
    verb = verbs.add_parser("shares", parents=[common], help="what others share with you, and you with others")
    verb.set_defaults(run=shares)
    verb = verbs.add_parser("unshare", parents=[common], help="end a share; the user's logins end")
    verb.add_argument("job", help="name or alias")
    verb.add_argument("--with", dest="user", metavar="USER", required=True, help="with whom it is shared")
    verb.set_defaults(run=unshare)


def share(args: argparse.Namespace, out: Output) -> int:
    """Share a job, or show shares."""
    from jupyter_pai import broker

    if args.user is not None and (args.job is None or args.list):
        raise ClientError(
            "`--with` needs a job, and no `--list`.",
            code="InvalidParametersError",
            hint="Write `pai share JOB --with USER`, or `pai share JOB --list`.",
        )
    if args.user is None:
        found = asked(lambda api: broker.shares(api, args.job))
        out.result(found, "\n".join(map(share_line, found)) or "Nothing is shared.")
        return OK
    made = asked(lambda api: broker.share(api, args.job, args.user, lifetime_s=args.lifetime, only=args.only))
    out.result(made, share_line(made))
    return OK


def shares(args: argparse.Namespace, out: Output) -> int:
    """All shares that concern the caller."""
    from jupyter_pai import broker

    found = asked(broker.all_shares)
    out.result(found, shares_text(found))
    return OK


def unshare(args: argparse.Namespace, out: Output) -> int:
    """End a share."""
    from jupyter_pai import broker

    asked(lambda api: broker.unshare(api, args.job, args.user))
    out.result({"unshared": args.user}, f"{args.job} is no longer shared with {args.user}.")
    return OK
