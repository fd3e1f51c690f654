"""Every verb of every route of the server extension is behind sign-in and the server's authorizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, cast

import pytest
from jupyter_server.auth.decorator import authorized
from tornado.web import RequestHandler, authenticated

from jupyter_pai.backend_link import BackendLink
from jupyter_pai.extension import PaiExtension

Verb = Callable[..., Any]


def probe(handler: RequestHandler) -> None:
    """Something to decorate."""


# Wrappers made by one decorator share its code, whatever they wrap.
SIGNED_IN = authenticated(probe).__code__
ALLOWED: CodeType = authorized("read", "probe")(probe).__code__


def layers(verb: Verb) -> Iterator[CodeType]:
    """The code of a method and of everything it wraps, outermost first."""
    current: Verb | None = verb
    while current is not None:
        yield current.__code__
        current = getattr(current, "__wrapped__", None)


def guarded(verb: Verb) -> bool:
    """Whether sign-in is asked for first and the authorizer second, both before anything else."""
    return list(layers(verb))[:2] == [SIGNED_IN, ALLOWED]


def our_verbs() -> list[tuple[str, Verb]]:
    extension = PaiExtension()
    extension.link = cast(BackendLink, None)  # routes only carry it
    extension.initialize_handlers()
    found = []
    for pattern, handler, *_ in extension.handlers:
        for name in RequestHandler.SUPPORTED_METHODS:
            verb = getattr(handler, name.lower())
            if verb.__module__.startswith("jupyter_pai"):
                found.append((f"{name} {pattern}", verb))
    return found


VERBS = our_verbs()


def test_walk_finds_every_room_of_the_extension() -> None:
    routes = {route for route, _ in VERBS}
    for part in ("/pai/api/", "/pai/s/", "/pai/terminals/", "keys", "ticket", "stream"):
        assert any(part in route for route in routes), part
    assert len(VERBS) >= 15


@pytest.mark.parametrize("verb", [verb for _, verb in VERBS], ids=[route for route, _ in VERBS])
def test_verb_is_guarded(verb: Verb) -> None:
    assert guarded(verb)


@pytest.mark.parametrize(
    "verb",
    [probe, authenticated(probe), authorized("read", "probe")(probe), authorized("read", "p")(authenticated(probe))],
    ids=["bare", "no authorizer", "no sign-in", "wrong order"],
)
def test_check_refuses(verb: Verb) -> None:
    assert not guarded(verb)
