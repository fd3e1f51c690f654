"""What magics give back and raise: values that show themselves well in a cell."""

from __future__ import annotations

from html import escape
from urllib.parse import urljoin

from jupyter_pai.language import tr
from jupyter_pai.render import clock
from jupyter_pai.widgets.html import link
from jupyter_pai.wire_types import Ticket

SIGN_IN = ".pai/signin"
"""Where a service's sign-in is, below its address. Source: docs/rest.md, Service proxy."""


class CellFailure(Exception):
    """A failure that a cell shows as its text alone."""

    def _render_traceback_(self) -> list[str]:
        """Called by IPython in place of making a traceback."""
        return str(self).splitlines()


class JobFailed(CellFailure):
    """The job that was waited for did not succeed."""


class ShownText(str):
    """Text that a cell shows as it is, not as a quoted string."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ServiceLink:
    """A one-time sign-in to a service, good for a minute.

    ``url`` is what works from the kernel's machine, as `pai open` chooses it; ``path_url`` is below the backend's
    address, for programs that cannot look up ``*.localhost``; ``service_url`` is where that leads, for later requests.
    Both are empty for a service of another user.
    """

    def __init__(self, ticket: Ticket, backend_url: str, address: str) -> None:
        self.url = address
        self.path_url = urljoin(f"{backend_url}/", ticket["pathUrl"]) if ticket["pathUrl"] else ""
        self.service_url = self.path_url.partition(SIGN_IN)[0]
        self.expires_at = ticket["expiresAt"]

    def __repr__(self) -> str:
        return self.url

    def _repr_html_(self) -> str:
        return tr("{link} (once, until {time})", link=link(self.url), time=escape(clock(self.expires_at)))
