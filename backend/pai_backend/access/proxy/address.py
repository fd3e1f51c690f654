"""Reading the address of a service out of a request: by host name, or by path. Pure.

A path address cuts its prefix off before the task sees the path. Applications that write absolute paths into their
pages (``/static/app.js``) therefore work at host-name addresses only; relative links, redirects, cookie paths and
Jupyter servers (``rewriting``) work at both. All path addresses of a site share one browser origin, so pages of one
service could act on another service of the same user: sites with several users should have host-name addresses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote_plus

PATH_ROOT = "/s/"
SIGN_IN = "/.pai/signin"
LINK = "/.pai/link"
"""Of a host-name address: where a read-only link leads, with its token as the fragment."""
REACHED = "/.pai/reached"
"""Of a host-name address: tells any page that this backend is here."""

_ALIAS = re.compile(r"[a-z0-9-]{1,63}", re.ASCII)
_PORT = re.compile(r":\d*$", re.ASCII)


@dataclass(frozen=True)
class ServiceAddress:
    """A request's place: which service, and what is asked of it."""

    service: str
    prefix: str
    """``/s/<service>`` of a path address, empty for a host-name address."""
    target: str
    """Path and query for the task; starts with ``/``, or is empty for a path address without its slash."""

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        """The query without its question mark."""
        return self.target.partition("?")[2]

    def relative(self, path: str) -> str:
        """A reference from this request to an absolute ``path`` of the service.

        Relative, so that it holds behind any further prefix that a relay in front adds; it never leads out of the
        service, which on a path address has other services and the api beside it.
        """
        depth = self.path.count("/") - 1
        return ("../" * depth or "./") + _within(path)


def _within(path: str) -> str:
    """An absolute path without its slash, as browsers resolve it, but never above the root or at another host."""
    end = min((at for mark in "?#" if (at := path.find(mark)) >= 0), default=len(path))
    kept: list[str] = []
    *folders, last = re.split(r"[/\\]", path[:end])  # browsers take one for the other
    for segment in (*folders, last):
        match segment.lower().replace("%2e", "."):
            case "..":
                del kept[-1:]
            case ".":
                pass
            case "" if not kept:  # "//x" would be another host, or the root of this one
                pass
            case _:
                kept.append(segment)
    if kept and last.lower().replace("%2e", ".") in (".", ".."):
        kept.append("")
    return "/".join(kept) + path[end:]


def host_service(host: str, domain: str) -> str | None:
    """The service alias in a ``Host`` header, or None when the host is not ``<service alias>.<domain>``."""
    name = _PORT.sub("", host).rstrip(".").lower()
    label, dot, rest = name.partition(".")
    if not dot or rest != domain.lower() or not _is_service(label):
        return None
    return label


def path_service(target: str) -> str | None:
    """The service alias in ``/s/<service alias>…``, or None."""
    if not target.startswith(PATH_ROOT):
        return None
    name = re.split(r"[/?]", target.removeprefix(PATH_ROOT), maxsplit=1)[0]
    return name if _is_service(name) else None


def read_address(host: str, target: str, domain: str) -> ServiceAddress | None:
    """The address of a request; None when it is not for a service. A service's host name goes before its path."""
    if service := host_service(host, domain):
        return ServiceAddress(service, "", target)
    if service := path_service(target):
        prefix = PATH_ROOT + service
        return ServiceAddress(service, prefix, target.removeprefix(prefix))
    return None


def query_values(query: str, name: str) -> list[str]:
    """The values of a query parameter, decoded."""
    pairs = (part.partition("=") for part in query.split("&"))
    return [unquote_plus(value) for key, _, value in pairs if unquote_plus(key) == name]


def without_parameter(target: str, name: str) -> str:
    """The target without that query parameter; the rest stays as it was, byte for byte."""
    path, mark, query = target.partition("?")
    if not mark:
        return target
    kept = [part for part in query.split("&") if unquote_plus(part.partition("=")[0]) != name]
    return f"{path}?{'&'.join(kept)}" if kept and kept != [""] else path


def _is_service(name: str) -> bool:
    # A job's alias has no "--" in it and a service's always has (model.alias), so no other name is taken.
    return "--" in name and _ALIAS.fullmatch(name) is not None
