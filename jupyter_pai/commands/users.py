"""``user``: who may use the backend, and the user's own password. New passwords are shown once.

They are shown in a shell only, because a notebook would keep them.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from jupyter_pai import render
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import FROM_STDIN, asked, password_line
from jupyter_pai.errors import JOB_FAILED, OK, ClientError
from jupyter_pai.language import tr
from jupyter_pai.verbs import GROUPS, argument, flag, one_of, verb

if TYPE_CHECKING:
    from jupyter_pai.client import AsyncClient

USERS = "/api/v2/users"
GROUPS["user"] = "Users of the backend: list, add, change, remove; for administrators"

USER = argument("user", help="their name")
EMAIL = argument("--email", help="their mail address")
GROUPS_OF = argument("--groups", metavar="A,B", help="the groups that they are in, and no others")
USE = argument("--vc", metavar="A,B", help="virtual clusters that they may use, and no others")
MANAGES = argument("--manages", metavar="A,B", help="virtual clusters that they manage, and no others")
TRANSFER = argument(
    "--transfer-to", metavar="USER", help="who gets their workspace names, templates and drafts; by default these end"
)
AGAIN = flag("--again", help="also when a removed user had that name: for the same person")


async def ask(api: AsyncClient, method: str, path: str = USERS, value: object = None) -> Any:
    """The answer to a request about users or groups. Raises ClientError."""
    import json

    from jupyter_pai.streams import decoded

    body = None if value is None else json.dumps(value).encode()
    answer = await api.request(method, path, body=body, media_type="" if value is None else "application/json")
    return decoded(answer.body) if answer.body else None


def user_path(name: str) -> str:
    """The path of a user."""
    return f"{USERS}/{quote(name, safe='')}"


MAY_KEEP = flag("--may-keep-password", help="do not have the user change that password at their first sign-in")


def new_password() -> str:
    """A random password of 96 bits."""
    import secrets

    return secrets.token_urlsafe(12)  # 96 bits


def _given_password(from_stdin: bool) -> str:
    """The first line of the standard input, or a new password. Raises ClientError for an empty line."""
    return password_line() if from_stdin else new_password()


@verb("user list")
def list_users(args: argparse.Namespace, out: Output) -> int:
    """The users of the backend. Without administrator rights it lists only you."""
    found = cast(list[dict[str, Any]], asked(lambda api: ask(api, "GET")))
    rows = [
        (
            each["username"],
            each["email"],
            _role(each),
            ", ".join(each["grouplist"][1:]),
            ", ".join(each["virtualCluster"]),
        )
        for each in found
    ]
    out.result(found, render.table(("USER", "E-MAIL", "ROLE", "GROUPS", "VIRTUAL CLUSTERS"), rows))
    return OK


def _role(user: dict[str, Any]) -> str:
    role = (
        tr("administrator")
        if user["admin"]
        else tr("manages {manages}", manages=", ".join(user["manages"]))
        if user["manages"]
        else ""
    )
    return ", ".join(filter(None, (role, tr("disabled") if user["disabled"] else "")))


def names(text: str | None) -> list[str] | None:
    """The names of a list with commas; None when the option is not given."""
    return None if text is None else [each.strip() for each in text.split(",") if each.strip()]


def _rights(args: argparse.Namespace) -> dict[str, Any]:
    """The options about rights that are given, in the API's words."""
    given = {"grouplist": names(args.groups), "virtualCluster": names(args.vc), "manages": names(args.manages)}
    return {name: value for name, value in given.items() if value is not None}


@verb(
    "user add",
    USER,
    EMAIL,
    flag("--admin", help="make them an administrator"),
    GROUPS_OF,
    USE,
    MANAGES,
    FROM_STDIN,
    MAY_KEEP,
    AGAIN,
    shell_only=True,
)
def add(args: argparse.Namespace, out: Output) -> int:
    """Add a user, who can sign in at once.

    Without `--password-stdin` a password is made and shown once. `pai login` asks the user for one of their own.
    """
    password = _given_password(args.password_stdin)
    wanted = {"username": args.user, "password": password, "email": args.email or "", "admin": args.admin}
    wanted["mustChangePassword"] = not args.may_keep_password
    added = asked(lambda api: ask(api, "POST", value={**wanted, **_rights(args), "again": args.again}))
    _tell(out, added, tr("Added {user}.", user=args.user), "" if args.password_stdin else password)
    return OK


@verb(
    "user set",
    USER,
    EMAIL,
    flag(
        "--admin", help="make them an administrator, or end that", action=argparse.BooleanOptionalAction, default=None
    ),
    GROUPS_OF,
    USE,
    MANAGES,
    one_of(flag("--new-password", help="make a new password and show it"), FROM_STDIN),
    MAY_KEEP,
    shell_only=True,
)
def change(args: argparse.Namespace, out: Output) -> int:
    """Change a user.

    A new password ends their sessions and application tokens. Rights count within 2 s, in running sessions too.
    """
    password = _given_password(args.password_stdin) if args.new_password or args.password_stdin else None
    data = {"email": args.email, "admin": args.admin, "newPassword": password}
    given = {name: value for name, value in data.items() if value is not None} | _rights(args)
    if password is not None:
        given["mustChangePassword"] = not args.may_keep_password
    if not given:
        raise ClientError(
            "Nothing is to be changed.", code="InvalidParametersError", hint="`pai user set --help` lists the options."
        )
    changed = asked(lambda api: ask(api, "PUT", user_path(args.user), {"data": given, "patch": True}))
    _tell(out, changed, tr("Changed {user}.", user=args.user), password if args.new_password and password else "")
    return OK


