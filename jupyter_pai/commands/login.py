"""``login`` and ``logout``: a session at a backend elsewhere, kept in ``client.toml``."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from jupyter_pai import announced
from jupyter_pai.commands.output import Output
from jupyter_pai.commands.session import FROM_STDIN, password_line
from jupyter_pai.endpoint import Endpoint, client_file
from jupyter_pai.errors import JOB_FAILED, OK, ClientError
from jupyter_pai.verbs import argument, flag, verb

if TYPE_CHECKING:
    from jupyter_pai.client import AsyncClient

LOOPBACK = ("localhost", "127.0.0.1", "::1")


@verb(
    "login",
    argument("url", help="address of the backend, such as https://pai.example.org"),
    argument("--user", help="your name there, to sign in with a password; default: it is asked for"),
    FROM_STDIN,
    flag("--device", help="sign in at the provider with a browser of another computer, by a code"),
    flag("--yes", help="do not ask before another backend is replaced"),
    shell_only=True,
)
def login(args: argparse.Namespace, out: Output) -> int:
    """Sign in to a backend elsewhere; panel, notebooks and `pai` use it from now on.

    Where a provider of OpenID Connect signs users in, a browser opens; `--user` signs in with a password instead. A
    session lasts 7 days, or as long as the backend says. Its token is kept in `client.toml`, readable by you alone.
    """
    from jupyter_pai.sync import Client

    url, path = args.url.rstrip("/"), client_file()
    endpoint = Endpoint(url, "")
    before = _address(path)
    if (
        before not in ("", url)
        and not args.yes
        and not out.agreed(f"use {url}, and no longer {before}", "Nothing was changed.")
    ):
        return JOB_FAILED
    parts = urlsplit(url)
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        out.progress(f"{url} is not encrypted: others on the network can read the password.")
    answer = _signed_in(args, out, endpoint)
    _write(path, f"url = {json.dumps(url)}\ntoken = {json.dumps(answer['token'])}\n")
    out.result({"user": answer["user"], "url": url, "path": str(path)}, f"Signed in to {url} as {answer['user']}.")
    with Client(Endpoint(url, answer["token"])) as client:
        announced.tell(client, out.progress)
    return OK


@verb("logout", shell_only=True)
def logout(args: argparse.Namespace, out: Output) -> int:
    """End the session of `pai login`; the private backend is used again."""
    from jupyter_pai.endpoint import from_file

    path = client_file()
    endpoint = from_file(path)
    if endpoint is None:
        out.result({"signedOut": False}, "You are not signed in to a backend elsewhere.")
        return OK
    try:
        _asked(endpoint, "DELETE", "/api/v2/authn/basic/logout")
    except ClientError as error:
        if error.code not in ("NoTokenError", "UnauthorizedUserError"):  # these say that it has ended already
            raise
    path.unlink()
    out.result({"signedOut": True, "url": endpoint.url}, f"Signed out of {endpoint.url}.")
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
            f"No provider signs users in at {endpoint.url}.", code="InvalidParametersError", hint="Leave --device out."
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

    out.progress("An administrator has set your password. Set one of your own.")
    if args.password_stdin:
        new = password_line()
    elif (new := getpass("New password: ")) != getpass("New password again: "):
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
        print("User: ", end="", file=sys.stderr, flush=True)
    return args.user or sys.stdin.readline().strip(), getpass("Password: ")


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
        raise ClientError(f"{endpoint.url} is not a backend of jupyter-pai.", code="InvalidParametersError")
    return found


def _address(path: Path) -> str:
    """The address in a file that may be missing or broken: empty then."""
    try:
        return str(tomllib.loads(path.read_text(encoding="utf-8")).get("url", "")).rstrip("/")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return ""


def _write(path: Path, text: str) -> None:
    """Put the text in the file's place, whole or not at all, readable by its owner alone."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(new, path)
