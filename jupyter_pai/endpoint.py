"""Which backend to talk to: an address and a token, from the environment, a file or the private one.

Order: the context that ``PAI_CONTEXT`` names (``jupyter_pai.contexts``); ``PAI_URL`` with ``PAI_TOKEN`` or
``PAI_TOKEN_FILE``, or with the token that a JupyterHub gave this server (``PAI_TOKEN_SOURCE=jupyterhub``); then
``client.toml`` of the configuration directory (``context``, or ``url`` and ``token`` or ``token_file``); else the
private backend of this user.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jupyter_pai.errors import InvalidDocument
from pai_backend.model.text import Text

APP = "jupyter-pai"
JUPYTERHUB = "jupyterhub"
LOCAL = "local"
"""The context of the private backend."""


@dataclass(frozen=True)
class Endpoint:
    """Where the API answers and what lets us in; the token never shows in ``repr``."""

    url: str
    token: str = field(repr=False)

    def __post_init__(self) -> None:
        from pai_backend.model.urls import is_http_url

        if not is_http_url(self.url):
            raise InvalidDocument(
                Text("The backend's address {url} is not an http:// or https:// URL.", url=f"{self.url!r}"),
                code="InvalidParametersError",
                hint="Set PAI_URL, or url in client.toml, to an address such as https://pai.example.org",
            )


def data_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Directory of the private backend: ``PAI_DATA_DIR``, or the user's data directory."""
    chosen = environ.get("PAI_DATA_DIR")
    if chosen:
        return Path(chosen).expanduser().absolute()
    from platformdirs import user_data_path

    return user_data_path(APP, appauthor=False) / "backend"


def config_dir() -> Path:
    """Directory of ``client.toml`` and ``backend.yaml``."""
    from platformdirs import user_config_path

    return user_config_path(APP, appauthor=False)


