"""``login``, ``logout`` and ``context``: sessions at backends elsewhere, and which of them is used."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from jupyter_pai import announced, contexts, render
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import FROM_STDIN, password_line
from jupyter_pai.endpoint import Endpoint, client_file, from_file, of_context
from jupyter_pai.errors import JOB_FAILED, OK, ClientError
from jupyter_pai.language import tr
from jupyter_pai.verbs import GROUPS, argument, flag, verb
from pai_backend.model.text import Text

if TYPE_CHECKING:
    from jupyter_pai.client import AsyncClient

UNCHANGED = Text("Nothing was changed.")
LOOPBACK = ("localhost", "127.0.0.1", "::1")

GROUPS["context"] = "Which of your backends is used: list, use"


@verb(
    "login",
    argument("url", help="address of the backend, such as https://pai.example.org"),
    argument("--user", help="your name there, to sign in with a password; default: it is asked for"),
    FROM_STDIN,
    flag("--device", help="sign in at the provider with a browser of another computer, by a code"),
    flag("--yes", help="do not ask before an address in client.toml is forgotten"),
    shell_only=True,
)
def login(args: argparse.Namespace, out: Output) -> int:
    """Sign in to a backend elsewhere; panel, notebooks and `pai` use it from now on.

    Where a provider of OpenID Connect signs users in, a browser opens; `--user` signs in with a password instead. A
    session lasts 7 days, or as long as the backend says. Its token is kept in a file readable by you alone, one for
    each backend: `--context` names it, by default after the host, and `pai context use` goes back to another.
    """
    from jupyter_pai.sync import Client

    url = args.url.rstrip("/")
    name = contexts.check_name(args.context or contexts.name_for(url))
    if (before := contexts.address(name)) not in ("", url):
        raise ClientError(
            Text("The context {name} is {before}.", name=name, before=before),
            code="InvalidParametersError",
            hint="Give this one another name by --context.",
        )
    replaced = "" if contexts.current() is not None else contexts.own_address()
    if (
        replaced not in ("", url)
        and not args.yes
        and not out.agreed(tr("use {url}, and forget {replaced}", url=url, replaced=replaced), UNCHANGED)
    ):
        return JOB_FAILED
    parts = urlsplit(url)
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        out.progress(tr("{url} is not encrypted: others on the network can read the password.", url=url))
    answer = _signed_in(args, out, Endpoint(url, ""))
    path = contexts.keep(name, url, answer["token"])
    said = {"user": answer["user"], "url": url, "context": name, "path": str(path)}
    out.result(said, tr("Signed in to {url} as {user}, context {name}.", url=url, user=answer["user"], name=name))
    with Client(Endpoint(url, answer["token"])) as client:
        announced.tell(client, out.progress)
    return OK


@verb("logout", shell_only=True)
def logout(args: argparse.Namespace, out: Output) -> int:
    """End the session of `pai login`; the private backend is used again.

    With `--context` it ends that one's, and the context that is used stays.
    """
    name = args.context or contexts.current()
    endpoint = from_file(client_file()) if name is None else of_context(name)
    if endpoint is None:
        out.result({"signedOut": False}, tr("You are not signed in to a backend elsewhere."))
        return OK
    try:
        _asked(endpoint, "DELETE", "/api/v2/authn/basic/logout")
    except ClientError as error:
        if error.code not in ("NoTokenError", "UnauthorizedUserError"):  # these say that it has ended already
            raise
    contexts.forget(name)
    out.result({"signedOut": True, "url": endpoint.url}, tr("Signed out of {url}.", url=endpoint.url))
    return OK


@verb("context list")
def list_contexts(args: argparse.Namespace, out: Output) -> int:
    """List your backends: the private one, and those of `pai login`; a star is at the one that is used."""
    rows = contexts.rows()
    shown = [("*" if each.is_current else "", each.name, each.url or tr("the private backend")) for each in rows]
    out.result([each.wire() for each in rows], render.table(("", "CONTEXT", "ADDRESS"), shown))
    if variable := contexts.fixed_by():
        out.progress(tr("{variable} is set, and says which is used here.", variable=variable))
    return OK


@verb("context use", argument("name", help="its name, or local: the private backend", completer=contexts.completions))
def use(args: argparse.Namespace, out: Output) -> int:
    """Use a backend from now on: `pai`, notebooks, and the panel once its page is opened again."""
    contexts.use(args.name)
    out.result({"context": args.name}, tr("From now on {name} is used.", name=args.name))
    return OK


def _signed_in(args: argparse.Namespace, out: Output, endpoint: Endpoint) -> dict[str, str]:
    """What the backend says of a new session. Raises ClientError."""
    told = None if args.user else _asked(endpoint, "GET", "/api/v2/authn/info").get("provider")
    if isinstance(told, dict):
        from jupyter_pai import provider_login

        provider = provider_login.Provider.known(told)
        way = provider_login.by_code if args.device else provider_login.by_browser
        token = way(provider, out.progress)
        return _asked(endpoint, "POST", told["loginURI"], json.dumps({"idToken": token}).encode())
    if args.device:
        raise ClientError(
            Text("No provider signs users in at {url}.", url=endpoint.url),
            code="InvalidParametersError",
            hint="Leave --device out.",
        )
    user, password = _credentials(args)
    body = json.dumps({"username": user, "password": password}).encode()
    answer = _asked(endpoint, "POST", "/api/v1/token", body)
    if answer.get("mustChangePassword"):
        _change_password(args, out, Endpoint(endpoint.url, answer["token"]), password)
    return answer


def _change_password(args: argparse.Namespace, out: Output, endpoint: Endpoint, old: str) -> None:
    """Set a password of the user's own, which the session needs. Raises ClientError where none can be typed."""
    from getpass import getpass

    out.progress(tr("An administrator has set your password. Set one of your own."))
    if args.password_stdin:
        new = password_line()
    elif (new := getpass(tr("New password: "))) != getpass(tr("New password again: ")):
        raise ClientError("The two new passwords differ. Nothing was changed.", code="InvalidParametersError")
    value = {"data": {"oldPassword": old, "newPassword": new}, "patch": True}
    _asked(endpoint, "PUT", "/api/v2/users/me", json.dumps(value).encode())


def _credentials(args: argparse.Namespace) -> tuple[str, str]:
    """Name and password. Raises ClientError where no answer can come."""
    from getpass import getpass

    if args.password_stdin and args.user:
        return args.user, password_line()
    if args.password_stdin or not sys.stdin.isatty():
        raise ClientError(
            "Name and password are asked for at a terminal.",
            code="InvalidParametersError",
            hint="Elsewhere give --user and --password-stdin.",
        )
    if not args.user:
        print(tr("User: "), end="", file=sys.stderr, flush=True)
    return args.user or sys.stdin.readline().strip(), getpass(tr("Password: "))


def _asked(endpoint: Endpoint, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
    """The answer of a backend that is not configured yet. Raises ClientError."""
    from jupyter_pai.streams import decoded
    from jupyter_pai.sync import Client

    async def ask(api: AsyncClient) -> object:
        answer = await api.request(method, path, body=body, media_type="" if body is None else "application/json")
        return decoded(answer.body)

    with Client(endpoint) as client:
        found = client.thread.run(ask(client.api))
    if not isinstance(found, dict):
        raise ClientError(
            Text("{url} is not a backend of jupyter-pai.", url=endpoint.url), code="InvalidParametersError"
        )
    return found
