"""``serve_gateway``: listen, let clients in, pass them through, drain at the end."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING

import asyncssh

from pai_backend.access.broker.rights import Credential
from pai_backend.access.gateway.announced import ProxyHeaderReader
from pai_backend.access.gateway.arrivals import Arrivals, source_of
from pai_backend.access.gateway.counters import Counters
from pai_backend.access.gateway.entering import EntryContext
from pai_backend.access.gateway.login import Doors, Login
from pai_backend.access.gateway.names import LoginRefused
from pai_backend.access.gateway.noting import Noting
from pai_backend.access.gateway.options import REKEY_BYTES, REKEY_S, GatewayOptions
from pai_backend.access.gateway.reasons import RefusalReason
from pai_backend.access.gateway.record import Record
from pai_backend.access.gateway.reporting import LoginReporter
from pai_backend.access.gateway.warning import Warnings
from pai_backend.access.gateway.watch import LoginWatch
from pai_backend.access.gateway.way import GatewayMode, way
from pai_backend.access.keys import gateway_client_key, gateway_host_keys
from pai_backend.access.uses import Uses
from pai_backend.engine.algorithms import SPEAKS, algorithms
from pai_backend.engine.base import Engine

if TYPE_CHECKING:
    from pai_backend.store.sql import Store

__all__ = ["GatewayOptions", "serve_gateway"]

BACKLOG = 128
ARRIVING_S = 10.0  # that those who have connected when the gateway is to stop have to log in, if its drain is as long
CLOSE_S = 6.0  # after the drain: a moment longer than a transport waits for an end that takes nothing

STOPPING = LoginRefused("The gateway is stopping. Connect again in a moment.", RefusalReason.STOPPING)

log = logging.getLogger(__name__)


class _Gateway:
    """The clients of one gateway process, logged in or not."""

    def __init__(
        self,
        way: GatewayMode,
        options: GatewayOptions,
        store: Store,
        engine: Engine,
        client_key: asyncssh.SSHKey,
        counters: Counters,
    ) -> None:
        self.watch = LoginWatch(store)
        self.record = Record(store)
        self.uses = Uses(lambda: store.idling)
        self.noting = Noting(self.uses, lambda: self.watch.logins)
        self.warnings = Warnings(store, lambda: self.watch.logins)
        self._options = options
        self._arrivals: Arrivals[Login] = Arrivals(options.max_unauthenticated, options.max_unauthenticated_per_source)
        self._all_arrived = asyncio.Event()
        self._stopping = False
        room = EntryContext(options, store, way.upstream(options, store, engine, client_key))
        reporter = LoginReporter(self.record, counters)
        self.doors = Doors(
            options,
            room,
            reporter,
            admit=self._admit,
            progress=self._arrivals.progress,
            proved=self._proved,
            left=self._left,
            lost=self.watch.task_lost,
        )
        counters.gauge("pai_gateway_arrivals", "Connections not logged in yet.", lambda: len(self._arrivals))
        counters.gauge("pai_gateway_sessions", "Logins that are open.", lambda: len(self.watch.logins))

    def _admit(self, login: Login) -> None:
        leaving = self._arrivals.enter(login, source_of(login.address))
        if leaving is not None:
            leaving.end(
                LoginRefused("The gateway has too many connections that have not logged in.", RefusalReason.CROWDED)
            )

    def _proved(self, login: Login, credential: Credential) -> str:
        if self._stopping:
            return str(STOPPING)
        most = self._options.max_logins_per_user
        if self.watch.count(credential.user) >= most:
            return f"You have {most} connections open here, the maximum for one user. Close some."
        self.watch.add(login, credential)
        self._arrived(login)
        return ""

    def _arrived(self, login: Login) -> None:
        """It is in, or gone."""
        self._arrivals.leave(login)
        if not self._arrivals:
            self._all_arrived.set()

    def _left(self, login: Login) -> None:
        self._arrived(login)
        self.watch.remove(login)
        self.noting.left(login)

    async def drain(self, seconds: float, hurry: asyncio.Event) -> None:
        """Keep the logins, those that are under way too, for ``seconds`` or until ``hurry``, then end them.

        Called when the port is closed. Returns when their last bytes have left.
        """
        end = asyncio.get_running_loop().time() + seconds
        if self._arrivals:
            self._all_arrived.clear()
            await _either(self._all_arrived.wait(), hurry, min(seconds, ARRIVING_S))
        self._stopping = True
        for login in self._arrivals:
            login.end(STOPPING)
        await _either(self.watch.wait_empty(), hurry, end - asyncio.get_running_loop().time())
        if self.watch.logins:
            log.info("ending %d logins that outlasted the drain", len(self.watch.logins))
        for login in list(self.watch.logins):
            login.end(STOPPING)
        try:
            async with asyncio.timeout(CLOSE_S):
                await self.watch.wait_empty()
        except TimeoutError:
            log.warning("%d logins did not close", len(self.watch.logins))


async def _either(done: Coroutine[None, None, object], hurry: asyncio.Event, seconds: float) -> None:
    """Return when ``done`` is, or ``hurry`` is set, or after ``seconds``."""
    waits = [asyncio.create_task(done), asyncio.create_task(hurry.wait())]
    try:
        await asyncio.wait(waits, timeout=max(seconds, 0), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def serve_gateway(
    options: GatewayOptions,
    store: Store,
    engine: Engine,
    stop: asyncio.Event,
    ready: Callable[[str, int], None],
    *,
    counters: Counters | None = None,
    listener: socket.socket | None = None,
    closed: Callable[[], Awaitable[None]] | None = None,
    hurry: asyncio.Event | None = None,
) -> None:
    """Run the gateway until ``stop`` is set and live logins have ended, ``drain_s`` is over or ``hurry`` is set.

    ``ready`` is called once with the host and the real port when clients can connect, ``closed`` when they no longer
    can, while present logins may go on. Raises OSError when the port cannot be bound; ``listener`` is a socket that
    has it already. The store must be open; neither store nor engine is closed here.
    """
    logging.getLogger("asyncssh").setLevel(logging.WARNING)  # at INFO it writes commands of users
    client_key = _own_key(await gateway_client_key(store))
    chosen = way()
    gateway = _Gateway(chosen, options, store, engine, client_key, counters or Counters())
    settings = await _settings(options, await gateway_host_keys(store), lambda: chosen.login(gateway.doors))
    front = chosen.protocols(settings, gateway.doors)
    loop = asyncio.get_running_loop()
    make = (lambda: ProxyHeaderReader(front, options.proxies)) if options.proxies else front
    if listener is None:
        server = await loop.create_server(make, options.host, options.port, backlog=BACKLOG)
    else:
        server = await loop.create_server(make, sock=listener, backlog=BACKLOG)
    watching = asyncio.create_task(gateway.watch.run(), name="gateway-watch")
    recording = asyncio.create_task(gateway.record.run(), name="gateway-record")
    noting = [
        asyncio.create_task(gateway.noting.run(), name="gateway-noting"),
        asyncio.create_task(gateway.uses.run(), name="gateway-uses"),
        asyncio.create_task(gateway.warnings.run(), name="gateway-warnings"),
    ]
    try:
        ready(options.host, server.sockets[0].getsockname()[1])
        await stop.wait()
        server.close()
        if closed is not None:
            await closed()
        await gateway.drain(options.drain_s, hurry or asyncio.Event())
    finally:
        server.close()
        for task in (watching, *noting):
            task.cancel()
        gateway.record.finish()
        await asyncio.wait([watching, recording, *noting])
        await gateway.uses.finish()


def _own_key(private: str) -> asyncssh.SSHKey:
    """A key that we have made and kept sealed: whether its primes are some need not be tried again at each start."""
    return asyncssh.import_private_key(private, unsafe_skip_rsa_key_validation=True)


async def _settings(
    options: GatewayOptions, host_keys: Sequence[str], login: Callable[[], Login]
) -> asyncssh.SSHServerConnectionOptions:
    """Public keys only, no feature of asyncssh's own server: what a client may do, the task decides."""
    settings: asyncssh.SSHServerConnectionOptions = await asyncssh.SSHServerConnectionOptions.construct(
        server_factory=login,
        config=None,
        server_host_keys=[_own_key(key) for key in host_keys],
        **algorithms(old_clients=options.old_clients),
        server_version=f"{SPEAKS} jupyter-pai-gateway",
        login_timeout=options.login_timeout_s,
        keepalive_interval=options.keepalive_s,
        keepalive_count_max=options.keepalive_count,
        rekey_bytes=REKEY_BYTES,
        rekey_seconds=REKEY_S,
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