@verb("user disable", USER, flag("--stop-jobs", help="stop their jobs, too"), flag("--yes", help="do not ask"))
def disable(args: argparse.Namespace, out: Output) -> int:
    """Refuse all requests of a user and end their logins; for administrators.

    Nothing is removed. Jobs go on unless `--stop-jobs` is given. A user who is gone can be disabled, too.
    """
    from jupyter_pai import broker

    held = _shown_holdings(args.user, out)
    act = tr("disable {user}, while the jobs go on", user=args.user)
    if args.stop_jobs:
        act = tr("disable {user} and stop the jobs", user=args.user)
    if not args.yes and held is not None and not out.agreed(act, tr("No user was disabled.")):
        return JOB_FAILED
    asked(lambda api: broker.lock_out(api, args.user))
    jobs = held["activeJobs"] if args.stop_jobs and held is not None else []
    asked(lambda api: _stop(api, args.user, jobs))
    out.result(
        {"disabled": args.user, "stopped": jobs},
        tr("{user} is disabled. Jobs asked to stop: {count}.", user=args.user, count=len(jobs)),
    )
    return OK


@verb("user enable", USER)
def enable(args: argparse.Namespace, out: Output) -> int:
    """Accept requests and logins of a disabled user again; for administrators."""
    from jupyter_pai import broker

    asked(lambda api: broker.let_in(api, args.user))
    out.result({"enabled": args.user}, tr("{user} is no longer disabled.", user=args.user))
    return OK


@verb("user remove", USER, TRANSFER, flag("--yes", help="do not ask"))
def remove(args: argparse.Namespace, out: Output) -> int:
    """Remove a user who has no active jobs; it says first what becomes of all that they have.

    Their tokens, keys and certificates end, and what others share with them. Ended jobs and files stay. `pai user
    disable --stop-jobs` stops active jobs.
    """
    _shown_holdings(args.user, out)
    act = tr("remove {user}, with tokens, keys and certificates", user=args.user)
    if not args.yes and not out.agreed(act, tr("No user was removed.")):
        return JOB_FAILED
    heir = f"?transferTo={quote(args.transfer_to, safe='')}" if args.transfer_to else ""
    asked(lambda api: ask(api, "DELETE", user_path(args.user) + heir))
    out.result({"removed": args.user, "transferredTo": args.transfer_to}, tr("Removed {user}.", user=args.user))
    return OK


def _shown_holdings(user: str, out: Output) -> dict[str, Any] | None:
    """Say what a user has, and answer it; None for one who is gone. Raises ClientError."""
    try:
        held = cast(dict[str, Any], asked(lambda api: ask(api, "GET", f"{user_path(user)}/holdings")))
    except ClientError as error:
        if error.code != "NoUserError":
            raise
        return None
    if out.as_json:
        return held
    active = ", ".join(held["activeJobs"]) or tr("none")
    out.progress(tr("{user} has:", user=user))
    out.progress(
        tr(
            "  active jobs: {active}; ended jobs, which stay: {ended_jobs}; files, which stay: {files}",
            active=active,
            ended_jobs=held["endedJobs"],
            files=held["files"],
        )
    )
    out.progress(
        tr(
            "  workspace names: {addresses}; templates: {templates}; "
            "drafts: {drafts} (a removal ends these, unless they are transferred)",
            addresses=", ".join(held["addresses"]) or tr("none"),
            templates=held["templates"],
            drafts=held["drafts"],
        )
    )
    out.progress(
        tr(
            "  keys: {keys}; certificates: {certificates}; sessions and tokens: {tokens}; "
            "shares taken: {shares_taken} (refused while disabled, ended by a removal)",
            keys=held["keys"],
            certificates=held["certificates"],
            tokens=held["tokens"],
            shares_taken=held["sharesTaken"],
        )
    )
    out.progress(
        tr(
            "  shares given: {shares_given} (not in force while disabled, ended with their jobs)",
            shares_given=held["sharesGiven"],
        )
    )
    return held


async def _stop(api: AsyncClient, user: str, jobs: list[str]) -> None:
    for name in jobs:
        await api.stop(f"{user}~{name}")


@verb("password", shell_only=True)
def password(args: argparse.Namespace, out: Output) -> int:
    """Change your own password.

    All your other sessions and your application tokens end.
    """
    from getpass import getpass

    if not sys.stdin.isatty():
        raise ClientError("A password is typed at a terminal.", code="InvalidParametersError")
    old, new = getpass(tr("Password now: ")), getpass(tr("New password: "))
    if getpass(tr("New password again: ")) != new:
        raise ClientError("The two new passwords differ. Nothing was changed.", code="InvalidParametersError")
    changed = asked(lambda api: ask(api, "PUT", user_path("me"), {"data": {"oldPassword": old, "newPassword": new}}))
    out.result(changed, tr("Your password is changed."))
    return OK


def _tell(out: Output, value: dict[str, Any], text: str, password: str) -> None:
    shown = "\n" + tr("Password: {password}\nIt is shown this once.", password=password) if password else ""
    out.result({**value, "password": password} if password else value, f"{text}{shown}")
