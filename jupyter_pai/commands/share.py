"""``share``, ``shares`` and ``unshare``: let other users enter a job by SSH."""

from __future__ import annotations

import argparse

from jupyter_pai.commands.arguments import JOB, job_names
from jupyter_pai.commands.keys import ONLY, duration
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import asked
from jupyter_pai.errors import OK, ClientError
from jupyter_pai.share_text import share_line, shares_text
from jupyter_pai.verbs import argument, flag, verb


@verb(
    "share",
    argument(
        "job",
        nargs="?",
        help="name or alias; default: what others share with you",
        completer=job_names,
    ),
    argument("--with", dest="user", metavar="USER", help="the user to share it with"),
    flag("--list", help="show with whom the job is shared"),
    argument("--for", dest="lifetime", type=duration, metavar="TIME", help="for how long; default: until the job ends"),
    ONLY,
)
def share(args: argparse.Namespace, out: Output) -> int:
    """Let another user log in to a job."""
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


@verb("shares")
def shares(args: argparse.Namespace, out: Output) -> int:
    """What others share with you, and you with others."""
    from jupyter_pai import broker

    found = asked(broker.all_shares)
    out.result(found, shares_text(found))
    return OK


@verb("unshare", JOB, argument("--with", dest="user", metavar="USER", required=True, help="with whom it is shared"))
def unshare(args: argparse.Namespace, out: Output) -> int:
    """End a share; the user's logins end."""
    from jupyter_pai import broker

    asked(lambda api: broker.unshare(api, args.job, args.user))
    out.result({"unshared": args.user}, f"{args.job} is no longer shared with {args.user}.")
    return OK
