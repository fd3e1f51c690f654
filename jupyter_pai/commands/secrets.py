"""``secret``: values that documents take by name."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import Any, cast
from urllib.parse import quote

from jupyter_pai import render
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import asked, connected
from jupyter_pai.commands.users import ask
from jupyter_pai.errors import OK, ClientError
from jupyter_pai.language import tr
from jupyter_pai.verbs import GROUPS, argument, verb
from pai_backend.model.text import Text

GROUPS["secret"] = "Secrets of yours that documents take by name: set, list, remove"

PATH = "/api/v2/secrets"


def secret_names(args: argparse.Namespace) -> Iterable[str]:
    """The user's secrets."""
    with connected(start=False) as client:
        return [each["name"] for each in client.thread.run(ask(client.api, "GET", PATH))["data"]]


NAME = argument("name", help="its name: letters, digits, '.', '_' and '-'", completer=secret_names)


@verb("secret set", NAME)
def set_secret(args: argparse.Namespace, out: Output) -> int:
    """Keep a secret under a name, for documents to take: the value is typed and not shown, or read from stdin.

    A document gives it to its tasks as a variable by `secretEnv` of `extras.jupyterPai`; an OpenPAI v2 document also
    by `<% $secrets.NAME %>`. A job keeps the value that it was submitted with. The line end behind a value of one
    line is left out.
    """
    value = _typed() if out.in_cell or sys.stdin.isatty() else _read()
    asked(lambda api: ask(api, "PUT", _path(args.name), {"value": value}))
    out.result({"set": args.name}, tr("The secret {name} is kept.", name=args.name))
    return OK


def _typed() -> str:
    """What the user types. Raises ClientError where nothing can be typed."""
    from getpass import getpass

    try:
        value = getpass(tr("Value: "))
    except (EOFError, RuntimeError, NotImplementedError) as error:  # the kernel's, where its front end cannot ask
        raise ClientError("The value cannot be typed here.", code="InvalidParametersError", hint=_ELSEWHERE) from error
    if not value:
        raise ClientError("The value is empty. Nothing was changed.", code="InvalidParametersError")
    return value


_ELSEWHERE = Text("In a shell, `pai secret set NAME < FILE` reads it.")


def _read() -> str:
    """The whole standard input. Raises ClientError for none, and for other than UTF-8."""
    try:
        text = sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        hint = Text("Encode it, for example in base64.")
        raise ClientError("The value is not UTF-8.", code="InvalidParametersError", hint=hint) from None
    line = text.removesuffix("\n").removesuffix("\r")
    value = text if "\n" in line else line  # a private key of several lines needs the last line end
    if not value:
        raise ClientError("There is no value on the standard input.", code="InvalidParametersError")
    return value


@verb("secret list")
def list_secrets(args: argparse.Namespace, out: Output) -> int:
    """The names of your secrets, when each was set, and when a job was last submitted with it."""
    found = _all()
    rows = [
        (each["name"], render.clock(each["setAt"]), render.clock(each["usedAt"]) if each["usedAt"] else "never")
        for each in found
    ]
    out.result(found, render.table(("NAME", "SET", "LAST USED"), rows))
    return OK


@verb("secret remove", NAME)
def remove_secret(args: argparse.Namespace, out: Output) -> int:
    """Remove a secret. Jobs that were submitted with it keep its value."""
    asked(lambda api: ask(api, "DELETE", _path(args.name)))
    out.result({"removed": args.name}, tr("The secret {name} is removed.", name=args.name))
    return OK


def _path(name: str) -> str:
    return f"{PATH}/{quote(name, safe='')}"


def _all() -> list[dict[str, Any]]:
    return cast(list[dict[str, Any]], asked(lambda api: ask(api, "GET", PATH))["data"])
