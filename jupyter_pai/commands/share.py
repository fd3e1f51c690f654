"""``share``, ``shares`` and ``unshare``: let other users enter a job, or others look at a service by a link."""

from __future__ import annotations

import argparse

from jupyter_pai.commands.arguments import INDEX, JOB, ROLE, job_names, service_labels
from jupyter_pai.commands.keys import ONLY, duration
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import asked
from jupyter_pai.errors import OK, ClientError
from jupyter_pai.language import tr
from jupyter_pai.share_text import share_line, shares_text
from jupyter_pai.verbs import OneOf, argument, flag, verb


@verb(
    "share",
    argument(
        "job",
        nargs="?",
        help="name or alias; default: what others share with you",
        completer=job_names,
    ),
    OneOf(
        (
            argument("--with", dest="user", metavar="USER", help="the user to share it with, or group:NAME"),
            argument(
                "--link",
                metavar="LABEL",
                help="make a link for reading this service, without an account",
                completer=service_labels,
            ),
            flag("--list", help="show with whom the job is shared"),
        )
    ),
    argument(
        "--for",
        dest="lifetime",
        type=duration,
        metavar="TIME",
        help="for how long; default: until the job ends; a link: a day, and at most 30",
    ),
    ONLY,
    ROLE,
    INDEX,
)
def share(args: argparse.Namespace, out: Output) -> int:
    """Let another user or a group log in to a job, or anybody with a link look at one service.

    ``--only port:LABEL`` shares one service: ``pai open``, the panel and ``pai forward`` open it. Who may open a
    Jupyter may run commands in it. ``--link`` shows an address with a secret, once: those who
    have it may look at the service, with GET alone. Both end within 2 s of ``pai unshare``. ``--with group:NAME`` lets
    in who is in the group, for as long as they are.
    """
    from jupyter_pai import broker

    if args.job is None and (args.user or args.link):
        raise ClientError(
            "`--with` and `--link` need a job.",
            code="InvalidParametersError",
            hint="Write `pai share JOB --with USER`, or `pai share JOB --link LABEL`.",
        )
    if args.link:
        terms = {"role": args.role, "index": args.index or 0, "lifetime_s": args.lifetime}
        link = asked(lambda api: broker.link(api, args.job, args.link, **terms))
        out.result(link, f"{link['url']}\n{share_line(link)}")
        return OK
    if args.user is None:
        found = asked(lambda api: broker.shares(api, args.job))
        out.result(found, "\n".join(map(share_line, found)) or tr("Nothing is shared."))
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


@verb(
    "unshare",
    JOB,
    argument("--with", dest="user", metavar="USER", required=True, help="a user, group:NAME, or a link"),
)
def unshare(args: argparse.Namespace, out: Output) -> int:
    """End a share or a link; logins and requests by it end."""
    from jupyter_pai import broker

    asked(lambda api: broker.unshare(api, args.job, args.user))
    out.result({"unshared": args.user}, tr("{job} is no longer shared with {user}.", job=args.job, user=args.user))
    return OK