def backend_config(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Configuration file of the private backend: ``PAI_BACKEND_CONFIG``, or ``backend.yaml`` when there is one.

    Raises InvalidDocument when ``PAI_BACKEND_CONFIG`` names no file.
    """
    chosen = environ.get("PAI_BACKEND_CONFIG")
    if chosen:
        path = Path(chosen).expanduser().absolute()
        if not path.is_file():
            raise InvalidDocument(
                Text("PAI_BACKEND_CONFIG names {path}, which is not a file.", path=path),
                code="InvalidParametersError",
                hint="Correct the variable or unset it.",
            )
        return path
    path = config_dir() / "backend.yaml"
    return path if path.is_file() else None


def read_token(path: Path) -> str:
    """The token in a file, without the newline at its end. Raises InvalidDocument when it cannot be read."""
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else Text("it is not text")
        raise InvalidDocument(
            Text("The token file {path} cannot be read: {reason}.", path=path, reason=reason),
            code="InvalidParametersError",
            hint="Check PAI_TOKEN_FILE, or token_file in client.toml.",
        ) from error
    if not token:
        raise InvalidDocument(Text("The token file {path} is empty.", path=path), code="InvalidParametersError")
    return token


def _from_environment(environ: Mapping[str, str]) -> Endpoint | None:
    url = environ.get("PAI_URL")
    if not url:
        return None
    token = environ.get("PAI_TOKEN") or ""
    if not token and (token_file := environ.get("PAI_TOKEN_FILE")):
        token = read_token(Path(token_file).expanduser())
    if not token and (source := environ.get("PAI_TOKEN_SOURCE")):
        token = _of_source(source, environ)
    if not token:
        raise InvalidDocument(
            "PAI_URL is set but there is no token.",
            code="InvalidParametersError",
            hint="Set PAI_TOKEN or PAI_TOKEN_FILE too.",
        )
    return Endpoint(url.rstrip("/"), token)


def _of_source(source: str, environ: Mapping[str, str]) -> str:
    """The token from where ``PAI_TOKEN_SOURCE`` says. Raises InvalidDocument.

    It is never JupyterHub's unasked: that token may do what its user may do at the Hub, and goes to ``PAI_URL``.
    """
    if source != JUPYTERHUB:
        raise InvalidDocument(
            Text("PAI_TOKEN_SOURCE={source} is not known.", source=source),
            code="InvalidParametersError",
            hint=Text("It can be {jupyterhub}.", jupyterhub=JUPYTERHUB),
        )
    token = environ.get("JUPYTERHUB_API_TOKEN", "")
    if not token:
        raise InvalidDocument(
            "PAI_TOKEN_SOURCE=jupyterhub, but no JupyterHub has started this: there is no JUPYTERHUB_API_TOKEN.",
            code="InvalidParametersError",
            hint="Set PAI_TOKEN or PAI_TOKEN_FILE instead.",
        )
    return token


def client_file() -> Path:
    """``client.toml`` of the configuration directory."""
    return config_dir() / "client.toml"


def choice() -> int:
    """Changes whenever another backend is chosen by ``client.toml``: when it was written, in ns; 0 without it."""
    try:
        return client_file().stat().st_mtime_ns
    except OSError:
        return 0


def contexts_dir() -> Path:
    """Where the file of each context is."""
    return config_dir() / "contexts"


def context_file(name: str) -> Path:
    """The file of a context."""
    return contexts_dir() / f"{name}.toml"


def table_of(path: Path) -> dict[str, object]:
    """What is in a ``client.toml`` or the file of a context. Raises InvalidDocument."""
    import tomllib

    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidDocument(
            Text("{path} cannot be read: {error}", path=path, error=error), code="InvalidParametersError"
        ) from error
    if set(table) == {"context"} and isinstance(table["context"], str):
        return table
    unknown = sorted(set(table) - {"url", "token", "token_file"})
    if unknown or not isinstance(table.get("url"), str):
        problem = Text("unknown key {unknown}", unknown=f"{unknown[0]!r}") if unknown else Text("url is missing")
        raise InvalidDocument(
            f"{path}: {problem}.",
            code="InvalidParametersError",
            hint="It has the keys url, and token or token_file; or context alone.",
        )
    return table


def of_context(name: str) -> Endpoint | None:
    """The backend of a context; None for the private one. Raises InvalidDocument when there is no such context."""
    if name == LOCAL:
        return None
    path = context_file(name)
    if "/" in name or not path.is_file():
        raise InvalidDocument(
            Text("There is no context {name}.", name=f"{name!r}"),
            code="InvalidParametersError",
            hint="`pai context list` shows all; `pai login URL --context NAME` makes one.",
        )
    return _endpoint_in(path, table_of(path))


def from_file(path: Path) -> Endpoint | None:
    """The backend that a ``client.toml`` names; None without the file. Raises InvalidDocument."""
    if not path.is_file():
        return None
    table = table_of(path)
    return of_context(str(table["context"])) if "context" in table else _endpoint_in(path, table)


def _endpoint_in(path: Path, table: Mapping[str, object]) -> Endpoint:
    if "context" in table:
        raise InvalidDocument(Text("{path}: url is missing.", path=path), code="InvalidParametersError")
    token = str(table.get("token") or "")
    if not token and "token_file" in table:
        token = read_token((path.parent / str(table["token_file"])).expanduser())
    if not token:
        raise InvalidDocument(Text("{path}: token or token_file is missing.", path=path), code="InvalidParametersError")
    return Endpoint(str(table["url"]).rstrip("/"), token)


def remote_endpoint(environ: Mapping[str, str] = os.environ, file: Path | None = None) -> Endpoint | None:
    """The configured backend, or None when the private one is meant.

    Raises InvalidDocument when the configuration is incomplete or malformed.
    """
    if context := environ.get("PAI_CONTEXT"):
        return of_context(context)
    found = _from_environment(environ)
    if found is not None:
        return found
    if environ.get("PAI_DATA_DIR"):
        return None  # a named data directory means the backend that lives there
    return from_file(file or client_file())


def resolve(*, start: bool) -> Endpoint:
    """The backend to use; ``start`` lets the private one be started when it is not running.

    Raises BackendAway when it does not run and may not or cannot be started.
    """
    remote = remote_endpoint()
    return remote or private_endpoint(start=start)


def private_endpoint(*, start: bool) -> Endpoint:
    """The private backend of this user, as :func:`resolve`."""
    from jupyter_pai.embedded import Embedded

    private = Embedded(data_dir(), backend_config())
    if start and sys.platform != "win32":
        return private.ensure()
    return private.require()
