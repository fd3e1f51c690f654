"""A real API server for a run of tests, and ways to it: straight, and through a proxy that can misbehave."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from pai_backend.engine.kubernetes.access import Access
from pai_backend.engine.kubernetes.calls import Calls
from pai_backend.engine.kubernetes.client import ApiClient, connect
from pai_backend.engine.kubernetes.reflector import Resource
from pai_backend.engine.kubernetes.retrying import Backoff
from tests.support.api_server import ApiServer, programs, serve
from tests.support.fault_proxy import FaultProxy, fault_proxy
from tests.support.followed import QUICK, Known, versions

NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """One server for all; a test that kills a part of it brings it back."""
    with serve(programs(), tmp_path_factory.mktemp("api-server")) as running:
        yield running


@dataclass
class World:
    """A namespace of its own, a direct way to the server, and one through a proxy that can misbehave."""

    server: ApiServer
    proxy: FaultProxy
    direct: Calls
    calls: Calls
    client: ApiClient
    resource: Resource

    async def there(self) -> Known:
        return await versions(self.direct, self.resource)


@pytest.fixture
def worlds(api_server: ApiServer, tmp_path: Path) -> Worlds:
    """Opens worlds on the server."""
    return Worlds(api_server, tmp_path)


class Worlds:
    """Makes a world inside a test's own event loop."""

    def __init__(self, server: ApiServer, directory: Path) -> None:
        self._server = server
        self._directory = directory

    @asynccontextmanager
    async def open(self) -> AsyncIterator[World]:
        namespace = f"test-{next(NUMBERS)}"
        async with AsyncExitStack() as stack:
            await self._server.ready()
            proxy = await stack.enter_async_context(fault_proxy(self._server.url))
            direct = await connect(Access(self._server.kubeconfig(self._directory / "direct")))
            stack.push_async_callback(direct.aclose)
            client = await connect(Access(self._server.kubeconfig(self._directory / "proxied", proxy.url)))
            stack.push_async_callback(client.aclose)
            calls = Calls(direct, backoff=Backoff(0.05, 0.5))
            await calls.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
            resource = Resource(
                "configmaps", f"/api/v1/namespaces/{namespace}/configmaps", (("labelSelector", "ours=yes"),)
            )
            yield World(self._server, proxy, calls, Calls(client, backoff=QUICK.backoff), client, resource)
