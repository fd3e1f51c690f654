"""``…/pai/api/…`` of the Jupyter server: relays the backend's API and its streams.

Each verb names its action and resource itself: bare ``@authorized`` remembers the resource of the first
handler it is called for, and would check it for every other that inherits the method.
"""

from __future__ import annotations

import json
from typing import Any

from jupyter_server.base.handlers import APIHandler

from jupyter_pai import passing
from jupyter_pai.backend_link import BackendLink
from jupyter_pai.errors import ClientError
from jupyter_pai.guard import authenticated, authorized
from jupyter_pai.passing_socket import PassingSocket

JOBS, SERVICES, KEYS = "pai:jobs", "pai:services", "pai:keys"
"""Resources that an authorizer is asked about."""


class Relay(APIHandler):
    """Passes a request to the backend and its answer back. Leaf classes name the resource per verb."""

    link: BackendLink

    def initialize(self, link: BackendLink) -> None:
        """Called by tornado with the arguments of the route."""
        self.link = link

    async def prepare(self) -> None:  # type: ignore[override]  # the login redirect is not for an API
        """As for every API handler; reading is no activity, or an open panel would keep a server alive for ever."""
        self._track_activity = self.request.method not in ("GET", "HEAD")
        await super().prepare()

    async def relay(self) -> None:
        """The request as it is, the answer as it comes."""
        try:
            await passing.http(self, self.link, passing.api_hop(self))
        except ClientError as error:
            self.set_status(error.status or 503)
            self.finish(json.dumps(error.body()))


class RelayedJobsHandler(Relay):
    """Jobs, documents, logs, events, nodes and virtual clusters."""

    @authenticated
    @authorized("read", JOBS)
    async def get(self, path: str) -> None:
        """Read."""
        await self.relay()

    @authenticated
    @authorized("read", JOBS)
    async def head(self, path: str) -> None:
        """Read headers."""
        await self.relay()

    @authenticated
    @authorized("write", JOBS)
    async def post(self, path: str) -> None:
        """Submit or validate."""
        await self.relay()

    @authenticated
    @authorized("write", JOBS)
    async def put(self, path: str) -> None:
        """Stop."""
        await self.relay()

    @authenticated
    @authorized("write", JOBS)
    async def patch(self, path: str) -> None:
        """Change."""
        await self.relay()

    @authenticated
    @authorized("write", JOBS)
    async def delete(self, path: str) -> None:
        """Remove."""
        await self.relay()


class TicketHandler(Relay):
    """One-time sign-ins to services."""

    @authenticated
    @authorized("execute", SERVICES)
    async def post(self, path: str) -> None:
        """Make a ticket."""
        await self.relay()


class RelayedKeysHandler(Relay):
    """The user's SSH keys, certificates and shares, and the keys of their jobs."""

    @authenticated
    @authorized("read", KEYS)
    async def get(self, path: str) -> None:
        """List."""
        await self.relay()

    @authenticated
    @authorized("write", KEYS)
    async def post(self, path: str) -> None:
        """Register."""
        await self.relay()

    @authenticated
    @authorized("write", KEYS)
    async def delete(self, path: str) -> None:
        """Remove."""
        await self.relay()


class StreamHandler(PassingSocket):
    """Events and logs as they come."""

    auth_resource = JOBS

    @authenticated
    @authorized("read", JOBS)
    async def get(self, *args: Any, **kwargs: Any) -> None:
        """Open the backend's stream first: when it refuses, so do we, with its status and reason."""
        try:
            self.passage = await passing.websocket(self, self.link, passing.api_hop(self))
        except ClientError as error:
            self.set_status(error.status or 503)
            self.set_header("Content-Type", "application/json")
            self.finish(json.dumps(error.body()))
            return
        await super().get(*args, **kwargs)
