"""Opening the leg from the gateway to a task: dial, pin the host key, log in with the gateway's key."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import asyncssh

from pai_backend.access.gateway.names import Entry, Refused
from pai_backend.access.gateway.options import REKEY_BYTES, REKEY_S, GatewayOptions
from pai_backend.access.gateway.reasons import Reason
from pai_backend.access.gateway.relay import Back
from pai_backend.access.gateway.transport import StreamTransport, hold
from pai_backend.access.keys import public_line
from pai_backend.engine.base import Connection, Engine, EngineError
from pai_backend.store.base import Store

# This leg does not leave the cluster: the cheapest of the strong algorithms first. Measured with
# asyncssh 2.24: aes128-gcm moves about twice what chacha20-poly1305 does, X25519 logs in fastest.
KEX = ("curve25519-sha256", "curve25519-sha256@libssh.org", "ecdh-sha2-nistp256")
CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com", "aes128-ctr")

log = logging.getLogger(__name__)


class _Client(asyncssh.SSHClient):
    """Tells the login when the task's end of the connection is gone."""

    def __init__(self, lost: Callable[[], None]) -> None:
        self._lost = lost

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncssh once, also when the login itself closed the connection."""
        self._lost()


async def open_back(
    entry: Entry,
    store: Store,
    engine: Engine,
    client_key: asyncssh.SSHKey,
    options: GatewayOptions,
    lost: Callable[[], None],
) -> Back:
    """Log in to the task. ``lost`` is called when the connection ends, whoever ended it.

    Raises Refused with a sentence for the user when the task does not answer in ``connect_timeout_s``,
    shows another host key than the one made for it, or does not let the gateway in. Cancellation-safe.
    """
    host_key = await store.task_keys(entry.slot)
    if host_key is None:
        raise _unreachable(f"The host key of {entry.name} is not known, so the task cannot be recognised.")
    settings = await _settings(entry, public_line(host_key), client_key, options, lost)
    try:
        async with asyncio.timeout(options.connect_timeout_s):
            return await _connect(entry, engine, settings)
    except EngineError as exc:
        raise _unreachable(f"Task {entry.name} cannot be reached: {exc}. Try again in a moment.") from exc
    except asyncssh.HostKeyNotVerifiable as exc:
        log.error("task %s at %s showed another host key than its own", entry.task, entry.placement.node)
        raise _unreachable(f"Something else than {entry.name} answers at its place (wrong host key); refused.") from exc
    except TimeoutError as exc:
        raise _unreachable(f"The SSH server of {entry.name} does not answer. Try again in a moment.") from exc
    except (OSError, asyncssh.Error) as exc:
        log.warning("no SSH to task %s: %s", entry.task, type(exc).__name__)
        raise _unreachable(f"The SSH server of {entry.name} refused the gateway ({type(exc).__name__}).") from exc


async def dial(entry: Entry, engine: Engine, options: GatewayOptions) -> Connection:
    """The bare stream to the task's SSH server, held until it is used. Cancellation-safe.

    Raises Refused with a sentence for the user.
    """
    try:
        async with asyncio.timeout(options.connect_timeout_s):
            connection = await engine.dial(entry.placement, entry.task, entry.port)
    except EngineError as exc:
        raise _unreachable(f"Task {entry.name} cannot be reached: {exc}. Try again in a moment.") from exc
    except TimeoutError as exc:
        raise _unreachable(f"The SSH server of {entry.name} does not answer. Try again in a moment.") from exc
    hold(connection)
    return connection


def _unreachable(text: str) -> Refused:
    return Refused(text, Reason.UNREACHABLE)


async def _settings(
    entry: Entry, task_key: str, client_key: asyncssh.SSHKey, options: GatewayOptions, lost: Callable[[], None]
) -> asyncssh.SSHClientConnectionOptions:
    pinned = asyncssh.import_public_key(task_key)
    settings: asyncssh.SSHClientConnectionOptions = await asyncssh.SSHClientConnectionOptions.construct(
        client_factory=lambda: _Client(lost),
        host=entry.name,  # asyncssh wants to know; a stream that is passed on through others has no address of its own
        port=entry.port,
        config=None,
        known_hosts=([pinned], [], []),
        server_host_key_algs=[pinned.algorithm.decode("ascii")],
        username=options.task_user,
        client_keys=[client_key],
        agent_path=None,
        preferred_auth=["publickey"],
        kex_algs=list(KEX),
        encryption_algs=list(CIPHERS),
        compression_algs=None,
        keepalive_interval=options.keepalive_s,
        keepalive_count_max=options.keepalive_count,
        login_timeout=options.connect_timeout_s,
        rekey_bytes=REKEY_BYTES,
        rekey_seconds=REKEY_S,
        client_version="jupyter-pai-gateway",
    )
    return settings


async def _connect(entry: Entry, engine: Engine, settings: asyncssh.SSHClientConnectionOptions) -> Back:
    connection = await engine.dial(entry.placement, entry.task, entry.port)
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    settings.waiter = ready
    back = Back(loop, settings, wait="auth")
    StreamTransport(connection, back).start()
    try:
        await ready
    except BaseException:
        back.abort()
        raise
    return back
