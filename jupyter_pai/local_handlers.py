"""``…/pai/local/…`` of the Jupyter server: ports of its machine, each of which leads to one service.

They help a browser on the same machine to services that work at no other address: each is an origin of its own. They
last as long as the server, at most ``MOST`` at a time; the one that was opened first gives way.
"""

from __future__ import annotations

from jupyter_pai.answering import AnsweringHandler
from jupyter_pai.backend_link import BackendLink
from jupyter_pai.errors import ClientError
from jupyter_pai.guard import authenticated, authorized
from jupyter_pai.handlers import SERVICES
from jupyter_pai.local_service import LocalService
from pai_backend.model.text import Text

MOST = 32


class LocalServices:
    """The ports that are open, by the aliases of their services."""

    def __init__(self, link: BackendLink) -> None:
        self._link = link
        self._open: dict[str, tuple[LocalService, str]] = {}

    async def lead(self, alias: str) -> dict[str, str]:
        """The address that signs a browser in, and what proves to one that it reached this port. Raises ClientError."""
        if alias not in self._open:
            service = LocalService(self._link.find, f"/s/{alias}")
            try:
                address = service.listen(0)
            except OSError as error:
                raise ClientError(
                    Text("The Jupyter server cannot listen at a port: {reason}.", reason=error.strerror),
                    code="UnknownError",
                ) from error
            self._open[alias] = service, address
            if len(self._open) > MOST:
                await self._end(next(iter(self._open)))
        service, address = self._open[alias]
        return {"url": address, "proof": service.proof}

    async def give_back(self, alias: str) -> None:
        """Close a port that a browser did not reach, unless another one of the user's is there."""
        if alias in self._open and not self._open[alias][0].is_entered:
            await self._end(alias)

    async def close(self) -> None:
        """Close all."""
        for alias in list(self._open):
            await self._end(alias)

    async def _end(self, alias: str) -> None:
        service, _ = self._open.pop(alias)
        await service.close()


class LocalHandler(AnsweringHandler):
    """The port of one service."""

    services: LocalServices

    def initialize(self, link: BackendLink, services: LocalServices) -> None:  # type: ignore[override]  # it needs more
        """Called by tornado with the arguments of the route."""
        super().initialize(link)
        self.services = services

    @authenticated
    @authorized("execute", SERVICES)
    async def post(self, alias: str) -> None:
        """Have it open."""
        await self.answer(self.services.lead(alias))

    @authenticated
    @authorized("execute", SERVICES)
    async def delete(self, alias: str) -> None:
        """Say that the browser does not reach it."""
        await self.services.give_back(alias)
        self.set_status(204)
        self.finish()
