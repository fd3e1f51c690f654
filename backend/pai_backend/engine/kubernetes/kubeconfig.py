"""Which cluster a kubeconfig means, or what is wrong with it, in words that hold none of its secrets.

The library reads kubeconfigs too, and builds the connection from them; but its complaints quote whole entries, tokens
included, so that they can never be shown. What it would complain of is therefore checked here first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from pai_backend.engine.kubernetes.failures import AccessError


@dataclass(frozen=True)
class Kubeconfig:
    """The part of one or more kubeconfig files that one context means."""

    paths: tuple[Path, ...]
    context: str
    server: str
    namespace: str | None
    insecure: bool  # the certificate is not looked at: the file says so
    command: str | None  # the program that gives credentials

    @property
    def place(self) -> str:
        """The files, for messages."""
        return ":".join(map(str, self.paths))


def read_kubeconfig(paths: Sequence[Path], context: str | None) -> Kubeconfig:
    """Find the context (the current one by default) in files of which the first that names a thing wins.

    Blocking. Raises AccessError naming place, reason and remedy.
    """
    documents = [(path, _document(path)) for path in paths]
    current = next((doc["current-context"] for _, doc in documents if doc.get("current-context")), None)
    wanted = context or current
    if not wanted:
        raise AccessError(
            f"{_places(paths)}: names no current-context; set kubernetes.context to one of {_known(documents)}"
        )
    about = _entry(documents, "contexts", "context", wanted)
    if about is None:
        raise AccessError(
            f"{_places(paths)}: there is no context {wanted}; it has {_known(documents)}. See kubernetes.context"
        )
    cluster_name, user_name = about.get("cluster"), about.get("user")
    cluster = _entry(documents, "clusters", "cluster", cluster_name)
    if cluster is None:
        raise AccessError(
            f"{_places(paths)}: the context {wanted} names the cluster {cluster_name}, which is not there"
        )
    user = _entry(documents, "users", "user", user_name) if user_name else {}
    if user is None:
        raise AccessError(f"{_places(paths)}: the context {wanted} names the user {user_name}, which is not there")
    exec_ = user.get("exec")
    found = Kubeconfig(
        paths=tuple(paths),
        context=str(wanted),
        server=str(cluster.get("server") or ""),
        namespace=str(about["namespace"]) if about.get("namespace") else None,
        insecure=bool(cluster.get("insecure-skip-tls-verify")),
        command=str(exec_.get("command")) if isinstance(exec_, dict) else None,
    )
    _check_server(found, has_credentials=bool(user))
    return found


def _check_server(found: Kubeconfig, *, has_credentials: bool) -> None:
    """Raise AccessError for an address that cannot be used, or over which credentials could be read along."""
    parts = urlsplit(found.server)
    where = f"{found.place}: the cluster of the context {found.context}"
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise AccessError(f"{where} has no usable server; it must be like https://HOST:6443")
    if parts.scheme == "http" and has_credentials and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise AccessError(f"{where} is reached over plain http, where credentials can be read along; use https")


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


def _entry(documents: list[tuple[Path, dict[str, Any]]], section: str, key: str, name: object) -> dict[str, Any] | None:
    for _, document in documents:
        for entry in document.get(section) or []:
            if entry["name"] == name:
                about = entry.get(key) or {}
                return about if isinstance(about, dict) else {}
    return None


def _known(documents: list[tuple[Path, dict[str, Any]]]) -> str:
    names = [str(entry["name"]) for _, document in documents for entry in document.get("contexts") or []]
    return ", ".join(names) or "no context at all"


def _places(paths: Sequence[Path]) -> str:
    return ":".join(map(str, paths))
