"""Several backends of one person: a *context* is one of them, by a name, with an address and a session of its own.

``contexts/NAME.toml`` of the configuration directory has what ``client.toml`` has; ``client.toml`` says by ``context =
"NAME"`` which is used. ``local`` is the private backend of this user, which needs no file.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from typing_extensions import TypedDict

from jupyter_pai.endpoint import LOCAL, client_file, context_file, contexts_dir, of_context, table_of
from jupyter_pai.errors import ClientError
from pai_backend.model.text import Text

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?", re.ASCII)


class ContextWire(TypedDict):
    """A backend of the user's; ``url`` is empty for the private one."""

    name: str
    url: str
    current: bool


@dataclass(frozen=True)
class ContextRow:
    """A context as lists show it; ``url`` is empty for the private backend."""

    name: str
    url: str
    is_current: bool

    def wire(self) -> ContextWire:
        """As JSON has it."""
        return {"name": self.name, "url": self.url, "current": self.is_current}


def check_name(name: str) -> str:
    """The name. Raises ClientError for one that no context may have."""
    if name == LOCAL or not _NAME.fullmatch(name):
        why = (
            Text("that is the private backend")
            if name == LOCAL
            else Text("write small letters, digits, dots and hyphens")
        )
        raise ClientError(
            Text("A context cannot be called {name}: {why}.", name=f"{name!r}", why=why),
            code="InvalidParametersError",
            hint="Give another name by --context.",
        )
    return name


def name_for(url: str) -> str:
    """The name that a backend gets by its address when none is given: its host, with a port that is not the usual."""
    parts = urlsplit(url)
    host = re.sub(r"[^a-z0-9.]+", "-", (parts.hostname or "").lower()).strip(".-")
    return "-".join(filter(None, (host, str(parts.port or ""))))[:63].strip(".-") or "backend"


def known() -> dict[str, str]:
    """The addresses of all contexts by their names, but ``local``. Raises InvalidDocument for a file that is broken."""
    found = {path.stem: str(table_of(path).get("url", "")).rstrip("/") for path in contexts_dir().glob("*.toml")}
    return dict(sorted(found.items()))


def completions(_: argparse.Namespace) -> list[str]:
    """The names of all contexts."""
    return [LOCAL, *known()]


def current() -> str | None:
    """The context that is used; None when ``client.toml`` has an address of its own. Raises InvalidDocument."""
    path = client_file()
    table = table_of(path) if path.is_file() else {"context": LOCAL}
    return str(table["context"]) if "context" in table else None


def own_address() -> str:
    """The address that ``client.toml`` has itself; empty without one. Raises InvalidDocument."""
    path = client_file()
    return str(table_of(path).get("url", "")).rstrip("/") if path.is_file() else ""


def rows() -> list[ContextRow]:
    """All contexts, the private backend first, and what ``client.toml`` has itself. Raises InvalidDocument."""
    now, listed = current(), {LOCAL: "", **known()}
    if now is None:
        now = client_file().name
        listed[now] = own_address()
    return [ContextRow(name, url, name == now) for name, url in listed.items()]


def fixed_by(environ: Mapping[str, str] = os.environ) -> str:
    """The variable that says which backend is used here, whatever is chosen; empty: none does."""
    return next((each for each in ("PAI_CONTEXT", "PAI_URL", "PAI_DATA_DIR") if environ.get(each)), "")


def use(name: str) -> None:
    """Use a context from now on. Raises ClientError for one that there is not, and when an address would be lost."""
    if (lost := own_address()) and current() is None:
        raise ClientError(
            Text(
                "{client_file} has the address {lost} itself, which would be lost.",
                client_file=client_file(),
                lost=lost,
            ),
            code="InvalidParametersError",
            hint=Text("Move the file to {lost} first.", lost=context_file(name_for(lost))),
        )
    if name == LOCAL:
        client_file().unlink(missing_ok=True)
    else:
        of_context(name)
        write(client_file(), f"context = {json.dumps(name)}\n")


def keep(name: str, url: str, token: str) -> Path:
    """Write a session down, and use it from now on; returns where it is."""
    path = context_file(name)
    write(path, f"url = {json.dumps(url)}\ntoken = {json.dumps(token)}\n")
    write(client_file(), f"context = {json.dumps(name)}\n")
    return path


def forget(name: str | None) -> None:
    """Delete a context, or what ``client.toml`` has itself; the private backend is used if it was the current one."""
    is_current = current() == name
    if name is not None:
        context_file(name).unlink(missing_ok=True)
    if is_current:
        client_file().unlink(missing_ok=True)


def address(name: str) -> str:
    """The address of a context; empty when there is none of that name. Raises InvalidDocument."""
    return known().get(name, "")


def write(path: Path, text: str) -> None:
    """Put the text in the file's place, whole or not at all, readable by its owner alone."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(new, path)
