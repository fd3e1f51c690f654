"""``token``: application tokens for programs, limited to a part of what their user may."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import Any, cast
from urllib.parse import quote, urlencode

from jupyter_pai import render
from jupyter_pai.commands.keys import duration
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import asked
from jupyter_pai.commands.users import ask
from jupyter_pai.errors import OK
from jupyter_pai.language import tr
from jupyter_pai.verbs import GROUPS, argument, verb

GROUPS["token"] = "Tokens for programs: list, add, revoke"

PATH = "/api/v2/tokens"
SCOPES = ("read", "jobs", "files", "ssh", "admin")


@verb("token list")
def list_tokens(args: argparse.Namespace, out: Output) -> int:
    """Your application tokens and sessions: what they may do, when they expire and when they were used last."""
    found = cast(dict[str, Any], asked(lambda api: ask(api, "GET", PATH)))["data"]
    rows = [
        (
            each["id"],
            each["name"] or ("" if each["application"] else "session"),
            " ".join(each["scopes"]) or "everything",
            each.get("virtualCluster") or "all",
            _time(each["expiresTime"]),
            _time(each["lastUsedTime"]),
        )
        for each in found
    ]
    out.result(found, render.table(("ID", "NAME", "SCOPES", "VC", "EXPIRES", "LAST USED"), rows))
    return OK


@verb(
    "token add",
    argument("name", help="what to call it"),
    argument(
        "--scope",
        action="append",
        default=[],
        choices=SCOPES,
        help="allow only this; more than one may be given; default: everything that you may do",
    ),
    argument("--vc", metavar="NAME", help="only for jobs of this virtual cluster; default scopes: read, jobs and ssh"),
    argument("--for", dest="lifetime", type=duration, metavar="TIME", help="for how long, such as 30d"),
    shell_only=True,
)
def add(args: argparse.Namespace, out: Output) -> int:
    """Make a token for a program, and show it this once.

    `read` looks at jobs, `jobs` submits and changes them, `files` reads and writes files, `ssh` enters tasks, and
    `admin` adds the rights of an administrator or manager. With `--vc` there are no jobs but those of one virtual
    cluster for it, and it can change nothing that concerns all of them, such as templates.
    """
    given = {
        "name": args.name,
        "scopes": ",".join(args.scope),
        "lifetimeS": args.lifetime,
        "virtualCluster": args.vc,
    }
    query = urlencode({name: value for name, value in given.items() if value})
    made = cast(dict[str, Any], asked(lambda api: ask(api, "POST", f"{PATH}/application?{query}")))
    out.result(made, made["token"] + "\n" + tr("It is shown this once; its id is {id}.", id=made["id"]))
    return OK


@verb("token revoke", argument("token", help="its id, as `pai token list` shows it"))
def revoke(args: argparse.Namespace, out: Output) -> int:
    """Revoke a token or session: it ends with the keys, certificates and shares that it made."""
    asked(lambda api: ask(api, "DELETE", f"{PATH}/{quote(args.token, safe='')}"))
    out.result({"revoked": args.token}, tr("Revoked {token}.", token=args.token))
    return OK


def _time(milliseconds: int | None) -> str:
    return "" if milliseconds is None else f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M} UTC"
