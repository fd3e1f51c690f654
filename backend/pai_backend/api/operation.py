"""A verb of a handler and its description in one: parse, call, serialise.

The decorator parses parameters and body into the models it names, gives them to the verb, and serialises the
model that comes back. The OpenAPI description reads the same values, so it cannot say anything else.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from pai_backend.api.base import ApiHandler, BaseHandler
from pai_backend.api.wire import MEDIA_TYPE
from pai_backend.model.errors import PaiError

Verb = Callable[..., Coroutine[Any, Any, None]]


@dataclass(frozen=True)
class Operation:
    """What a verb takes and gives. ``raises`` are the errors it adds to those that every path has.

    ``ours`` is the shape for clients that ask for our media type, where ``answer`` is OpenPAI's. With ``or_bytes`` the
    answer may also be the bytes of a file. ``audit`` is the type of the event that the audit gets of it; empty: it
    changes nothing, and opens no door. With ``told_by_store`` the store writes that event, with more in it.
    """

    summary: str
    query: type[BaseModel] | None = None
    body: type[BaseModel] | None = None
    takes_document: bool = False
    document: str = "A job document, as it is."
    takes_bytes: bool = False
    answer: type[BaseModel] | None = None
    ours: type[BaseModel] | None = None
    or_bytes: bool = False
    media_type: str = "application/json"
    status: int = 200
    stream: str = ""
    raises: tuple[type[PaiError], ...] = ()
    audit: str = ""
    told_by_store: bool = False


OPERATIONS: dict[Verb, Operation] = {}
"""Every decorated verb; the description of the API is made from it."""


def operation(described: Operation) -> Callable[[Callable[..., Awaitable[BaseModel | None]]], Verb]:
    """Make a verb of a function that takes path parts, then the query, then the body, and returns the answer.

    A function that returns None has written its answer itself, or has none (204).
    """

    def decorate(function: Callable[..., Awaitable[BaseModel | None]]) -> Verb:
        @functools.wraps(function)
        async def verb(self: BaseHandler, *path: str) -> None:
            async with self.audited(described.audit, path, told_by_store=described.told_by_store):
                self.begin_verb()
                await self.require_still()
                arguments: list[Any] = list(path)
                if described.query is not None:
                    arguments.append(self.parse_query(described.query))
                if described.body is not None:
                    assert isinstance(self, ApiHandler)
                    arguments.append(self.parse_body(described.body))
                with nullcontext() if described.stream else self.ctx.metrics.request():
                    answer = await function(self, *arguments)
            if described.status != 200:
                self.set_status(described.status)
            if answer is not None:
                is_ours = described.ours is not None and isinstance(answer, described.ours)
                self.write_json(answer, MEDIA_TYPE if is_ours else described.media_type)

        OPERATIONS[verb] = described
        return verb

    return decorate
