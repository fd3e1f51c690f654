"""``user``: who may use the backend, and the user's own password. New passwords are shown once.

They are shown in a shell only, because a notebook would keep them.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from jupyter_pai import render
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import FROM_STDIN, asked, password_line
from jupyter_pai.errors import JOB_FAILED, OK, ClientError
from jupyter_pai.verbs import GROUPS, argument, flag, one_of, verb

if TYPE_CHECKING:
    from jupyter_pai.client import AsyncClient

GROUPS["user"] = "Users of the backend: list, add, change, remove; for administrators"

COLUMNS = ("name", "email", "admin")
"""Of a file of users; those after the first may be left out."""
YES = ("yes", "true", "1")

USER = argument("user", help="their name")
EMAIL = argument("--email", help="their mail address")
AGAIN = flag("--again", help="also when a removed user had that name: for the same person")


async def _ask(api: AsyncClient, method: str, name: str = "", value: object = None) -> Any:
    import json

    from jupyter_pai.streams import decoded

    path = f"/api/v2/users/{quote(name, safe='')}" if name else "/api/v2/users"
    body = None if value is None else json.dumps(value).encode()
    answer = await api.request(method, path, body=body, media_type="" if value is None else "application/json")
    return decoded(answer.body) if answer.body else None


def _new_password() -> str:
    import secrets

    return secrets.token_urlsafe(12)  # 96 bits


def _given_password(from_stdin: bool) -> str:
    """The first line of the standard input, or a new password. Raises ClientError for an empty line."""
    return password_line() if from_stdin else _new_password()


@verb("user list")
def list_users(args: argparse.Namespace, out: Output) -> int:
    """The users of the backend. Without administrator rights it lists only you."""
    found = cast(list[dict[str, Any]], asked(lambda api: _ask(api, "GET")))
    rows = [(each["username"], each["email"], "administrator" if each["admin"] else "") for each in found]
    out.result(found, render.table(("USER", "E-MAIL", "ROLE"), rows))
    return OK


@verb("user add", USER, EMAIL, flag("--admin", help="make them an administrator"), FROM_STDIN, AGAIN, shell_only=True)
def add(args: argparse.Namespace, out: Output) -> int:
    """Add a user, who can sign in at once.

    Without `--password-stdin` a password is made and shown once. The user changes it with `pai password`.
    """
    password = _given_password(args.password_stdin)
    wanted = {"username": args.user, "password": password, "email": args.email or "", "admin": args.admin}
    added = asked(lambda api: _ask(api, "POST", value={**wanted, "again": args.again}))
    _tell(out, added, f"Added {args.user}.", "" if args.password_stdin else password)
    return OK


@verb(
    "user set",
    USER,
    EMAIL,
    flag(
        "--admin", help="make them an administrator, or end that", action=argparse.BooleanOptionalAction, default=None
    ),
    one_of(flag("--new-password", help="make a new password and show it"), FROM_STDIN),
    shell_only=True,
)
def change(args: argparse.Namespace, out: Output) -> int:
    """Change a user.

    A new password ends their sessions and application tokens.
    """
    password = _given_password(args.password_stdin) if args.new_password or args.password_stdin else None
    data = {"email": args.email, "admin": args.admin, "newPassword": password}
    given = {name: value for name, value in data.items() if value is not None}
    if not given:
        raise ClientError(
            "Nothing is to be changed.", code="InvalidParametersError", hint="Give --email, --admin or --new-password."
        )
    changed = asked(lambda api: _ask(api, "PUT", args.user, {"data": given, "patch": True}))
    _tell(out, changed, f"Changed {args.user}.", password if args.new_password and password else "")
    return OK


@verb("user remove", USER, flag("--yes", help="do not ask"))
def remove(args: argparse.Namespace, out: Output) -> int:
    """Remove a user who has no active jobs.

    Their tokens, keys and certificates end, and what others share with them. Ended jobs and files stay.
    """
    act = f"remove {args.user}, with tokens, keys and certificates"
    if not args.yes and not out.agreed(act, "No user was removed."):
        return JOB_FAILED
    asked(lambda api: _ask(api, "DELETE", args.user))
    out.result({"removed": args.user}, f"Removed {args.user}.")
    return OK


@verb(
    "user import",
    argument("file", type=Path, help=f"a CSV file with the columns {', '.join(COLUMNS)}"),
    flag("--dry-run", help="only say what would be done"),
    shell_only=True,
)
def import_users(args: argparse.Namespace, out: Output) -> int:
    """Add the users that a file lists and the backend does not have.

    A password is made for each, and shown once.
    """
    wanted = _read(args.file)

    async def work(api: AsyncClient) -> list[dict[str, Any]]:
        there = {each["username"] for each in await _ask(api, "GET")}
        done: list[dict[str, Any]] = []
        for row in wanted:
            if row["username"] in there:
                done.append({**row, "result": "exists"})
            elif args.dry_run:
                done.append({**row, "result": "would be added"})
            else:
                password = _new_password()
                try:
                    await _ask(api, "POST", value={**row, "password": password})
                except ClientError as error:
                    done.append({**row, "result": f"refused: {error}"})
                else:
                    done.append({**row, "result": "added", "password": password})
        return done

    done = asked(work)
    rows = [(each["username"], each["result"], each.get("password", "")) for each in done]
    out.result(done, render.table(("USER", "RESULT", "PASSWORD"), rows))
    return OK if all(each["result"][:7] != "refused" for each in done) else JOB_FAILED


@verb("password", shell_only=True)
def password(args: argparse.Namespace, out: Output) -> int:
    """Change your own password.

    All your other sessions and your application tokens end.
    """
    from getpass import getpass

    if not sys.stdin.isatty():
        raise ClientError("A password is typed at a terminal.", code="InvalidParametersError")
    old, new = getpass("Password now: "), getpass("New password: ")
    if getpass("New password again: ") != new:
        raise ClientError("The two new passwords differ. Nothing was changed.", code="InvalidParametersError")
    changed = asked(lambda api: _ask(api, "PUT", "me", {"data": {"oldPassword": old, "newPassword": new}}))
    out.result(changed, "Your password is changed.")
    return OK


def _read(path: Path) -> list[dict[str, Any]]:
    """The users of a file, in the API's words. Raises ClientError with the line that is wrong."""
    try:
        text = path.expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ClientError(f"{path} cannot be read: {error}", code="InvalidParametersError") from None
    rows = csv.DictReader(text.splitlines())
    head = [name.strip().lower() for name in rows.fieldnames or ()]
    if head != list(COLUMNS[: len(head)]) or not head:
        raise ClientError(
            f"{path}, line 1: the columns are {', '.join(head) or 'missing'}.",
            code="InvalidParametersError",
            hint=f"They have to be {', '.join(COLUMNS)}; those after the first may be left out.",
        )
    rows.fieldnames = head
    found: list[dict[str, Any]] = []
    for row in rows:
        values = {name: (row.get(name) or "").strip() for name in COLUMNS}
        if None in row or not values["name"]:
            problem = "there are more values than columns" if None in row else "there is no name"
            raise ClientError(f"{path}, line {rows.line_num}: {problem}.", code="InvalidParametersError")
        admin = values["admin"].lower() in YES
        found.append({"username": values["name"], "email": values["email"], "admin": admin})
    return found


def _tell(out: Output, value: dict[str, Any], text: str, password: str) -> None:
    shown = f"\nPassword: {password}\nIt is shown this once." if password else ""
    out.result({**value, "password": password} if password else value, f"{text}{shown}")
