"""The two decorators that every verb of a handler carries, with types that keep the verb's own.

Source: jupyter_server's ``authenticated`` and ``authorized``; the resource is always named, because the
bare form of the latter keeps the resource of whichever handler is called first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from jupyter_server.auth.decorator import authorized as _authorized
from tornado.web import authenticated as _authenticated

Verb = TypeVar("Verb", bound=Callable[..., Any])


def authenticated(verb: Verb) -> Verb:
    """Only for users that are signed in; others are sent to the login page, or get 403."""
    return cast(Verb, _authenticated(verb))


def authorized(action: str, resource: str) -> Callable[[Verb], Verb]:
    """Only for users whom the server's authorizer lets do ``action`` on ``resource``; others get 403."""
    return cast(Callable[[Verb], Verb], _authorized(action, resource))
