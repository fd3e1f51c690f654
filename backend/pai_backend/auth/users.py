"""The caller of a request."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from pai_backend.model.scope import Scope


@dataclass(frozen=True)
class User:
    """Someone who has proved who they are.

    ``application``: by a token made for a program, which may not make or revoke tokens (OpenPAI's rule).
    """

    name: str
    admin: bool = False
    application: bool = False
    must_change_password: bool = False
    """Whether the session is only for setting another password than the one it began with."""
    scopes: frozenset[Scope] = frozenset()
    """What the token is limited to; empty: it is not limited."""
    manages: frozenset[str] = frozenset()
    """Virtual clusters whose jobs the user administers."""
    within: str = ""
    """The virtual cluster whose jobs the token is limited to; empty: it is not."""
    virtual_clusters: frozenset[str] | None = field(default=None, compare=False)
    """Virtual clusters that the user may submit to; None: all. A stream goes on when this changes."""
    token: str = field(default="", repr=False, compare=False)
    """Digest of the token."""
    token_ends_at: datetime | None = field(default=None, compare=False)
    """When an application token expires; what it makes expires no later."""

    def may(self, scope: Scope) -> bool:
        """Whether the token allows this part of the API."""
        return not self.must_change_password and (not self.scopes or scope in self.scopes)

    def until(self, end: datetime | None) -> datetime | None:
        """The end of what the token makes, when ``end`` was asked for. None stands for no end."""
        return min((each for each in (end, self.token_ends_at) if each is not None), default=None)

    @property
    def maker(self) -> str:
        """What is written beside things that are to end with an application token: its digest, else nothing."""
        return self.token if self.application else ""
