"""``…/pai/s/<service alias>/…`` of the Jupyter server: services for sites with one host name.

A service below Jupyter's own address shares its origin: its pages may do in a browser what Jupyter's may. So only jobs
of the user whose token this server holds are reachable here, for any caller: the backend lets no other user in by a
token, not even an administrator. No service worker is registered here, an answer says nothing of the whole origin, and
Jupyter's content security policy stands beside the service's. Code that its own user does not trust belongs behind a
host name of its own.
"""

from __future__ import annotations

from typing import Any

from jupyter_server.base.handlers import JupyterHandler
from tornado.web import HTTPError

from jupyter_pai import passing, relay
from jupyter_pai.errors import ClientError
from jupyter_pai.guard import authenticated, authorized
from jupyter_pai.handlers import SERVICES
from jupyter_pai.passing_socket import PassingSocket
from pai_backend.model.shared_origin import asks_for_worker

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class ServiceHandler(PassingSocket):
    """Any request or WebSocket of a service."""

    auth_resource = SERVICES

    @property
    def upgrading(self) -> bool:
        """Whether the browser asks for a WebSocket."""
        return self.request.headers.get("Upgrade", "").lower() == "websocket"

    async def prepare(self) -> None:  # type: ignore[override]  # the mixin's is untyped
        """As for any page: who is not signed in is sent to the login page, but never a WebSocket."""
        await JupyterHandler.prepare(self, _redirect_to_login=not self.upgrading)
        if asks_for_worker(self.request.headers):
            raise HTTPError(403, "A service below Jupyter's address may not register a service worker")

    def check_xsrf_cookie(self) -> None:
        """Refuse what a foreign page sends. Jupyter's own XSRF cookie means nothing to a service's pages."""
        if not hasattr(self, "_jupyter_current_user"):
            return  # tornado asks before anybody is known; Jupyter's prepare() asks again
        if self.request.method not in _SAFE_METHODS:
            self._refuse_foreign()

    def check_origin(self, origin: str | None = None) -> bool:
        """Called by tornado for a WebSocket. It was checked before the service's side was opened."""
        return relay.is_of_own_page(self.request.headers)

    def _refuse_foreign(self) -> None:
        if not relay.is_of_own_page(self.request.headers):
            raise HTTPError(403, "A page of another site may not send this")

    async def relay(self) -> None:
        """The request as it is, the answer as it comes."""
        try:
            await passing.http(self, self.link, passing.service_hop(self))
        except ClientError as error:
            raise HTTPError(error.status or 503, error.message) from error

    @authenticated
    @authorized("execute", SERVICES)
    async def get(self, *args: Any, **kwargs: Any) -> None:
        """A page, or a WebSocket: then the service's side is opened first, so its refusal is ours."""
        if not self.upgrading:
            await self.relay()
            return
        self._refuse_foreign()
        try:
            self.passage = await passing.websocket(self, self.link, passing.service_hop(self))
        except ClientError as error:
            raise HTTPError(error.status or 503, error.message) from error
        await super().get(*args, **kwargs)

    @authenticated
    @authorized("execute", SERVICES)
    async def head(self, *args: Any) -> None:
        """Headers of a page."""
        await self.relay()

    @authenticated
    @authorized("execute", SERVICES)
    async def options(self, *args: Any) -> None:
        """What a service allows."""
        await self.relay()

    @authenticated
    @authorized("execute", SERVICES)
    async def post(self, *args: Any) -> None:
        """Send."""
        await self.relay()

    @authenticated
    @authorized("execute", SERVICES)
    async def put(self, *args: Any) -> None:
        """Put."""
        await self.relay()

    @authenticated
    @authorized("execute", SERVICES)
    async def patch(self, *args: Any) -> None:
        """Change."""
        await self.relay()

    @authenticated
    @authorized("execute", SERVICES)
    async def delete(self, *args: Any) -> None:
        """Remove."""
        await self.relay()

    def select_subprotocol(self, subprotocols: list[str]) -> str | None:
        """What the service chose."""
        return self.passage.subprotocol if self.passage is not None else None
