"""What magics give back and raise: values that show themselves well in a cell."""

from __future__ import annotations

from html import escape

from jupyter_pai.widgets.html import link
from jupyter_pai.wire import Ticket


class Trouble(Exception):
    """A failure that a cell shows as its text alone."""

    def _render_traceback_(self) -> list[str]:
        """Called by IPython in place of making a traceback."""
        return str(self).splitlines()


class JobFailed(Trouble):
    """The job that was waited for did not succeed."""


class Shown(str):
    """Text that a cell shows as it is, not as a quoted string."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Link:
    """A one-time sign-in to a service; ``url`` by host name, ``path_url`` by path, good for a minute."""

    def __init__(self, ticket: Ticket) -> None:
        self.url = ticket["url"]
        self.path_url = ticket["path_url"]
        self.expires_at = ticket["expires_at"]

    def __repr__(self) -> str:
        return self.url

    def _repr_html_(self) -> str:
        return f"{link(self.url)} (once, until {escape(self.expires_at)})"
