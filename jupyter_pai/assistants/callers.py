"""For whom a tool calls the backend, and under which name an assistant does it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

from jupyter_pai.client import AsyncClient
from jupyter_pai.endpoint import Endpoint
from jupyter_pai.errors import ClientError

NAME_CHARACTERS = 64
"""How much of an assistant's name the backend keeps."""


class _Request(Protocol):
    """An HTTP request, whose ``user`` the SDK's authentication has set."""

    user: Any


@dataclass(frozen=True)
class Callers:
    """The user of each call: over stdio the one who started this, over HTTP the one whose token a request brings."""

    endpoint: Callable[[], Endpoint]
    """The backend of the user who started this. Blocks. Raises ClientError."""
    by_token: bool
    """Whether each call must bring a token of its own."""


Call = Context[Callers, Any]


@asynccontextmanager
async def backend(ctx: Call) -> AsyncIterator[AsyncClient]:
    """The backend, for the user of a call. What it refuses becomes an error that a model can read: ToolError."""
    try:
        callers = ctx.request_context.lifespan_context
        endpoint = await asyncio.to_thread(callers.endpoint)
        if callers.by_token:
            request: _Request | None = ctx.request_context.request
            if request is None:
                raise RuntimeError("a call that must bring a token came without a request")
            endpoint = Endpoint(endpoint.url, request.user.access_token.token)
        api = AsyncClient(endpoint, assistant=_name(ctx))
        try:
            yield api
        finally:
            api.close()
    except ClientError as error:
        raise ToolError(told(error)) from error


def _name(ctx: Call) -> str:
    """What the assistant's program calls itself; it may say anything, so it proves nothing."""
    params = ctx.request_context.session.client_params
    name = "" if params is None else f"{params.client_info.name} {params.client_info.version}"
    plain = "".join(each for each in name if each.isascii() and each.isprintable()).strip()
    return plain[:NAME_CHARACTERS] or "assistant"


def told(error: ClientError) -> str:
    """An error with each place that is wrong, and the remedies."""
    lines = [" ".join(filter(None, (error.message, error.hint)))]
    for fault in error.faults:
        place = ":".join(str(each) for each in (fault.path, fault.line, fault.column) if each not in ("", None))
        lines.append(": ".join(filter(None, (place, " ".join(filter(None, (fault.message, fault.hint)))))))
    return "\n".join(dict.fromkeys(lines))
