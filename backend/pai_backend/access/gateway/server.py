"""``serve_gateway``: listen, let clients in, pass them through, drain at the end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import asyncssh

from pai_backend.access.gateway.login import Doors, Login
from pai_backend.access.gateway.options import GatewayOptions
from pai_backend.access.gateway.relay import Front
from pai_backend.access.gateway.watch import Watch
from pai_backend.access.keys import gateway_client_key, gateway_host_key
from pai_backend.engine.base import Engine
from pai_backend.store.base import Store

__all__ = ["GatewayOptions", "serve_gateway"]

BACKLOG = 128
CLOSE_S = 6.0  # after the drain: a moment longer than what transports get to flush

RESTARTING = "The gateway is stopping. Connect again in a moment."

log = logging.getLogger(__name__)


class _Gateway:
    """The clients of one gateway process, logged in or not."""

    def __init__(self, options: GatewayOptions, store: Store, engine: Engine, client_key: asyncssh.SSHKey) -> None:
        self.watch = Watch(store)
        self._limit = options.max_unauthenticated
        self._arriving: set[Login] = set()
        self._all_gone = asyncio.Event()
        self._all_gone.set()
        self._stopping = False
        self.doors = Doors(
            options, store, engine, client_key, self._admit, self._logged_in, self._left, self.watch.task_lost
        )

    def _admit(self, login: Login) -> bool:
        if self._stopping or len(self._arriving) >= self._limit:
            return False
        self._arriving.add(login)
        return True

    def _logged_in(self, login: Login) -> None:
        self._arriving.discard(login)
        self.watch.add(login)

    def _left(self, login: Login) -> None:
        self._arriving.discard(login)
        self.watch.remove(login)

    async def drain(self, seconds: float) -> None:
        """Let nobody new in, keep those inside for ``seconds``, then end them and wait for their last bytes."""
        self._stopping = True
        for login in list(self._arriving):
            login.end(RESTARTING)
        try:
            async with asyncio.timeout(seconds):
                await self.watch.wait_empty()
        except TimeoutError:
            log.info("ending %d logins that outlasted the drain", len(self.watch.logins))
        for login in list(self.watch.logins):
            login.end(RESTARTING)
        try:
            async with asyncio.timeout(CLOSE_S):
                await self.watch.wait_empty()
        except TimeoutError:
            log.warning("%d logins did not close", len(self.watch.logins))


async def serve_gateway(
    options: GatewayOptions,
    store: Store,
    engine: Engine,
    stop: asyncio.Event,
    ready: Callable[[str, int], None],
) -> None:
    """Run the gateway until ``stop`` is set and live logins have ended or ``drain_s`` is over.

    ``ready`` is called once with the host and the real port when clients can connect. Raises OSError
    when the port cannot be had. The store must be open; neither store nor engine is closed here.
    """
    logging.getLogger("asyncssh").setLevel(logging.WARNING)  # at INFO it writes commands of users
    client_key = asyncssh.import_private_key(await gateway_client_key(store))
    gateway = _Gateway(options, store, engine, client_key)
    settings = await _settings(options, await gateway_host_key(store), gateway.doors)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Front(loop, settings), options.host, options.port, backlog=BACKLOG)
    watching = asyncio.create_task(gateway.watch.run(), name="gateway-watch")
    try:
        ready(options.host, server.sockets[0].getsockname()[1])
        await stop.wait()
        server.close()
        await gateway.drain(options.drain_s)
    finally:
        server.close()
        watching.cancel()
        await asyncio.wait([watching])


async def _settings(options: GatewayOptions, host_key: str, doors: Doors) -> asyncssh.SSHServerConnectionOptions:
    """Public keys only, no feature of asyncssh's own server: what a client may do, the task decides."""
    settings: asyncssh.SSHServerConnectionOptions = await asyncssh.SSHServerConnectionOptions.construct(
        server_factory=lambda: Login(doors),
        config=None,
        server_host_keys=[asyncssh.import_private_key(host_key)],
        server_version="jupyter-pai-gateway",
        login_timeout=options.login_timeout_s,
        keepalive_interval=options.keepalive_s,
        keepalive_count_max=options.keepalive_count,
        compression_algs=None,
        password_auth=False,
        kbdint_auth=False,
        host_based_auth=False,
        gss_host=None,
        agent_forwarding=False,
        x11_forwarding=False,
        line_editor=False,
        encoding=None,
    )
    return settings
