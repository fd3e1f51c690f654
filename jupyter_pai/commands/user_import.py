"""``user import``: adds the users that a file lists, all of them checked before the first is added."""

from __future__ import annotations

import argparse
import csv
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_pai import render
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import asked
from jupyter_pai.commands.users import USERS, ask, new_password
from jupyter_pai.errors import JOB_FAILED, OK, ClientError
from jupyter_pai.language import tr
from jupyter_pai.verbs import argument, flag, verb
from pai_backend.model.text import Text

if TYPE_CHECKING:
    from jupyter_pai.client import AsyncClient

COLUMNS = ("name", "email", "admin", "groups", "vc")
"""Of a file of users; those after the first may be left out. Names in the last two are separated by spaces."""
YES = ("yes", "true", "1")
OF_A_LINE = frozenset({"InvalidParametersError", "NoGroupError", "ConflictUserError"})
"""What may be wrong with a user; other errors are about the backend, or the caller."""


@dataclass(frozen=True)
class Row:
    """A user of the file, in the API's words, and the line."""

    line: int
    body: dict[str, Any]


@verb(
    "user import",
    argument("file", type=Path, help=f"a CSV file with the columns {', '.join(COLUMNS)}"),
    flag("--dry-run", help="only say what would be done"),
    shell_only=True,
)
def import_users(args: argparse.Namespace, out: Output) -> int:
    """Add the users that a file lists and the backend does not have.

    A password is made for each, and shown once. No user is added when a line of the file is wrong.
    """
    wanted = read_users(args.file)

    async def work(api: AsyncClient) -> list[dict[str, Any]]:
        there = {each["username"] for each in await ask(api, "GET")}
        new = [row for row in wanted if row.body["username"] not in there]
        await _check(api, args.file, new)
        done = [{**row.body, "result": "exists"} for row in wanted if row not in new]
        for row in new:
            if args.dry_run:
                done.append({**row.body, "result": "would be added"})
                continue
            password = new_password()
            try:
                await ask(api, "POST", value={**row.body, "password": password, "mustChangePassword": True})
            except ClientError as error:  # what has changed since it was checked
                done.append({**row.body, "result": Text("refused: {reason}", reason=error)})
            else:
                done.append({**row.body, "result": "added", "password": password})
        return done

    done = asked(work)
    rows = [(each["username"], tr(each["result"]), each.get("password", "")) for each in done]
    out.result(done, render.table(("USER", "RESULT", "PASSWORD"), rows))
    return OK if all(each["result"][:7] != "refused" for each in done) else JOB_FAILED


def read_users(path: Path) -> list[Row]:
    """The users of a file. Raises ClientError with the lines that are wrong."""
    try:
        text = path.expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ClientError(
            Text("{path} cannot be read: {error}", path=path, error=error), code="InvalidParametersError"
        ) from None
    rows = csv.DictReader(text.splitlines())
    head = [name.strip().lower() for name in rows.fieldnames or ()]
    if head != list(COLUMNS[: len(head)]) or not head:
        raise ClientError(
            Text("{path}, line 1: the columns are {head}.", path=path, head=", ".join(head) or Text("missing")),
            code="InvalidParametersError",
            hint=Text("They have to be {columns}; those after the first may be left out.", columns=", ".join(COLUMNS)),
        )
    rows.fieldnames = head
    found: list[Row] = []
    wrong: dict[int, str] = {}
    for row in rows:
        values = {name: (row.get(name) or "").strip() for name in COLUMNS}
        if None in row or not values["name"]:
            wrong[rows.line_num] = (
                Text("there are more values than columns") if None in row else Text("there is no name")
            )
        elif any(each.body["username"].lower() == values["name"].lower() for each in found):
            wrong[rows.line_num] = Text("{name} is listed before", name=values["name"])
        body = {
            "username": values["name"],
            "email": values["email"],
            "admin": values["admin"].lower() in YES,
            "grouplist": values["groups"].split(),
            "virtualCluster": values["vc"].split(),
        }
        found.append(Row(rows.line_num, body))
    _refuse(path, wrong)
    return found


async def _check(api: AsyncClient, path: Path, rows: list[Row]) -> None:
    """Have the backend look at each user. Raises ClientError with the lines of those whom it would refuse."""
    wrong: dict[int, str] = {}
    for row in rows:
        try:
            await ask(api, "POST", f"{USERS}?dryRun=true", {**row.body, "password": new_password()})
        except ClientError as error:
            if error.code not in OF_A_LINE:
                raise
            said = [f"{each.message} {each.hint}" for each in error.faults] or [str(error)]
            wrong[row.line] = " ".join(said).strip().rstrip(".")
    _refuse(path, wrong)


def _refuse(path: Path, wrong: dict[int, str]) -> None:
    """Raise ClientError for lines that are wrong."""
    if wrong:
        faults = [Text("{path}, line {line}: {why}", path=path, line=line, why=why) for line, why in wrong.items()]
        said = reduce(lambda all_, each: Text("{all}; {next}", all=all_, next=each), faults)
        raise ClientError(f"{said}.", code="InvalidParametersError", hint="Correct the file. No user was added.")
