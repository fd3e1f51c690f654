"""Which cluster a kubeconfig means, or what is wrong with it, in words that hold none of its secrets.

The library builds the connection from what is found here. It could read the files too, but its complaints quote whole
entries, tokens included, so that they can never be shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from pai_backend.engine.kubernetes.failures import AccessError
from pai_backend.model.urls import is_http_url

_FILES = {"clusters": ("certificate-authority",), "users": ("client-certificate", "client-key", "tokenFile")}


@dataclass(frozen=True)
class Kubeconfig:
    """The part of one or more kubeconfig files that one context means; paths in it are absolute."""

    paths: tuple[Path, ...]
    context: str
    namespace: str | None
    cluster: dict[str, Any] = field(repr=False)
    user: dict[str, Any] = field(repr=False)  # secret
    folder: Path  # of the file that has the user, where a relative command is

    @property
    def place(self) -> str:
        """The files, for messages."""
        return _places(self.paths)

    @property
    def server(self) -> str:
        """The address of the API server, "" when there is none."""
        return str(self.cluster.get("server") or "")

    @property
    def insecure(self) -> bool:
        """Whether the file says that the server's certificate is not to be checked."""
        return bool(self.cluster.get("insecure-skip-tls-verify"))


def read_kubeconfig(paths: Sequence[Path], context: str | None) -> Kubeconfig:
    """Find the context (the current one by default) in files of which the first that names a thing wins.

    Blocking. Raises AccessError naming place, reason and remedy.
    """
    documents = [(path, _document(path)) for path in paths]
    current = next((doc["current-context"] for _, doc in documents if doc.get("current-context")), None)
    wanted, where = context or current, _places(paths)
    if not wanted:
        raise AccessError(f"{where}: names no current-context; set kubernetes.context to one of {_known(documents)}")
    about, _ = _entry(documents, "contexts", wanted)
    if about is None:
        raise AccessError(f"{where}: there is no context {wanted}; it has {_known(documents)}. See kubernetes.context")
    cluster_name, user_name = about.get("cluster"), about.get("user")
    cluster, folder = _entry(documents, "clusters", cluster_name)
    if cluster is None:
        raise AccessError(f"{where}: the context {wanted} names the cluster {cluster_name}, which does not exist")
    user: dict[str, Any] | None = {}
    if user_name:
        user, folder = _entry(documents, "users", user_name)
    if user is None:
        raise AccessError(f"{where}: the context {wanted} names the user {user_name}, which does not exist")
    namespace = str(about["namespace"]) if about.get("namespace") else None
    found = Kubeconfig(tuple(paths), str(wanted), namespace, cluster, user, folder)
    _check_server(found, has_credentials=bool(user))
    return found


def _check_server(found: Kubeconfig, *, has_credentials: bool) -> None:
    """Raise AccessError for an address that cannot be used, or over which credentials could be read along."""
    where = f"{found.place}: the cluster of the context {found.context}"
    if not is_http_url(found.server):
        raise AccessError(f"{where} has no usable server; it must be like https://HOST:6443")
    parts = urlsplit(found.server)
    if parts.scheme == "http" and has_credentials and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise AccessError(f"{where} uses plain http, which exposes credentials; use https")


def _document(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise AccessError(f"{path}: the kubeconfig is not UTF-8 text") from None
    except OSError as error:
        raise AccessError(
            f"{path}: the kubeconfig cannot be read: {error.strerror}; set kubernetes.kubeconfig to the file to use"
        ) from None
    try:
        document = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise AccessError(f"{path}{line}: the kubeconfig is not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError:
        raise AccessError(
            f"{path}: the kubeconfig is not valid YAML: it holds characters that YAML does not allow"
        ) from None
    if not isinstance(document, dict):
        raise AccessError(f"{path}: the kubeconfig holds no keys and values")
    for section in ("contexts", "clusters", "users"):
        entries = document.get(section) or []
        if not isinstance(entries, list) or not all(isinstance(entry, dict) and entry.get("name") for entry in entries):
            raise AccessError(f"{path}: {section} of the kubeconfig must be a list of entries that have a name each")
    return document


def _entry(
    documents: list[tuple[Path, dict[str, Any]]], section: str, name: object
) -> tuple[dict[str, Any] | None, Path]:
    """What the first entry of that name says, its paths made absolute, and the folder of its file; None without one."""
    for path, document in documents:
        folder = path.absolute().parent
        for entry in document.get(section) or []:
            if entry["name"] == name:
                inner = entry.get(section[:-1])
                about = dict(inner) if isinstance(inner, dict) else {}
                for key in _FILES.get(section, ()):
                    if about.get(key):
                        about[key] = str(folder / str(about[key]))
                return about, folder
    return None, Path()


def _known(documents: list[tuple[Path, dict[str, Any]]]) -> str:
    names = [str(entry["name"]) for _, document in documents for entry in document.get("contexts") or []]
    return ", ".join(names) or "no context at all"


def _places(paths: Sequence[Path]) -> str:
    return ":".join(map(str, paths))
