"""Which address of a service works from this machine, for a browser on it. The panel decides for its own browser."""

from __future__ import annotations

import http.client
import urllib.request
from urllib.parse import urljoin, urlsplit

from jupyter_pai.wire_types import Ticket

REACHED = "/.pai/reached"
"""Where an own address shows whose it is. Source: docs/rest.md, Service proxy."""
WAIT_S = 10.0


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


def address_of(ticket: Ticket, backend_url: str) -> str:
    """The service's own address, or that below the backend's where the own one does not lead to it from here."""
    return ticket["url"] if reaches_own(ticket) else urljoin(f"{backend_url}/", ticket["pathUrl"])
