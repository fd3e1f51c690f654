"""Which address of a service works from this machine, for a browser on it. The panel decides for its own browser.

``labextension/src/address.ts`` decides likewise.
"""

from __future__ import annotations

import http.client
import re
import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from jupyter_pai.endpoint import Endpoint
from jupyter_pai.errors import BackendAway, NotFound
from pai_backend.model.text import Text

if TYPE_CHECKING:
    from jupyter_pai.sync import Client
    from jupyter_pai.wire_types import JobDetail, Ticket

REACHED = "/.pai/reached"
"""Where an own address shows whose it is. Source: docs/rest.md, Service proxy."""
WAIT_S = 10.0
PAGE_BYTES = 1 << 18
_LOOPBACK = re.compile(r"localhost|.+\.localhost|127(\.\d+){3}|::1")
_FROM_ROOT = re.compile(r"""\s(?:href|src)\s*=\s*["'](/(?!/)[^"']*)""", re.IGNORECASE)


def service_label(job: JobDetail, label: str | None) -> str:
    """The label named, or that of the job's first service. Raises NotFound when the job has none."""
    if label is not None:
        return label
    if not job["services"]:
        raise NotFound(
            Text("Job {name} declares no service.", name=job["name"]),
            code="NoServiceError",
            hint="Declare a port in its portList, or name a label.",
        )
    return job["services"][0]["label"]


def service_named(client: Client, job: str, label: str | None) -> tuple[str, str]:
    """The uid of a job that is the user's own or shared with them, and the label of a service. Raises NotFound."""
    from jupyter_pai import broker

    try:
        own = client.job(job)
    except NotFound:
        for share in client.thread.run(broker.shares(client.api)):
            services = share.get("services", [])
            if job in (share["job"], share["alias"], share["uid"]) and services:
                return share["uid"], label or services[0]
        raise
    return own["uid"], service_label(own, label)


def reaches_own(ticket: Ticket) -> bool:
    """Whether the service's own address leads to the backend that made the ticket.

    Browsers look up names below ``localhost`` themselves, which other programs may not be able to.
    """
    parts = urlsplit(ticket["url"])
    is_local = (parts.hostname or "").endswith(".localhost")
    netloc = f"127.0.0.1:{parts.port or 80}" if is_local else parts.netloc
    request = urllib.request.Request(f"{parts.scheme}://{netloc}{REACHED}", headers={"Host": parts.netloc})
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            return bool(answer.read(1024).decode("latin-1") == ticket["proof"])
    except (OSError, http.client.HTTPException):  # no backend is there
        return False


def address_of(ticket: Ticket, endpoint: Endpoint) -> str:
    """The service's own address where it leads to the backend from here, else that below the backend's.

    Raises BackendAway, with what is missing, when the service works at neither.
    """
    if reaches_own(ticket):
        return ticket["url"]
    require_path(ticket)
    root = urljoin(f"{endpoint.url}/", service_path(ticket).lstrip("/") + "/")
    if not ticket["isJupyter"] and _leaves(_page(root, endpoint.token), urlsplit(root).path):
        raise BackendAway(
            "The service uses addresses from the root of its host, so it does not work below the backend's path. "
            "It needs an address of its own.",
            hint=Text(
                "Add --local: then a port of this machine leads to it. {otherwise}",
                otherwise=_missing(ticket, endpoint),
            ),
        )
    return urljoin(f"{endpoint.url}/", ticket["pathUrl"].lstrip("/"))


def require_path(ticket: Ticket) -> None:
    """Raise BackendAway for a service of another user, which has no path below the backend's address."""
    if not ticket["pathUrl"]:
        raise BackendAway(
            "A service of another user opens at its own address only, which does not lead to the backend from here.",
            hint="Use `pai forward JOB LABEL`: then a port of this machine leads to it.",
        )


def service_path(ticket: Ticket) -> str:
    """``/s/<service alias>``, below the backend's address."""
    return ticket["pathUrl"].partition("/.pai/")[0]


def _missing(ticket: Ticket, endpoint: Endpoint) -> str:
    own = urlsplit(ticket["url"])
    host = own.hostname or ""
    if not _LOOPBACK.fullmatch(host):
        domain = host.partition(".")[2]
        return Text("Or add a wildcard DNS record, *.{domain}, that leads to the backend.", domain=domain)
    if _LOOPBACK.fullmatch(urlsplit(endpoint.url).hostname or ""):
        return Text(
            "Or forward the backend's port by the same number: ssh -L {port}:localhost:{port} SERVER", port=own.port
        )
    return Text("Or let an administrator set api.service_domain to a domain whose names all lead to the backend.")


class _Below(urllib.request.HTTPRedirectHandler):
    """Follows redirects within a service only, so that the token goes nowhere else."""

    def __init__(self, root: str) -> None:
        self._root = root

    def redirect_request(self, req: urllib.request.Request, *rest: Any) -> urllib.request.Request | None:
        """Called by urllib; the last argument is the new address."""
        return super().redirect_request(req, *rest) if str(rest[-1]).startswith(self._root) else None


def _page(root: str, token: str) -> str:
    """The beginning of the page at that address; empty when there is none."""
    request = urllib.request.Request(root, headers={"Authorization": f"Bearer {token}", "Accept": "text/html"})
    try:
        with urllib.request.build_opener(_Below(root)).open(request, timeout=WAIT_S) as answer:
            is_page = answer.headers.get_content_type() == "text/html"
            return answer.read(PAGE_BYTES).decode("latin-1") if is_page else ""
    except (OSError, http.client.HTTPException):  # nothing answers yet: the address shows why
        return ""


def _leaves(page: str, path: str) -> bool:
    """Whether a page names something from the root of its host that is not below ``path``."""
    return any(not address.startswith(path) for address in _FROM_ROOT.findall(page))
