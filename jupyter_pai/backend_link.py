"""The server extension's hold on the backend: found or started when first needed, then kept.

Lazy on purpose: a Jupyter server that is not used for jobs should not start a backend.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from jupyter_pai.client import AsyncClient
from jupyter_pai.endpoint import Endpoint, choice
from jupyter_pai.errors import BackendAway

RETRY_AFTER_FAILURE_S = 2.0
"""A backend that would not start is not tried again sooner: a polling panel must not start one a second."""


class BackendLink:
    """One client of the current backend for all handlers; ``find`` may block and runs in a thread."""

    def __init__(self, find: Callable[[], Endpoint]) -> None:
        self._find = find
        self._client: AsyncClient | None = None
        self._choice = 0
        self._lock = asyncio.Lock()
        self._failure: tuple[float, BackendAway] | None = None
        self.established = asyncio.Event()

    def find(self) -> Endpoint:
        """Where the backend is now. Blocks. Raises BackendAway."""
        return self._find()

    async def client(self) -> AsyncClient:
        """The client, of another backend once that was chosen. Raises BackendAway when there is none."""
        async with self._lock:
            if (now := choice()) != self._choice:
                self._client, self._choice, self._failure = None, now, None
            if self._client is None:
                self._client = AsyncClient(await self._endpoint())
                self.established.set()
            return self._client

    async def _endpoint(self) -> Endpoint:
        now = asyncio.get_running_loop().time()
        if self._failure is not None and now < self._failure[0]:
            raise self._failure[1]
        try:
            endpoint = await asyncio.to_thread(self._find)
        except BackendAway as error:
            self._failure = (now + RETRY_AFTER_FAILURE_S, error)
            raise
        self._failure = None
        return endpoint

    def lost(self, client: AsyncClient) -> None:
        """A client got no answer: look for the backend again next time. Others' newer client stays.

        The old one is not closed: requests of other handlers may still be under way in it.
        """
        if self._client is client:
            self._client = None
            self.established.clear()

    def close(self) -> None:
        """Close the client, if there ever was one."""
        if self._client is not None:
            self._client.close()
            self._client = None
