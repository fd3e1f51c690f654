"""What a JupyterHub answers to ``GET /user``; ``tests/ui/test_hub.py`` asks a real one."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import tornado.netutil
from tornado.httpserver import HTTPServer
from tornado.web import Application, RequestHandler

SCOPES = ["access:services!service=pai", "access:servers!server=ann/", "read:users:name!user=ann"]
ANN = {"name": "ann", "kind": "user", "admin": True, "groups": [], "scopes": SCOPES}


def token(letter: str) -> str:
    """A token of the shape that a Hub makes."""
    return letter * 32


@dataclass
class PlayedHub:
    """Whose tokens there are, and how often each was asked about."""

    api_url: str
    users: dict[str, Any] = field(default_factory=dict)
    status: int = 0
    """Answered to all, unless 0."""
    asked: Counter[str] = field(default_factory=Counter)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    """Nothing is answered before it is set."""
    came: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def until_asked(self, token_: str, times: int) -> None:
        """Wait until a token was asked about so often."""
        async with self.came:
            await self.came.wait_for(lambda: self.asked[token_] >= times)


class _User(RequestHandler):
    async def get(self) -> None:
        hub: PlayedHub = self.settings["hub"]
        scheme, _, token_ = self.request.headers["Authorization"].partition(" ")
        assert scheme == "token"
        async with hub.came:
            hub.asked[token_] += 1
            hub.came.notify_all()
        await hub.gate.wait()
        if hub.status:
            self.set_status(hub.status)
            self.set_header("Location", f"{hub.api_url}/user")
        elif token_ in hub.users:
            self.write(hub.users[token_])
        else:
            self.set_status(403)
            self.write({"status": 403, "message": "Missing or invalid credentials."})


@asynccontextmanager
async def played_hub() -> AsyncIterator[PlayedHub]:
    """One that answers at once, and knows ``ann`` by one token."""
    (listener,) = tornado.netutil.bind_sockets(0, "127.0.0.1")
    hub = PlayedHub(f"http://127.0.0.1:{listener.getsockname()[1]}/hub/api", {token("a"): ANN})
    hub.gate.set()
    server = HTTPServer(Application([("/hub/api/user", _User)], hub=hub))
    server.add_sockets([listener])
    try:
        yield hub
    finally:
        server.stop()
        await server.close_all_connections()
